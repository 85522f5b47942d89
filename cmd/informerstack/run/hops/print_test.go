// SPDX-License-Identifier: Apache-2.0

package hops

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"example.com/informerstack/observe/trace"
)

// printHops returns the hops, each "HOP WHAT KEY VERSION (DETAIL)", that a printer writes.
func printHops(hops ...[]string) []string {
	var lines []string
	p := newPrinter(io.Discard, func(e trace.Event) {
		lines = append(lines, strings.TrimSpace(fmt.Sprint(e.Hop, " ", e.What, " ", e.Key)))
	}, "")
	for _, hop := range slices.Concat(hops...) {
		hop, detail, _ := strings.Cut(hop, " (")
		words := append(strings.Fields(hop), "", "")
		p.print(trace.Event{Hop: trace.Hop(words[0]), What: words[1], Key: words[2],
			ResourceVersion: words[3], Detail: strings.TrimSuffix(detail, ")")})
	}
	return lines
}

// A change during the first reconcile of a listed object is the user's if the worker has not
// written, or if there is a second one. Its hops are then printed at the end of the reconcile.
func TestPrinter_ChangeDuringTheFirstReconcile(t *testing.T) {
	first := []string{"deltafifo Replace", "deltafifo Pop a 1 (Replaced)",
		"handler OnAdd a 1 (initial list)", "workqueue Get a", "worker reconcile a"}
	change := []string{"server MODIFIED a 2", "deltafifo Update a 2"}
	patch := []string{"server PATCH a (200 OK)"}
	conflict := []string{"server PATCH a (409 Conflict)"}
	end := []string{"worker reconciled a", "workqueue Done a", "handler OnUpdate a 2"}

	list, patched := []string{"deltafifo Replace"}, []string{"server PATCH a"}
	changed := []string{"server MODIFIED a", "deltafifo Update a"}
	ended := []string{"worker reconciled a", "workqueue Done a", "handler OnUpdate a"}

	assert.Equal(t, slices.Concat(list, changed, ended), printHops(first, change, end), "a user's")
	assert.Equal(t, list, printHops(first, change, patch, end), "the worker's")
	assert.Equal(t, slices.Concat(list, changed), printHops(first, change, patch, end, change),
		"a user's after the end")
	assert.Equal(t, slices.Concat(list, changed, patched, changed, ended),
		printHops(first, change, patch, change, end), "one of each")
	assert.Equal(t, slices.Concat(list, changed, patched, ended),
		printHops(first, change, conflict, end), "a user's, and a write that the server refused")
}

// The objects of a streaming list that is tried again are not printed.
func TestPrinter_SecondStreamingList(t *testing.T) {
	var lines []string
	p := newPrinter(io.Discard, func(e trace.Event) { lines = append(lines, e.What) }, "")
	object := trace.Event{Hop: trace.Server, What: "ADDED", Key: "a", ResourceVersion: "1"}
	for range 2 {
		p.print(trace.Event{Hop: trace.Reflector, What: "starting -> streaming"})
		p.print(object)
		p.print(trace.Event{Hop: trace.Reflector, What: "backing off"})
		p.print(object)
	}
	assert.NotContains(t, lines, "ADDED")
}

// A key that a worker had before the stop is finished, and one that it gets after is not counted.
func TestLeftKeys(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	var seen []string
	left := &leftKeys{ctx: ctx, gets: map[string]trace.Event{}, next: func(e trace.Event) {
		seen = append(seen, strings.TrimSpace(fmt.Sprint(e.What, " ", e.Key, " ", e.Detail)))
	}}
	queue := func(what, key string) {
		left.record(trace.Event{Hop: trace.Workqueue, What: what, Key: key})
	}
	worker := func(what, key string) {
		left.record(trace.Event{Hop: trace.Worker, What: what, Key: key})
	}
	queue("Get", "a")
	worker("reconcile", "a")
	stop()
	worker("reconciled", "a")
	queue("Done", "a")
	queue("Get", "b") // just before the controller sees the stop
	worker("reconcile", "b")
	queue("Done", "b")
	queue("Get", "c")
	queue("Done", "c")
	left.end()
	assert.Equal(t, []string{"Get a", "reconcile a", "reconciled a", "Done a", "Get b",
		"reconcile b", "Done b", "ShutDown  1 key left in the queue"}, seen)
}
