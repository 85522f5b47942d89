// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/informerstack/apitest"
	"example.com/informerstack/cmd/informerstack/cli"
	"example.com/informerstack/cmd/informerstack/cli/clitest"
	"example.com/informerstack/observe/trace"
)

// printed returns the lines of a text output without their times.
func printed(output string) []string {
	return strings.Split(regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d\.\d\d\d `).
		ReplaceAllString(strings.TrimSuffix(output, "\n"), ""), "\n")
}

// report is the summary of an output in JSON.
type report struct {
	Objects      int
	Counts       map[trace.Hop]map[string]int
	TravelMedian time.Duration `json:"travelMedianNanoseconds"`
	TravelMax    time.Duration `json:"travelMaxNanoseconds"`
}

// events returns the events of an output in JSON, and its summary.
func (p *process) events(t *testing.T) (events []trace.Event, end report) {
	t.Helper()
	for lines := bufio.NewScanner(strings.NewReader(p.Stdout.String())); lines.Scan(); {
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
	}, clitest.Patience, time.Millisecond)
	p.Prints(t, "streaming -> watching")
	p.Prints(t, "To see how one of them was loaded, add --key default/")
	require.NoError(t, server.Create(configMap("plain")))
	p.Prints(t, "OnAdd default/plain")
	require.NoError(t, server.Delete(configMap("plain")))
	p.Prints(t, "OnDelete default/plain")
	p.Stops(t)
	assert.True(t, strings.HasPrefix(p.Stdout.String(), "A line is one hop of a change: "))
	begin := strings.Index(p.Stdout.String(), " reflector      starting")
	const last = "OnDelete default/plain @12"
	end := strings.Index(p.Stdout.String(), last) + len(last)
	lines := strings.Join(printed(p.Stdout.String()[begin-len("15:04:05.000 "):end]), "\n")
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

// After a relist, the hops of the changed object are printed, and not those of the others.
func TestRun_PrintsWhatARelistChanged(t *testing.T) {
	for _, queue := range []string{"deltafifo", "realfifo"} {
		t.Run(queue, func(t *testing.T) {
			server, kubeconfig := foreign(t)
			for _, name := range []string{"a", "b", "c"} {
				require.NoError(t, server.Create(configMap(name)))
			}
			p := start(t, "run", "--kubeconfig", kubeconfig, "--queue", queue)
			p.Prints(t, "Loaded 3 objects")
			p.Prints(t, "-> watching")
			allow := server.Faults().RefuseConnections()
			changed := labelled("b")
			require.NoError(t, server.Get(changed))
			changed.Data = map[string]string{"color": "blue"}
			require.NoError(t, server.Update(changed))
			server.Faults().Compact()
			require.NoError(t, allow())
			p.Prints(t, "Done default/b")
			p.Stops(t)
			assert.Contains(t, p.Stdout.String(), "the hops of unchanged objects are not shown")
			assert.NotContains(t, p.Stdout.String(), "default/a")
			assert.NotContains(t, p.Stdout.String(), "default/c")
		})
	}
}

func TestRun_KeyFollowsOneObject(t *testing.T) {
	p := start(t, "run", "--key", "settings-1", "--rate", "0", "--no-page")
	for _, hop := range []string{"ADDED", "Pop", "OnAdd", "Get", "reconciled"} {
		p.Prints(t, hop+" default/settings-1")
	}
	p.Stops(t)
	assert.NotRegexp(t, `default/settings-([02-9]|1\d)`, p.Stdout.String())

	p = start(t, "run", "--key", "default/none", "--rate", "0", "--no-page")
	p.Prints(t, "There is no object default/none yet. A key is, for")
	p.Stops(t)
}

// The lines carry the name of the queue that the flag selects.
func TestRun_NamesTheQueue(t *testing.T) {
	for queue, other := range map[string]string{"realfifo": "deltafifo", "deltafifo": "realfifo"} {
		p := start(t, "run", "--queue", queue, "--rate", "100", "--no-page")
		p.Prints(t, "  "+queue+" ")
		p.Prints(t, "MODIFIED")
		p.Stops(t)
		assert.NotContains(t, p.Stdout.String(), other)
	}
}

// With faults, the reflector is visible: what the server does, the reason, and the wait.
func TestRun_FaultsAreVisible(t *testing.T) {
	p := start(t, "run", "--faults", "--rate", "50", "--no-page")
	for _, text := range []string{"server          FAULT (the watch ",
		" reflector      watching -> ", " reflector      backing off (for ",
		"FAULT default/settings-"} {
		p.Prints(t, text)
	}
	p.Stops(t)
}

// A failed reconcile is named, counted as such, and followed by its retry with the delay. Without a
// success there is no median.
func TestRun_FailuresAndRetries(t *testing.T) {
	server, kubeconfig := foreign(t)
	require.NoError(t, server.Create(labelled("a")))
	server.Faults().Fail(0, apitest.Match{Verb: "patch"},
		apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "a", nil))
	p := start(t, "run", "--kubeconfig", kubeconfig, "--reconcile")
	p.Prints(t, "workqueue  AddRateLimited default/a (in 5ms, failure 1)")
	p.Prints(t, "workqueue  AddRateLimited default/a (in 10ms, failure 2)")
	p.Stops(t)
	assert.Regexp(t, `worker    failed default/a \(took .*\) error: Operation cannot be fulfilled`,
		p.Stdout.String())
	assert.NotContains(t, p.Stdout.String(), "reconciled")
	assert.Regexp(t, `\n  worker     .*failed \d`, p.Stdout.String())
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
	p.Prints(t, "Loaded 2,000 objects")
	p.Prints(t, `"what":"reconciled"`)
	require.Eventually(t, func() bool { return writes.Load() == 2 }, clitest.Patience,
		time.Millisecond)
	p.Interrupt()
	close(stopped)
	p.Exits(t, cli.OK)
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

// Ctrl-C is no failure: no error is printed, in either format, and the exit code is 0.
func TestRun_InterruptIsSilent(t *testing.T) {
	for _, output := range []string{"text", "json"} {
		p := start(t, "run", "--output", output, "--rate", "0", "--no-page")
		p.Prints(t, "Loaded 20 objects")
		p.Prints(t, "watching")
		p.Stops(t)
		assert.NotContains(t, p.Stdout.String(), "ERROR")
		assert.NotContains(t, p.Stdout.String(), "error\"")
		assert.NotContains(t, p.Stdout.String(), "backing off")
	}
}

// JSON has every hop, in the order of time, and a key is never a path.
func TestRun_JSONIsOrdered(t *testing.T) {
	p := start(t, "run", "--output", "json", "--rate", "500", "--workers", "8", "--no-page")
	p.Prints(t, `"what":"MODIFIED"`)
	p.Prints(t, `"what":"PATCH"`)
	p.reconcilesChanges(t)
	p.Stops(t)
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

// Where there is nothing to see, the program explains why.
func TestRun_ExplainsWhyThereIsNothing(t *testing.T) {
	server, kubeconfig := foreign(t)
	for _, name := range []string{"a", "b", "c"} {
		require.NoError(t, server.Create(labelled(name)))
	}
	for _, test := range []struct {
		args []string
		says string
	}{
		{[]string{"--objects", "0", "--rate", "0"},
			"There are no configmaps there yet. Lines follow when one is created."},
		{[]string{"--namespace", "kube-system"}, "There are no configmaps in namespace " +
			"kube-system: the embedded server's are in namespace default."},
		{[]string{"--resource", "pods"}, "The embedded server changes only configmaps."},
		{[]string{"--kubeconfig", kubeconfig, "--selector", "app=web"},
			"No object matches the selector. Without it there are at least 3."},
		{[]string{"--kubeconfig", kubeconfig, "--field-selector", "metadata.name=x"},
			"No object matches the selector."},
		{[]string{"--kubeconfig", kubeconfig, "--namespace", "kube-system"},
			"There are no configmaps in namespace kube-system yet."},
	} {
		p := start(t, append([]string{"run"}, test.args...)...)
		p.Prints(t, test.says)
		p.Stops(t)
		assert.NotContains(t, p.Stderr.String(), "--key")
	}
}
