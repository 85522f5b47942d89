// SPDX-License-Identifier: Apache-2.0

// Pictures writes the pictures of docs/pictures, each from the code that it explains.
//
//	go run ./internal/tools/pictures
//
// The SVGs are the same in every run: the state machines are read from the source, the other
// drawings show what the pieces do in a short run, path.svg shows docs/path.md, speed.svg plots
// docs/pictures/bench.txt. A test compares the committed files with the code. The picture and the
// animation of the laboratory are made by Chromium, if it is installed, and differ from run to run;
// a test in cmd/informerstack/lab/browser compares the labels of the page, in lab.txt, with those
// of the present one.
//
// Read canvas.go and machine.go, then any of the drawings, such as workqueue.go.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// drawings are the pictures that the same source always gives, by file. The argument is the folder
// of the module.
var drawings = map[string]func(root string) ([]byte, error){
	"apitest.svg":        drawServer,
	"controller.svg":     drawController,
	"delays.svg":         drawDelays,
	"deltafifo.svg":      drawDeltaFIFO,
	"growth.svg":         drawGrowth,
	"health.svg":         drawHealth,
	"informer.svg":       drawInformer,
	"journey.svg":        drawJourney,
	"leaderelection.svg": drawElector,
	"metrics.svg":        drawMetrics,
	"path.svg":           drawPath,
	"reflector.svg":      drawReflector,
	"speed.svg":          drawSpeed,
	"store.svg":          drawStore,
	"wire.svg":           drawWire,
	"workqueue.svg":      drawWorkqueue,
}

// photographs are the pictures of the running laboratory.
var photographs = map[string]func(root string) ([]byte, error){
	"lab.png": photograph,
	"lab.gif": animate,
	"lab.txt": listLabels,
}

func main() {
	bench := flag.String("bench", "", "first make bench.txt of this `file`: make bench writes it")
	lab := flag.Bool("lab", true, "also make the pictures of the laboratory, with Chromium")
	flag.Parse()
	if err := run(".", *bench, *lab); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

func run(root, bench string, lab bool) error {
	if bench != "" {
		output, err := os.ReadFile(bench)
		if err != nil {
			return err
		}
		ratios, err := condense(output)
		if err != nil {
			return err
		}
		if err := write(root, "bench.txt", ratios); err != nil {
			return err
		}
	}
	if err := writeAll(root, drawings); err != nil || !lab {
		return err
	}
	if _, err := chromium(); err != nil {
		fmt.Println("the pictures of the laboratory are as before:", err)
		return nil
	}
	return writeAll(root, photographs)
}

func writeAll(root string, pictures map[string]func(string) ([]byte, error)) error {
	for _, name := range sortedKeys(pictures) {
		content, err := pictures[name](root)
		if err != nil {
			return fmt.Errorf("draw %s: %w", name, err)
		}
		if err := write(root, name, content); err != nil {
			return err
		}
	}
	return nil
}

// write writes a file of docs/pictures if its content has changed.
func write(root, name string, content []byte) error {
	file := filepath.Join(root, "docs", "pictures", name)
	if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, content) {
		return nil
	}
	fmt.Println("write", name)
	return os.WriteFile(file, content, 0o644)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// splitLines splits words at "\n"; no words are no lines.
func splitLines(words string) []string {
	if words == "" {
		return nil
	}
	return strings.Split(words, "\n")
}
