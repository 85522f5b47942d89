// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/informerstack/apitest"
	"example.com/informerstack/observe/trace"
)

// printed returns the lines of a text output without their times.
func printed(output string) []string {
	return strings.Split(regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d\.\d\d\d `).
		ReplaceAllString(strings.TrimSuffix(output, "\n"), ""), "\n")
}

// events returns the events of an output in JSON, and its summary.
func (p *process) events(t *testing.T) (events []trace.Event, end report) {
	t.Helper()
	for lines := bufio.NewScanner(strings.NewReader(p.stdout.String())); lines.Scan(); {
		var line struct {
			trace.Event
			Summary *report
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &line))
		if line.Summary != nil {
			end = *line.Summary
			continue
		}
		events = append(events, line.Event)
	}
	return events, end
}

// The legend is followed by the first list as one line, and by each change after a blank line.
func TestRun_PrintsChangesNotTheFirstList(t *testing.T) {
	server, kubeconfig := foreign(t)
	for _, name := range []string{"a", "b", "c"} {
		require.NoError(t, server.Create(labelled(name)))
	}
	p := start(t, "run", "--kubeconfig", kubeconfig, "--reconcile", "--workers", "1")
	require.Eventually(t, func() bool {
		answered := 0
		for _, patch := range server.Requests(apitest.Match{Verb: "patch"}) {
			if patch.Code == http.StatusOK {
				answered++
			}
		}
		return answered == 3
	}, patience, time.Millisecond)
	p.prints(t, "streaming -> watching")
	p.prints(t, "To see how one of them was loaded, add --key default/")
	require.NoError(t, server.Create(configMap("plain")))
	p.prints(t, "OnAdd default/plain")
	require.NoError(t, server.Delete(configMap("plain")))
	p.prints(t, "OnDelete default/plain")
	p.interrupt()
	p.exits(t, exitOK)
	assert.True(t, strings.HasPrefix(p.stdout.String(), "A line is one hop of a change: "))
	begin := strings.Index(p.stdout.String(), " reflector      starting")
	const last = "OnDelete default/plain @12"
	end := strings.Index(p.stdout.String(), last) + len(last)
	lines := strings.Join(printed(p.stdout.String()[begin-len("15:04:05.000 "):end]), "\n")
	assert.Equal(t, ` reflector      starting -> streaming
server          WATCH (from "", initial events first)
server          BOOKMARK @7
  deltafifo     Replace @7 (3 items; the hops of this first list are not shown)
 reflector      streaming -> watching

server          ADDED default/plain @11
  deltafifo     Add default/plain @11
  deltafifo     Pop default/plain @11 (Added)
   store        Add default/plain @11
    handler     OnAdd default/plain @11

server          DELETED default/plain @12
  deltafifo     Delete default/plain @12
  deltafifo     Pop default/plain @12 (Deleted)
   store        Delete default/plain @12
    handler     OnDelete default/plain @12`, lines)
}

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

// After a relist, the hops of the changed object are printed, and not those of the others.
func TestRun_PrintsWhatARelistChanged(t *testing.T) {
	for _, queue := range []string{"deltafifo", "realfifo"} {
		t.Run(queue, func(t *testing.T) {
			server, kubeconfig := foreign(t)
			for _, name := range []string{"a", "b", "c"} {
				require.NoError(t, server.Create(configMap(name)))
			}
			p := start(t, "run", "--kubeconfig", kubeconfig, "--queue", queue)
			p.prints(t, "Loaded 3 objects")
			p.prints(t, "-> watching")
			allow := server.Faults().RefuseConnections()
			changed := labelled("b")
			require.NoError(t, server.Get(changed))
			changed.Data = map[string]string{"color": "blue"}
			require.NoError(t, server.Update(changed))
			server.Faults().Compact()
			require.NoError(t, allow())
			p.prints(t, "Done default/b")
			p.interrupt()
			p.exits(t, exitOK)
			assert.Contains(t, p.stdout.String(), "the hops of unchanged objects are not shown")
			assert.NotContains(t, p.stdout.String(), "default/a")
			assert.NotContains(t, p.stdout.String(), "default/c")
		})
	}
}

func TestRun_KeyFollowsOneObject(t *testing.T) {
	p := start(t, "run", "--key", "settings-1", "--rate", "0", "--no-page")
	for _, hop := range []string{"ADDED", "Pop", "OnAdd", "Get", "reconciled"} {
		p.prints(t, hop+" default/settings-1")
	}
	p.interrupt()
	p.exits(t, exitOK)
	assert.NotRegexp(t, `default/settings-([02-9]|1\d)`, p.stdout.String())

	p = start(t, "run", "--key", "default/none", "--rate", "0", "--no-page")
	p.prints(t, "There is no object default/none yet. A key is, for")
	p.interrupt()
	p.exits(t, exitOK)
}

// The lines carry the name of the queue that the flag selects.
func TestRun_NamesTheQueue(t *testing.T) {
	for queue, other := range map[string]string{"realfifo": "deltafifo", "deltafifo": "realfifo"} {
		p := start(t, "run", "--queue", queue, "--rate", "100", "--no-page")
		p.prints(t, "  "+queue+" ")
		p.prints(t, "MODIFIED")
		p.interrupt()
		p.exits(t, exitOK)
		assert.NotContains(t, p.stdout.String(), other)
	}
}

// With faults, the reflector is visible: what the server does, the reason, and the wait.
func TestRun_FaultsAreVisible(t *testing.T) {
	p := start(t, "run", "--faults", "--rate", "50", "--no-page")
	for _, text := range []string{"server          FAULT (the watch ",
		" reflector      watching -> ", " reflector      backing off (for ",
		"FAULT default/settings-"} {
		p.prints(t, text)
	}
	p.interrupt()
	p.exits(t, exitOK)
}

// A failed reconcile is named, counted as such, and followed by its retry with the delay. Without a
// success there is no median.
func TestRun_FailuresAndRetries(t *testing.T) {
	server, kubeconfig := foreign(t)
	require.NoError(t, server.Create(labelled("a")))
	server.Faults().Fail(0, apitest.Match{Verb: "patch"},
		apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "a", nil))
	p := start(t, "run", "--kubeconfig", kubeconfig, "--reconcile")
	p.prints(t, "workqueue  AddRateLimited default/a (in 5ms, failure 1)")
	p.prints(t, "workqueue  AddRateLimited default/a (in 10ms, failure 2)")
	p.interrupt()
	p.exits(t, exitOK)
	assert.Regexp(t, `worker    failed default/a \(took .*\) error: Operation cannot be fulfilled`,
		p.stdout.String())
	assert.NotContains(t, p.stdout.String(), "reconciled")
	assert.Regexp(t, `\n  worker     .*failed \d`, p.stdout.String())
}

// The keys that are queued at the stop are one line, and no hops. The second write is answered
// after the stop, so that most keys are queued then.
func TestRun_LeftKeysAreOneLine(t *testing.T) {
	server, kubeconfig := foreign(t)
	for i := range 2000 {
		require.NoError(t, server.Create(labelled(fmt.Sprint(i))))
	}
	var writes atomic.Int32
	stopped := make(chan struct{})
	server.Faults().Add(apitest.Fault{
		Match: apitest.Match{Verb: "patch", If: func(apitest.Request) bool {
			return writes.Add(1) == 2
		}},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			<-stopped
			w.WriteHeader(http.StatusConflict)
		}),
	})
	p := start(t, "run", "--kubeconfig", kubeconfig, "--reconcile", "--workers", "1", "--no-page",
		"--output", "json")
	p.prints(t, "Loaded 2,000 objects")
	p.prints(t, `"what":"reconciled"`)
	require.Eventually(t, func() bool { return writes.Load() == 2 }, patience, time.Millisecond)
	p.interrupt()
	close(stopped)
	p.exits(t, exitOK)
	events, end := p.events(t)
	counts := end.Counts[trace.Workqueue]
	assert.Equal(t, end.Counts[trace.Worker]["reconcile"], counts["Get"])
	assert.Equal(t, counts["Get"], counts["Done"])
	assert.Less(t, counts["Get"], 1500)
	require.NotEmpty(t, events)
	last := events[len(events)-1]
	assert.Equal(t, "ShutDown", last.What)
	assert.Regexp(t, `^[\d,]+ keys left in the queue$`, last.Detail)
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
	assert.Equal(t, []string{"1", "999", "1,000", "44,998", "1,234,567"}, []string{
		thousands(1), thousands(999), thousands(1000), thousands(44_998), thousands(1_234_567)})
}

// Ctrl-C is no failure: no error is printed, in either format, and the exit code is 0.
func TestRun_InterruptIsSilent(t *testing.T) {
	for _, output := range []string{"text", "json"} {
		p := start(t, "run", "--output", output, "--rate", "0", "--no-page")
		p.prints(t, "Loaded 20 objects")
		p.prints(t, "watching")
		p.interrupt()
		p.exits(t, exitOK)
		assert.NotContains(t, p.stdout.String(), "ERROR")
		assert.NotContains(t, p.stdout.String(), "error\"")
		assert.NotContains(t, p.stdout.String(), "backing off")
	}
}

// JSON has every hop, in the order of time, and a key is never a path.
func TestRun_JSONIsOrdered(t *testing.T) {
	p := start(t, "run", "--output", "json", "--rate", "500", "--workers", "8", "--no-page")
	p.prints(t, `"what":"MODIFIED"`)
	p.prints(t, `"what":"PATCH"`)
	p.reconcilesChanges(t)
	p.interrupt()
	p.exits(t, exitOK)
	events, end := p.events(t)
	assert.NotZero(t, end.TravelMedian)
	assert.NotZero(t, end.TravelMax)
	whats := map[string]bool{}
	for i, event := range events {
		assert.False(t, i > 0 && event.Time.Before(events[i-1].Time), "%v", event)
		assert.NotContains(t, event.Key, "/api")
		assert.True(t, event.What != "PATCH" || event.Key != "")
		whats[event.What] = true
	}
	for _, what := range []string{"ADDED", "MODIFIED", "PATCH", "Pop", "Get", "reconciled"} {
		assert.True(t, whats[what], what)
	}
}
