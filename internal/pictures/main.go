// SPDX-License-Identifier: Apache-2.0

// Pictures draws the pictures of docs/pictures, each from the code that it explains.
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

// drawings are the pictures that the same source always gives, by file. The argument is the
// folder of the module.
var drawings = map[string]func(root string) ([]byte, error){
	"leaderelection.svg": drawElector,
	"informer.svg":       drawInformer,
	"controller.svg":     drawController,
	"path.svg":           drawPath,
	"speed.svg":          drawSpeed,
	"reflector.svg":      drawReflector,
	"store.svg":          drawStore,
	"workqueue.svg":      drawWorkqueue,
	"deltafifo.svg":      drawDeltaFIFO,
}

func main() {
	bench := flag.String("bench", "", "a file")
	flag.Parse()
	if *bench != "" {
		t, _ := os.ReadFile(*bench)
		o, err := condense(t)
		fmt.Println(err)
		os.WriteFile("docs/pictures/bench.txt", o, 0o644)
	}
	for _, name := range sortedKeys(drawings) {
		b, err := drawings[name](".")
		if err != nil {
			fmt.Println(name, err)
			continue
		}
		file := filepath.Join("docs/pictures", name)
		if old, _ := os.ReadFile(file); !bytes.Equal(old, b) {
			_ = os.WriteFile(file, b, 0o644)
			fmt.Println("wrote", file)
		}
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// splitLines splits words at "\n"; no words are no lines.
func splitLines(words string) []string {
	if words == "" {
		return nil
	}
	return strings.Split(words, "\n")
}
