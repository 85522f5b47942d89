// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"

	"example.com/informerstack/cmd/informerstack/cli"
)

// waits reports whether the stack waits for the reader, so that no hop follows the printed link
// before it can be clicked. Only a person reads a terminal and presses Enter there. The flags that
// others wait for, that bound the time, or that use Enter themselves let the stack begin at once.
func (o *options) waits(std streams) bool {
	_, in := cli.Terminal(std.in)
	_, out := cli.Terminal(std.out)
	atOnce := o.step || o.listen != "" || o.duration > 0 || o.election.elect ||
		o.sharing.count > 0
	return in && out && o.servesPage() && !atOnce
}

// begin prints the link. If the stack waits, begin returns when Enter is pressed, the input ends,
// or the page is opened. It returns false if ctx ends before.
func (o *options) begin(
	ctx context.Context, std streams, shown *page, listener net.Listener,
) bool {
	if !o.servesPage() {
		return true
	}
	link := fmt.Sprintf("http://%s/%s/", listener.Addr(), shown.token)
	if !o.waits(std) {
		fmt.Fprintf(std.err, "Open %s to see it in the browser.\n", link)
		return true
	}
	fmt.Fprintf(std.err, "Press Enter to see the hops here, or open %s\n", link)
	select {
	case <-entered(std.in):
		return true
	case <-shown.opened:
		return true
	case <-ctx.Done():
		return false
	}
}

// entered returns a channel that is closed at the first line of the input, or at its end. The input
// of a program in the background is at its end.
func entered(in io.Reader) <-chan struct{} {
	endInBackground()
	lines := make(chan struct{})
	go func() {
		defer close(lines)
		_, _ = bufio.NewReader(in).ReadString('\n')
	}()
	return lines
}
