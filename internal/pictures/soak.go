// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// soakPanel plots one column of both programs over time.
type soakPanel struct {
	words, column string
	// least is the start of a logarithmic axis, with ticks at factors of ten; 0 means a linear one.
	least float64
	unit  string
}

var soakPanels = []soakPanel{
	{"Write to reconcile, p50", "p50_ms", 0.1, "ms"},
	{"Write to reconcile, p99", "p99_ms", 0.1, "ms"},
	{"Write to reconcile, p99.9", "p999_ms", 0.1, "ms"},
	{"Oldest change not delivered", "behind_s", 0, "s"},
	{"Live heap", "heap_mb", 0, "MB"},
	{"CPU time since the start", "cpu_s", 0, "s"},
	{"Goroutines", "goroutines", 0, ""},
	{"Open files", "files", 0, ""},
	{"Load average of the machine", "machine_load", 0, ""},
}

// soakPrograms are the programs by their colour: k0, k1.
var soakPrograms = []string{"ours", "client-go"}

// The grid of panels, and the plot within each.
const (
	panelsInRow = 3
	panelWidth  = 316
	panelHeight = 170
	plotLeft    = 70 // below the ticks of the y axis
	plotWidth   = 236
	plotTop     = 30
	plotHeight  = 100
	soakTop     = 76
)

// series are the columns of one file.
type series map[string][]float64

// drawSoak plots the samples in internal/soak/testdata.
func drawSoak(root string) ([]byte, error) {
	var programs []series
	for _, name := range soakPrograms {
		s, err := readSeries(filepath.Join(root, "internal", "soak", "testdata", name+".csv"))
		if err != nil {
			return nil, err
		}
		programs = append(programs, s)
	}
	height := soakTop + (len(soakPanels)+panelsInRow-1)/panelsInRow*panelHeight
	c := &canvas{
		width: 2*16 + panelsInRow*panelWidth, height: height, title: "Load over a long time",
		desc: "Nine plots over time of a program on this stack and of the same program on " +
			"client-go, under load and faults: latencies, memory, goroutines, files.",
	}
	c.text("head", 30, 40, "Under load and faults, minute by minute")
	for i, words := range []string{"this stack", "client-go"} {
		x := 640 + i*130
		c.rect(fmt.Sprintf("k%d", i), x, 33, 24, 4, 2)
		c.text("small", x+32, 40, words)
	}
	for i, p := range soakPanels {
		x, y := 16+i%panelsInRow*panelWidth, soakTop+i/panelsInRow*panelHeight
		if err := p.draw(c, x, y, programs); err != nil {
			return nil, err
		}
	}
	return c.svg(), nil
}

func (p soakPanel) draw(c *canvas, x, y int, programs []series) error {
	most, end := 0.0, 0.0
	for _, s := range programs {
		if len(s[p.column]) == 0 {
			return fmt.Errorf("no column %s", p.column)
		}
		for i, v := range s[p.column] {
			most, end = max(most, v), max(end, s["seconds"][i])
		}
	}
	c.text("small", x+plotLeft, y+16, p.words)
	left, bottom := x+plotLeft, y+plotTop+plotHeight
	onY := func(v float64) int { return bottom - int(math.Round(p.share(v, most)*plotHeight)) }
	for _, tick := range p.ticks(most) {
		c.path("grid", "", point{left, onY(tick)}, point{left + plotWidth, onY(tick)})
		c.anchored("end", "small dim", left-8, onY(tick)+4, p.label(tick))
	}
	for minute := 0.0; minute*60 <= end+1; minute += niceStep(end / 300) {
		at := left + int(minute*60/end*plotWidth)
		c.centred("small dim", at, bottom+17, fmt.Sprintf("%g", minute))
	}
	for i, s := range programs {
		var path strings.Builder
		command := "M"
		for j, v := range s[p.column] {
			if p.least > 0 && v == 0 { // no reconcile in that time
				command = "M"
				continue
			}
			at := left + int(math.Round(s["seconds"][j]/end*plotWidth))
			fmt.Fprintf(&path, "%s%d %d", command, at, onY(v))
			command = "L"
		}
		fmt.Fprintf(&c.body, `<path class="line" style="stroke: var(--%s)" d="%s"/>`+"\n",
			[]string{"accent", "wait"}[i], path.String())
	}
	return nil
}

// share is the place of a value on the axis, from 0 to 1.
func (p soakPanel) share(v, most float64) float64 {
	top := p.ticks(most)[len(p.ticks(most))-1]
	if p.least == 0 {
		return v / top
	}
	return math.Log(max(v, p.least)/p.least) / math.Log(top/p.least)
}

// ticks are the values with a line. The last is not below most.
func (p soakPanel) ticks(most float64) []float64 {
	if p.least > 0 {
		ticks := []float64{p.least}
		for last := p.least; last < most; {
			last *= 10
			ticks = append(ticks, last)
		}
		return ticks
	}
	ticks := []float64{0}
	for step := niceStep(most / 4); ticks[len(ticks)-1] < most; {
		ticks = append(ticks, ticks[len(ticks)-1]+step)
	}
	return ticks
}

// niceStep is the least of 1, 2, 5, 10, 20, ... that is not below v.
func niceStep(v float64) float64 {
	step := 1.0
	for i := 0; step < v; i++ {
		step *= []float64{2, 2.5, 2}[i%3]
	}
	return step
}

func (p soakPanel) label(tick float64) string {
	if p.unit == "ms" && tick >= 1000 {
		return fmt.Sprintf("%g s", math.Round(tick/1000))
	}
	return strings.TrimSpace(fmt.Sprintf("%g %s", math.Round(tick*100)/100, p.unit))
}

// readSeries reads a file with the names of the columns in its first line.
func readSeries(file string) (series, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	reader := csv.NewReader(f)
	reader.Comment = '#'
	lines, err := reader.ReadAll()
	if err != nil || len(lines) < 2 {
		return nil, fmt.Errorf("read %s: %d lines: %w", file, len(lines), err)
	}
	s := series{}
	for _, line := range lines[1:] {
		for i, text := range line {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", file, err)
			}
			s[lines[0][i]] = append(s[lines[0][i]], v)
		}
	}
	return s, nil
}
