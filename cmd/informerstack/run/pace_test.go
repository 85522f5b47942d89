// SPDX-License-Identifier: Apache-2.0

package run

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/cmd/informerstack/cli/clitest"
	"example.com/informerstack/observe/trace"
)

// stdin replaces the standard input until the end of the test.
func stdin(t *testing.T) *os.File {
	t.Helper()
	read, write, err := os.Pipe()
	require.NoError(t, err)
	before := os.Stdin
	os.Stdin = read
	t.Cleanup(func() {
		os.Stdin = before
		write.Close()
		read.Close()
	})
	return write
}

// Enter lets one hop of the key pass. At the end of the input all of them pass.
func TestRun_StepWaitsForEnter(t *testing.T) {
	for _, page := range []string{"--no-page", "--no-page=false"} {
		t.Run(page, func(t *testing.T) {
			server, kubeconfig := foreign(t)
			require.NoError(t, server.Create(configMap("a"))) // the handler ignores it
			enter := stdin(t)
			p := start(t, "run", "--kubeconfig", kubeconfig, "--reconcile", "--step", page)
			p.Prints(t, "Enter lets the next hop pass.")
			p.Prints(t, "Loaded 1 object ")
			require.NoError(t, server.Update(labelled("a")))
			hops := []string{"MODIFIED default/a", "Update default/a", "Pop default/a",
				"Update default/a @6 (was @5)", "OnUpdate default/a", "Add default/a"}
			for i, hop := range hops {
				_, err := enter.WriteString("\n")
				require.NoError(t, err)
				p.Prints(t, hop)
				for _, later := range hops[min(i+2, len(hops)):] {
					assert.NotContains(t, p.Stdout.String(), later)
				}
			}
			assert.NotContains(t, p.Stdout.String(), "reconcile default/a")
			require.NoError(t, enter.Close())
			p.Prints(t, "no hop waits any more")
			p.Prints(t, "Done default/a")
			p.Stops(t)
		})
	}
}

// Ctrl-C ends a program while its hops are held.
func TestRun_StepEnds(t *testing.T) {
	enter := stdin(t)
	p := start(t, "run", "--step", "--rate", "100", "--no-page")
	p.Prints(t, "Loaded ")
	_, err := enter.WriteString("\n")
	require.NoError(t, err)
	change := regexp.MustCompile(`server +(ADDED|MODIFIED|DELETED) default/`)
	require.Eventually(t, func() bool { return change.MatchString(p.Stdout.String()) },
		clitest.Patience, time.Millisecond) // the next hop is held
	p.Stops(t)
}

// --slow delays each hop of an object, and not the first list.
func TestRun_SlowDelaysHops(t *testing.T) {
	const slow = 20 * time.Millisecond
	server, kubeconfig := foreign(t)
	for _, name := range strings.Split("abcdefghijklmnopqrst", "") {
		require.NoError(t, server.Create(labelled(name)))
	}
	p := start(t, "run", "--kubeconfig", kubeconfig, "--slow", slow.String(), "--no-page",
		"--output", "json", "--key", "default/new")
	p.Prints(t, "Loaded 20 objects")
	require.NoError(t, server.Create(configMap("new")))
	p.Prints(t, `"Done","key":"default/new"`)
	p.Stops(t)
	events, _ := p.events(t)
	var last trace.Event
	for _, event := range events {
		if event.Key == "" {
			continue
		}
		assert.Equal(t, "default/new", event.Key)
		if last.Key != "" && event.Hop != last.Hop {
			assert.GreaterOrEqual(t, event.Time.Sub(last.Time), slow, "%s after %s", event.What,
				last.What)
		}
		last = event
	}
}
