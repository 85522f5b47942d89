// SPDX-License-Identifier: Apache-2.0

// Pictures plots the measurements in docs/pictures.
//
//	go run ./internal/tools/pictures                         # plot speed, growth, scale, fairness
//	go run ./internal/tools/pictures -bench bin/bench.txt    # the same, after a run of make bench
//
// The head and the axes of a plot are written by hand, like the other drawings of docs/pictures.
// This program writes what follows the line "plotted by". A test compares the committed files with
// the measurements.
//
// Read speed.go (bench.txt and its plot), then growth.go, scale.go and fairness.go.
package main

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	bench := flag.String("bench", "", "first make bench.txt of this `file`: make bench writes it")
	flag.Parse()
	if err := run(".", *bench); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

func run(root, bench string) error {
	if bench != "" {
		output, err := os.ReadFile(bench)
		if err != nil {
			return err
		}
		ratios := condense(string(output))
		if err := os.WriteFile(picture(root, "bench.txt"), ratios, 0o644); err != nil {
			return err
		}
	}
	for _, name := range plots {
		content, err := plot(root, name)
		if err != nil {
			return fmt.Errorf("plot %s: %w", name, err)
		}
		if err := os.WriteFile(picture(root, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// plots are the pictures of measurements.
var plots = []string{"fairness.svg", "growth.svg", "scale.svg", "speed.svg"}

func picture(root, name string) string { return filepath.Join(root, "docs", "pictures", name) }

// plotted is the last line of a plot that is written by hand.
const plotted = "  <!-- plotted by make pictures -->\n"

// plot returns the present file of a plot, with its measurements plotted again.
func plot(root, name string) ([]byte, error) {
	before, err := os.ReadFile(picture(root, name))
	if err != nil {
		return nil, err
	}
	byHand, _, ok := strings.Cut(string(before), plotted)
	if !ok {
		return nil, fmt.Errorf("no line %q", plotted)
	}
	draw := map[string]func(root string) (string, error){
		"fairness.svg": plotFairness, "growth.svg": plotGrowth, "scale.svg": plotScale,
		"speed.svg": plotSpeed,
	}
	marks, err := draw[name](root)
	return []byte(byHand + plotted + marks + "</svg>\n"), err
}

// onLogAxis is the position of a value on a logarithmic axis of length pixels from least to most.
func onLogAxis(value, least, most, length float64) int {
	return int(math.Round(math.Log(value/least) / math.Log(most/least) * length))
}
