// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"fmt"
	"strings"
)

// canvas collects the elements of an SVG. The styles are classes: see style. Positions are in
// pixels from the top left corner.
type canvas struct {
	width, height int
	title, desc   string // for screen readers
	body          strings.Builder
}

// point is a position on a canvas.
type point struct{ x, y int }

// style has the colours of package lab's page, for light and dark readers. The picture has its own
// background, because the page around it may not follow the reader's preference.
const style = `
svg { --bg: #f7f6f2; --card: #fffefb; --soft: #efece4; --ink: #1f2a33; --dim: #5c6873;
  --line: #cfc9bb; --accent: #1864ab; --wait: #b3430a; --ok: #2b7a35; --violet: #862e9c;
  --on: #fff }
@media (prefers-color-scheme: dark) { svg { --bg: #12161b; --card: #1a2027; --soft: #232b33;
  --ink: #e3e8ec; --dim: #9aa7b2; --line: #3b4650; --accent: #7cc0f8; --wait: #ffab66;
  --ok: #8fdc9b; --violet: #dba6f2; --on: #10151a } }
text { font: 13px system-ui, sans-serif; fill: var(--ink) }
.bg { fill: var(--bg) } .card { fill: var(--card); stroke: var(--line); stroke-width: 1.2 }
.soft { fill: var(--soft) } .frame { fill: none; stroke: var(--line); stroke-width: 1.2 }
.head { font-size: 17px; font-weight: 600 } .name { font-size: 14px; font-weight: 600 }
.dim { fill: var(--dim) } .small { font-size: 12px }
.mono { font-family: ui-monospace, monospace; font-size: 12.5px }
.line, .wait, .grid { fill: none; stroke: var(--accent); stroke-width: 1.6 }
.wait { stroke: var(--wait); stroke-dasharray: 6 4 }
.grid { stroke: var(--line); stroke-width: 1 } .grid.one { stroke: var(--dim) }
.tip { fill: var(--accent) } .tip.w { fill: var(--wait) } text.w { fill: var(--wait) }
text.a { fill: var(--accent) } .k0 { fill: var(--accent) } .k1 { fill: var(--wait) }
.k2 { fill: var(--ok) } .k3 { fill: var(--violet) } .off { fill: none; stroke: var(--dim) }
text.on { fill: var(--on) }
`

// svg returns the whole picture.
func (c *canvas) svg() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" `+
		`viewBox="0 0 %d %d" role="img" aria-labelledby="title desc">`+"\n",
		c.width, c.height, c.width, c.height)
	fmt.Fprintf(&b, "<title id=\"title\">%s</title>\n<desc id=\"desc\">%s</desc>\n",
		escaped(c.title), escaped(c.desc))
	fmt.Fprintf(&b, "<style>%s</style>\n", style)
	for _, kind := range []string{"", "w"} {
		fmt.Fprintf(&b, `<marker id="tip%s" viewBox="0 0 10 10" refX="9" refY="5" `+
			`markerUnits="userSpaceOnUse" markerWidth="10" markerHeight="10" orient="auto">`+
			`<path class="tip %s" d="M0 0.5 10 5 0 9.5z"/></marker>`+"\n", kind, kind)
	}
	fmt.Fprintf(&b, `<rect class="bg" width="%d" height="%d" rx="12"/>`+"\n", c.width, c.height)
	b.WriteString(c.body.String())
	b.WriteString("</svg>\n")
	return []byte(b.String())
}

func escaped(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder has no errors
	return b.String()
}

func (c *canvas) rect(class string, x, y, w, h, radius int) {
	fmt.Fprintf(&c.body, `<rect class="%s" x="%d" y="%d" width="%d" height="%d" rx="%d"/>`+"\n",
		class, x, y, w, h, radius)
}

func (c *canvas) circle(class string, x, y, radius int) {
	fmt.Fprintf(&c.body, `<circle class="%s" cx="%d" cy="%d" r="%d"/>`+"\n", class, x, y, radius)
}

// text writes one line. Its baseline is at y; x is its start.
func (c *canvas) text(class string, x, y int, text string) {
	c.anchored("start", class, x, y, text)
}

// centred writes one line around x.
func (c *canvas) centred(class string, x, y int, text string) {
	c.anchored("middle", class, x, y, text)
}

func (c *canvas) anchored(anchor, class string, x, y int, text string) {
	fmt.Fprintf(&c.body, `<text class="%s" x="%d" y="%d" text-anchor="%s">%s</text>`+"\n",
		class, x, y, anchor, escaped(text))
}

// lineHeight is the distance of two lines of small text.
const lineHeight = 16

// lines writes lines below each other, in the form of anchored.
func (c *canvas) lines(anchor, class string, x, y int, lines []string) {
	for i, line := range lines {
		c.anchored(anchor, class, x, y+i*lineHeight, line)
	}
}

// chip is a key in its colour, w wide.
func (c *canvas) chip(colour, x, y, w int, text string) {
	c.rect(fmt.Sprintf("k%d", colour), x, y, w, 24, 12)
	c.centred("mono on", x+w/2, y+16, text)
}

// arrow draws a line through the points, with a tip at the last one. waits selects a dashed line.
func (c *canvas) arrow(waits bool, points ...point) {
	if waits {
		c.path("wait", ` marker-end="url(#tipw)"`, points...)
		return
	}
	c.path("line", ` marker-end="url(#tip)"`, points...)
}

// path draws a line with rounded corners through the points.
func (c *canvas) path(class, attributes string, points ...point) {
	fmt.Fprintf(&c.body, `<path class="%s"%s d="M%d %d`, class, attributes, points[0].x,
		points[0].y)
	for i := 1; i < len(points)-1; i++ {
		before, after := towards(points[i], points[i-1]), towards(points[i], points[i+1])
		fmt.Fprintf(&c.body, "L%d %dQ%d %d %d %d", before.x, before.y, points[i].x, points[i].y,
			after.x, after.y)
	}
	last := points[len(points)-1]
	fmt.Fprintf(&c.body, `L%d %d"/>`+"\n", last.x, last.y)
}

// towards returns the point on the way from p to q at which a corner begins.
func towards(p, q point) point {
	const radius = 10
	return point{p.x + min(max(q.x-p.x, -radius), radius), p.y + min(max(q.y-p.y, -radius), radius)}
}

// wrapped breaks a text into lines of small text that fit the width.
func wrapped(text string, width int) []string {
	var lines []string
	for _, word := range strings.Fields(text) {
		last := len(lines) - 1
		if last >= 0 && widthOf(lines[last]+" "+word) <= width {
			lines[last] += " " + word
			continue
		}
		lines = append(lines, word)
	}
	return lines
}

// widthOf estimates the width of small text in a wide font. Readers have different fonts.
func widthOf(text string) int {
	tenths := 0
	for _, r := range text {
		switch {
		case strings.ContainsRune(" ijlftr.,:;'()", r):
			tenths += 45
		case strings.ContainsRune("mwMW", r):
			tenths += 110
		case r >= 'A' && r <= 'Z':
			tenths += 85
		default:
			tenths += 72
		}
	}
	return tenths / 10
}
