// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// lane is one goroutine of docs/path.md, which package internal/tools/path records.
type lane struct {
	began string // the function at the top
	waits string // where it waits for a change
	parts []*part
}

// part is what a goroutine does in one package.
type part struct {
	folder    string
	first     string // the function through which the goroutine enters the package
	functions int
	locks     []string // mutexes of the package
}

var (
	laneHeading = regexp.MustCompile("^## Goroutine \\d+: `([^`]+)`")
	laneWait    = regexp.MustCompile("waits for changes in `([^`]+)`")
	laneStep    = regexp.MustCompile(
		"^\\| \\d+ \\| (?:· )*`([^`]+)` \\| \\[[^]]*\\]\\(\\.\\./(.*)/[^/]*\\) \\| ([^|]*) \\|")
	lockedMutex = regexp.MustCompile("locks `([^;]+)`")
)

// readPath reads the goroutines of docs/path.md, and its list of totals.
func readPath(file string) (lanes []*lane, totals []string, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, err
	}
	for line := range strings.Lines(string(text)) {
		if heading := laneHeading.FindStringSubmatch(line); heading != nil {
			lanes = append(lanes, &lane{began: heading[1]})
		}
		if total, ok := strings.CutPrefix(line, "- "); ok {
			short, _, _ := strings.Cut(strings.TrimSpace(total), ":")
			totals = append(totals, strings.TrimSuffix(short, "."))
		}
		if len(lanes) == 0 {
			continue
		}
		last := lanes[len(lanes)-1]
		if waits := laneWait.FindStringSubmatch(line); waits != nil {
			last.waits = waits[1]
		}
		if step := laneStep.FindStringSubmatch(line); step != nil {
			last.add(step[1], step[2], step[3])
		}
	}
	if len(lanes) == 0 || len(totals) == 0 {
		return nil, nil, errors.New(file + " has no goroutines, or no totals")
	}
	return lanes, totals, nil
}

// add notes a function. Helper packages belong to their caller's.
func (l *lane) add(function, folder, mutexes string) {
	if strings.HasPrefix(folder, "internal/") {
		return
	}
	i := slices.IndexFunc(l.parts, func(p *part) bool { return p.folder == folder })
	if i < 0 {
		i = len(l.parts)
		l.parts = append(l.parts, &part{folder: folder, first: function})
	}
	l.parts[i].functions++
	if locked := lockedMutex.FindStringSubmatch(mutexes); locked != nil {
		for _, mutex := range strings.Split(locked[1], "`, `") {
			short := strings.TrimSuffix(mutex[strings.Index(mutex, ".")+1:], ".mu")
			if !slices.Contains(l.parts[i].locks, short) {
				l.parts[i].locks = append(l.parts[i].locks, short)
			}
		}
	}
}

// The places of the lanes.
const (
	laneHeight = 142
	partWidth  = 228
)

// drawPath draws the goroutines and packages that one change passes.
func drawPath(root string) ([]byte, error) {
	lanes, totals, err := readPath(filepath.Join(root, "docs", "path.md"))
	if err != nil {
		return nil, err
	}
	c := &canvas{
		width: 980, height: 82 + len(lanes)*laneHeight,
		title: "The path of one change from the watch to the worker",
		desc: fmt.Sprintf("One change passes %d goroutines. Each is a row with the packages that "+
			"it runs through, the number of functions, and the mutexes that it locks.", len(lanes)),
	}
	c.text("head", 30, 40, "One change, from the watch to the worker")
	for i, l := range lanes {
		y := 64 + i*laneHeight
		c.rect("soft", 20, y, c.width-40, laneHeight-34, 12)
		c.text("small dim", 34, y+22, fmt.Sprintf("goroutine %d:", i+1))
		c.text("mono", 118, y+22, l.began)
		for j, p := range l.parts {
			x := 34 + j*(partWidth+4)
			c.part(x, y+32, p)
		}
		if i+1 < len(lanes) {
			c.arrow(false, point{70, y + laneHeight - 34}, point{70, y + laneHeight})
			c.text("small a", 80, y+laneHeight-12, "wakes the goroutine that waits in")
			c.text("mono a", 292, y+laneHeight-12, lanes[i+1].waits)
		}
	}
	y := 64 + len(lanes)*laneHeight
	c.text("small dim", 34, y, strings.Join(totals, " · "))
	return c.svg(), nil
}

// part draws a package in a goroutine.
func (c *canvas) part(x, y int, p *part) {
	c.rect("card", x, y, partWidth-8, 68, 8)
	c.text("name", x+10, y+20, p.folder)
	c.anchored("end", "small dim", x+partWidth-18, y+20, fmt.Sprintf("%d functions", p.functions))
	c.text("mono", x+10, y+40, shortened(p.first))
	if len(p.locks) > 0 {
		c.text("small w", x+10, y+58, "locks "+strings.Join(p.locks, ", "))
	}
}

// shortened is a function's name without its type, cut to fit a box.
func shortened(name string) string {
	const maxLen = 27
	if len(name) > maxLen {
		name = name[strings.Index(name, ".")+1:]
	}
	if len(name) > maxLen {
		name = name[:maxLen-1] + "…"
	}
	return name
}
