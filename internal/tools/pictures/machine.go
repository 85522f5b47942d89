// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
)

// machine says where the parts of a state machine are drawn. The parts come from the source: draw
// fails if the two do not have the same phases, transitions and conditions.
type machine struct {
	places map[string]place
	routes []route
}

// place is where the box of a phase is drawn.
type place struct{ x, y, width int }

// route is the arrow of all transitions from one phase to another, either with a wait or without.
type route struct {
	from, to string
	waits    bool
	points   []point
	label    point
	anchor   string            // of the label: start, middle or end
	words    map[string]string // what each condition means, in words; "\n" begins a new line
}

const phaseHeight = 88

func (m machine) draw(c *canvas, p *phases) error {
	for _, t := range p.transitions {
		if !slices.ContainsFunc(m.routes, func(r route) bool { return r.shows(t) }) {
			return fmt.Errorf("no arrow for %s to %s (waits: %t) if %q", t.from, t.to, t.waits,
				t.condition)
		}
	}
	for name := range m.places {
		if p.comments[name] == "" {
			return fmt.Errorf("phase %s is gone, or has no comment", name)
		}
	}
	for _, r := range m.routes {
		if err := r.draw(c, p.transitions); err != nil {
			return err
		}
	}
	for _, name := range sortedKeys(m.places) {
		at := m.places[name]
		c.rect("card", at.x, at.y, at.width, phaseHeight, 10)
		c.text("name", at.x+14, at.y+24, name)
		c.lines("start", "small dim", at.x+14, at.y+44, wrapped(p.comments[name], at.width-28))
	}
	return nil
}

func (r route) shows(t transition) bool {
	_, known := r.words[t.condition]
	return known && t.from == r.from && t.to == r.to && t.waits == r.waits
}

func (r route) draw(c *canvas, all []transition) error {
	var lines []string
	for _, t := range all {
		if r.shows(t) {
			lines = append(lines, splitLines(r.words[t.condition])...)
		}
	}
	want := 0
	for _, words := range r.words {
		want += len(splitLines(words))
	}
	if len(lines) != want {
		return fmt.Errorf("the arrow %s to %s has words for a condition that is gone", r.from, r.to)
	}
	c.arrow(r.waits, r.points...)
	class := "small a"
	if r.waits {
		class = "small w"
	}
	c.lines(r.anchor, class, r.label.x, r.label.y, lines)
	return nil
}
