// SPDX-License-Identifier: Apache-2.0

package trace_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"example.com/informerstack/apitest"
	"example.com/informerstack/controller"
	"example.com/informerstack/observe/trace"
)

// One change, from the wire to the worker: every hop, once, in this order.
func TestStory_OneChangeFromTheServerToTheWorker(t *testing.T) {
	story(t, options{objects: []string{"a"}}, func(w *world) {
		w.traced()
		w.server.UpdateMap("a")
		assert.Equal(t, []string{
			"server MODIFIED default/a",
			"deltafifo Update default/a",
			"deltafifo Pop default/a",
			"store Update default/a",
			"handler OnUpdate default/a",
			"workqueue Add default/a",
			"workqueue Get default/a",
			"worker reconcile default/a",
			"worker reconciled default/a",
			"workqueue Forget default/a",
			"workqueue Done default/a",
		}, w.traced())
	})
}

// The write of a worker comes back as a change like any other.
func TestStory_AWriteComesBack(t *testing.T) {
	story(t, options{}, func(w *world) {
		written := false
		w.reconcile = func(ctx context.Context, key string) (controller.Result, error) {
			if written {
				return controller.Result{}, nil
			}
			written = true
			return controller.Result{}, w.annotate(ctx, strings.TrimPrefix(key, "default/"))
		}
		w.traced()
		w.server.CreateMap("a")
		lines := w.traced()
		assert.Equal(t, "server ADDED default/a", lines[0])
		assert.Contains(t, lines, "server PATCH default/a")
		assert.Contains(t, lines, "server MODIFIED default/a")
		assert.Equal(t, "workqueue Done default/a", lines[len(lines)-1])
	})
}

// A streaming watch fills the store with one Replace, and the first list reaches the worker.
func TestStory_TheFirstListIsOneReplace(t *testing.T) {
	for _, streaming := range []bool{true, false} {
		story(t, options{objects: []string{"a", "b"}, streaming: streaming}, func(w *world) {
			lines := w.traced()
			assert.Contains(t, lines, "deltafifo Replace")
			assert.Contains(t, lines, "handler OnAdd default/a")
			assert.Contains(t, lines, "worker reconciled default/b")
			assert.Equal(t, streaming, strings.Contains(strings.Join(lines, "\n"), "server LIST"))
		})
	}
}

// On an in-order queue the first list is one delta, stored at once.
func TestStory_InOrderQueueKeepsItsBatches(t *testing.T) {
	story(t, options{objects: []string{"a", "b"}, inOrder: true}, func(w *world) {
		lines := w.traced()
		assert.Contains(t, lines, "store Replace")
		w.server.DeleteMap("a")
		assert.Equal(t, []string{
			"server DELETED default/a",
			"deltafifo Delete default/a",
			"deltafifo Pop default/a",
			"store Delete default/a",
			"handler OnDelete default/a",
		}, w.traced()[:5])
	})
}

func TestStory_AFailureIsRetried(t *testing.T) {
	story(t, options{}, func(w *world) {
		failures := 1
		w.reconcile = func(context.Context, string) (controller.Result, error) {
			if failures--; failures >= 0 {
				return controller.Result{}, errors.New("not yet")
			}
			return controller.Result{}, nil
		}
		w.traced()
		w.server.CreateMap("a")
		time.Sleep(time.Second)
		lines := w.traced()
		assert.Contains(t, lines, "worker reconciled default/a error")
		assert.Contains(t, lines, "workqueue AddRateLimited default/a")
		assert.Contains(t, lines, "worker reconciled default/a")
	})
}

func TestText_IsAStaircase(t *testing.T) {
	var b strings.Builder
	sink := trace.Text(&b, trace.TextOptions{})
	at := time.Date(2000, 1, 1, 15, 4, 5, 0, time.UTC)
	sink(trace.Event{Time: at, Hop: trace.Server, What: "MODIFIED", Key: "default/a",
		ResourceVersion: "7"})
	sink(trace.Event{Time: at, Hop: trace.Queue, What: "Update", Key: "default/a",
		ResourceVersion: "7", Detail: "why", Error: "broken"})
	assert.Equal(t, ""+
		"15:04:05.000 server          MODIFIED default/a @7\n"+
		"15:04:05.000   deltafifo     Update default/a @7 (why) error: broken\n", b.String())
}

func TestText_ColorsTheHop(t *testing.T) {
	var b strings.Builder
	trace.Text(&b, trace.TextOptions{Color: true})(trace.Event{Hop: trace.Server, What: "LIST"})
	assert.Contains(t, b.String(), "\x1b[36mserver")
}

func TestJSON_OmitsEmptyFields(t *testing.T) {
	var b strings.Builder
	trace.JSON(&b)(trace.Event{Hop: trace.Store, What: "Add", Key: "default/a"})
	assert.Contains(t, b.String(), `"hop":"store"`)
	assert.Contains(t, b.String(), `"what":"Add"`)
	assert.NotContains(t, b.String(), "error")
}

func TestWrites_LeavesReadsAlone(t *testing.T) {
	var seen []string
	wrapped := trace.Writes(func(event trace.Event) {
		seen = append(seen, event.What+" "+event.Error)
	})(failing{})
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		request, _ := http.NewRequest(method, "http://server/", nil)
		_, _ = wrapped.RoundTrip(request)
	}
	assert.Equal(t, []string{"POST refused"}, seen)
}

// The key is that of the object, and never a path.
func TestWrites_NameTheObject(t *testing.T) {
	for path, want := range map[string]string{
		"/api/v1/namespaces/ns/configmaps/a":        "ns/a ",
		"/api/v1/namespaces/ns/pods/a/status":       "ns/a status",
		"/apis/apps/v1/namespaces/ns/deployments/a": "ns/a ",
		"/api/v1/nodes/n":                           "n ",
		"/apis/example.com/v1/clusters/c/scale":     "c scale",
		"/api/v1/namespaces/ns":                     "ns ",
		"/api/v1/namespaces/ns/configmaps":          " /api/v1/namespaces/ns/configmaps",
		"/apis/apps/v1/namespaces/ns/deployments":   " /apis/apps/v1/namespaces/ns/deployments",
		"/api/v1/nodes":                             " /api/v1/nodes",
		"/":                                         " /",
	} {
		var got trace.Event
		wrapped := trace.Writes(func(event trace.Event) { got = event })(failing{})
		request, _ := http.NewRequest(http.MethodPatch, "http://server"+path, nil)
		_, _ = wrapped.RoundTrip(request)
		assert.Equal(t, want, got.Key+" "+got.Detail, path)
	}
}

// The reflector's phases, reasons and waits are hops. The end of the program is not: it ends the
// watch with an error of the client.
func TestStory_TheReflectorIsVisible(t *testing.T) {
	story(t, options{objects: []string{"a"}}, func(w *world) {
		assert.Subset(t, w.traced(), []string{
			"reflector starting -> streaming", "reflector streaming -> watching"})
		w.server.Faults().Break(apitest.Match{Verb: "watch"}, apitest.CloseStream)
		assert.Subset(t, w.traced(), []string{
			"reflector watching -> opening  error", "reflector backing off"})
		time.Sleep(time.Minute)
		assert.Contains(t, w.traced(), "reflector opening -> watching")
		w.server.Faults().Break(apitest.Match{Verb: "watch"}, apitest.CloseStream)
		assert.Equal(t, []string{"reflector watching -> opening", "server WATCH",
			"reflector opening -> watching"}, w.traced())
		w.stop()
		assert.Empty(t, w.traced())
	})
}

type failing struct{}

func (failing) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("refused")
}
