// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"
)

// fairQueues are the lines of fairness.svg, with the class of their dots and the style.
var fairQueues = []struct{ name, class, style string }{
	{"ours", "k1", "stroke: var(--wait)"},
	{"controller-runtime", "k2", "stroke: var(--ok); stroke-dasharray: 6 4"},
	{"fair", "k0", "stroke: var(--accent)"},
}

// plotFairness plots fairness.txt, which TestFairness of compat/example writes: queue, keys of the
// flood, and microseconds until 99 of 100 keys of the others are reconciled.
func plotFairness(root string) (string, error) {
	text, err := os.ReadFile(picture(root, "fairness.txt"))
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, queue := range fairQueues {
		var path []string
		for line := range strings.Lines(string(text)) {
			var name string
			var flood, micros float64
			if _, err := fmt.Sscan(line, &name, &flood, &micros); err != nil {
				return "", fmt.Errorf("fairness.txt: %q: %w", line, err)
			}
			if name != queue.name {
				continue
			}
			x, y := 90+onLogAxis(flood, 1, 1e5, 500), 324-onLogAxis(micros, 1e4, 1e9, 240)
			fmt.Fprintf(&b, `  <circle class="%s" cx="%d" cy="%d" r="4"/>`+"\n", queue.class, x, y)
			path = append(path, fmt.Sprintf("%d %d", x, y))
		}
		if len(path) == 0 {
			return "", fmt.Errorf("fairness.txt: no run of %s", queue.name)
		}
		fmt.Fprintf(&b, `  <path class="line" style="%s" d="M%s"/>`+"\n", queue.style,
			strings.Join(path, " L"))
	}
	return b.String(), nil
}
