// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// firstSync matches a line of growth.txt, which make growth writes: pods, content, implementation,
// processor time per pod, and memory.
var firstSync = regexp.MustCompile(`(?m)^(\d+) \S+/content=(\w+)/impl=(ours|client-go)-.*` +
	`\s(\S+) cpu-ns/object.*\s(\S+) peak-B`)

// curves are the lines of a plot, with the class of their dots and the style.
var curves = []struct{ implementation, content, class, style string }{
	{"ours", "json", "k0", "stroke: var(--accent)"},
	{"ours", "protobuf", "k0", "stroke: var(--accent); stroke-dasharray: 6 4"},
	{"client-go", "json", "k1", "stroke: var(--wait)"},
	{"client-go", "protobuf", "k1", "stroke: var(--wait); stroke-dasharray: 6 4"},
}

// plotGrowth plots growth.txt: processor time on the left, memory on the right, by number of pods.
func plotGrowth(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, "internal/tools/firstsync/testdata/growth.txt"))
	if err != nil {
		return "", err
	}
	runs := firstSync.FindAllStringSubmatch(string(text), -1)
	var b strings.Builder
	for _, left := range []int{80, 520} {
		for _, c := range curves {
			var path []string
			for _, run := range runs {
				if run[2] != c.content || run[3] != c.implementation {
					continue
				}
				var pods, nanoseconds, bytes float64
				numbers := strings.Join([]string{run[1], run[4], run[5]}, " ")
				if _, err := fmt.Sscan(numbers, &pods, &nanoseconds, &bytes); err != nil {
					return "", fmt.Errorf("growth.txt: %q: %w", run[0], err)
				}
				x := left + onLogAxis(pods, 1e4, 1e6, 340)
				y := 324 - onLogAxis(pods*nanoseconds/1e9, 0.1, 1000, 240)
				if left == 520 {
					y = 324 - onLogAxis(bytes, 1e7, 1e11, 240)
				}
				fmt.Fprintf(&b, `  <circle class="%s" cx="%d" cy="%d" r="4"/>`+"\n", c.class, x, y)
				path = append(path, fmt.Sprintf("%d %d", x, y))
			}
			if len(path) == 0 {
				return "", fmt.Errorf("growth.txt: no run of %s, %s", c.implementation, c.content)
			}
			fmt.Fprintf(&b, `  <path class="line" style="%s" d="M%s"/>`+"\n", c.style,
				strings.Join(path, " L"))
		}
	}
	return b.String(), nil
}
