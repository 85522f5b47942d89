// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

// replicaCost matches a line of scale.txt, which TestScale of e2e/recovery prints: way, replicas,
// received, processor time, and memory.
var replicaCost = regexp.MustCompile(`(?m)^(\w+) (\d+): (\S+) KB, (\S+) µs, (\S+) MB$`)

// ways are the lines of scale.svg, with the class of their dots and the style.
var ways = []struct{ name, class, style string }{
	{"selected", "k0", "stroke: var(--accent)"},
	{"dropped", "k1", "stroke: var(--wait)"},
	{"election", "k2", "stroke: var(--ok)"},
}

// panels are the parts of scale.svg: where they begin, and the values at the top of their axes.
var panels = []struct {
	left int
	top  float64
}{{80, 2}, {370, 200}, {660, 24}}

// plotScale plots scale.txt: bytes, processor time and memory of a replica, by number of replicas.
func plotScale(root string) (string, error) {
	text, err := os.ReadFile(picture(root, "scale.txt"))
	if err != nil {
		return "", err
	}
	runs := replicaCost.FindAllStringSubmatch(string(text), -1)
	var b strings.Builder
	for i, panel := range panels {
		for _, way := range ways {
			var path []string
			for _, run := range runs {
				if run[1] != way.name {
					continue
				}
				var replicas, value float64
				if _, err := fmt.Sscan(run[2]+" "+run[3+i], &replicas, &value); err != nil {
					return "", fmt.Errorf("scale.txt: %q: %w", run[0], err)
				}
				x := panel.left + int((replicas-1)*50)
				y := 324 - int(240*min(value/panel.top, 1))
				fmt.Fprintf(&b, `  <circle class="%s" cx="%d" cy="%d" r="4"/>`+"\n",
					way.class, x, y)
				path = append(path, fmt.Sprintf("%d %d", x, y))
			}
			if len(path) == 0 {
				return "", fmt.Errorf("scale.txt: no run of %s", way.name)
			}
			fmt.Fprintf(&b, `  <path class="line" style="%s" d="M%s"/>`+"\n", way.style,
				strings.Join(path, " L"))
		}
	}
	return b.String(), nil
}
