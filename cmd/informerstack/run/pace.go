// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bufio"
	"fmt"
	"io"

	"example.com/informerstack/cmd/informerstack/cli"
	"example.com/informerstack/cmd/informerstack/lab"
	"example.com/informerstack/observe/trace"
)

// cursorUp undoes the line break of Enter.
const cursorUp = "\x1b[A"

// pace sets the time control that the page has too: --step lets one hop pass at each Enter, --slow
// delays the hops. It concerns only the hops of an object that are printed.
func (p *page) pace(o *options, std streams, printed func(trace.Event) bool) {
	holds := func(event trace.Event) bool { return event.Key != "" && printed(event) }
	switch {
	case o.slow > 0:
		p.control.SetMode(lab.Slow, o.slow, holds)
	case o.step:
		p.control.SetMode(lab.Pause, 0, holds)
		fmt.Fprintln(std.err, "Enter lets the next hop pass.")
		go p.stepOnEnter(std)
	}
}

// stepOnEnter lets a hop pass for each line of the standard input, and all of them at its end.
func (p *page) stepOnEnter(std streams) {
	_, in := cli.Terminal(std.in)
	_, out := cli.Terminal(std.out)
	for lines := bufio.NewScanner(std.in); lines.Scan(); {
		if in && out {
			_, _ = io.WriteString(std.out, cursorUp)
		}
		p.control.Step()
	}
	p.control.SetMode(lab.Run, 0, nil)
	fmt.Fprintln(std.err, "The standard input has ended: no hop waits any more.")
}
