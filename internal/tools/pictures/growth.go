// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// firstSync is one line of internal/tools/firstsync/testdata/growth.txt, which make growth writes.
type firstSync struct {
	content, program string
	pods             float64
	cpu, peak        float64 // seconds, bytes
}

var growthPrograms = []string{"ours", "client-go"} // k0, k1

// readGrowth reads lines of the number of pods and a result of BenchmarkFirstSync.
func readGrowth(file string) (all []firstSync, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) < 5 {
			return nil, fmt.Errorf("read %s: line %q", file, lines.Text())
		}
		var s firstSync
		s.pods, err = strconv.ParseFloat(words[0], 64)
		for i := 3; i+1 < len(words) && err == nil; i += 2 {
			var value float64
			value, err = strconv.ParseFloat(words[i], 64)
			switch words[i+1] {
			case "cpu-ns/object":
				s.cpu = value * s.pods / 1e9
			case "peak-RSS-B":
				s.peak = value
			}
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: line %q: %w", file, lines.Text(), err)
		}
		for part := range strings.SplitSeq(words[1], "/") {
			if content, ok := strings.CutPrefix(part, "content="); ok {
				s.content = content
			}
			if program, ok := strings.CutPrefix(part, "impl="); ok {
				s.program = program[:strings.LastIndex(program, "-")]
			}
		}
		all = append(all, s)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s is empty", file)
	}
	return all, nil
}

// growthPanel is a plot with logarithmic axes.
type growthPanel struct {
	words       string
	least, most float64
	value       func(firstSync) float64
	label       func(tick float64) string
}

// drawGrowth plots the first sync of 10,000, 100,000 and 1,000,000 pods.
func drawGrowth(root string) ([]byte, error) {
	all, err := readGrowth(filepath.Join(root, "internal/tools/firstsync/testdata/growth.txt"))
	if err != nil {
		return nil, err
	}
	c := &canvas{
		width: 900, height: 370, title: "The first sync of 10,000 to 1,000,000 pods",
		desc: "Processor time and peak memory of a first sync by a streaming list, in JSON and " +
			"protobuf, for this stack and client-go. All grow in proportion to the objects.",
	}
	c.text("head", 30, 40, "First sync by a streaming list")
	for i, words := range []string{"this stack", "client-go"} {
		c.circle(fmt.Sprintf("k%d", i), 370+i*120, 35, 5)
		c.text("small", 382+i*120, 40, words)
	}
	c.text("small dim", 640, 40, "solid: JSON, dashed: protobuf")
	panels := []growthPanel{
		{
			"processor time", 0.1, 1000, func(s firstSync) float64 { return s.cpu },
			func(tick float64) string { return fmt.Sprintf("%g s", tick) },
		},
		{
			"peak memory", 1e7, 1e11, func(s firstSync) float64 { return s.peak },
			func(tick float64) string { return fmt.Sprintf("%g GB", tick/1e9) },
		},
	}
	for i, p := range panels {
		p.draw(c, 80+i*440, 84, all)
	}
	return c.svg(), nil
}

func (p growthPanel) draw(c *canvas, left, top int, all []firstSync) {
	const width, height = 340, 240
	const fewest, most = 1e4, 1e6
	onX := func(pods float64) int {
		return left + int(math.Round(math.Log(pods/fewest)/math.Log(most/fewest)*width))
	}
	onY := func(v float64) int {
		return top + height - int(math.Round(math.Log(v/p.least)/math.Log(p.most/p.least)*height))
	}
	c.text("name", left, top-14, p.words)
	for tick := p.least; tick <= p.most*1.01; tick *= 10 {
		c.path("grid", "", point{left, onY(tick)}, point{left + width, onY(tick)})
		c.anchored("end", "small dim", left-8, onY(tick)+4, p.label(tick))
	}
	for i, words := range []string{"10,000", "100,000", "1,000,000"} {
		c.centred("small dim", left+i*width/2, top+height+20, words)
	}
	for i, program := range growthPrograms {
		for _, content := range []string{"json", "protobuf"} {
			var path strings.Builder
			for _, s := range all {
				if s.program == program && s.content == content {
					command := "ML"[min(path.Len(), 1)]
					fmt.Fprintf(&path, "%c%d %d", command, onX(s.pods), onY(p.value(s)))
					c.circle(fmt.Sprintf("k%d", i), onX(s.pods), onY(p.value(s)), 4)
				}
			}
			style := "stroke: var(--" + []string{"accent", "wait"}[i] + ")"
			if content == "protobuf" {
				style += "; stroke-dasharray: 6 4"
			}
			fmt.Fprintf(&c.body, `<path class="line" style="%s" d="%s"/>`+"\n", style, &path)
		}
	}
}
