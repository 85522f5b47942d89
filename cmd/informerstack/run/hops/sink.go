// SPDX-License-Identifier: Apache-2.0

package hops

import (
	"context"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/informerstack/apitest"
	"example.com/informerstack/cmd/informerstack/cli"
	"example.com/informerstack/observe/trace"
	"example.com/informerstack/store"
)

// Options say which hops are written, and how.
type Options struct {
	JSON  bool   // one object per line; otherwise text
	Color string // of text: auto, always or never
	Key   string // write only the hops of this key; "" means all
	Queue string // deltafifo or realfifo, which the legend explains
}

// Output writes the hops of every pipeline of this program, and counts them.
type Output struct {
	to      io.Writer
	json    bool
	print   trace.Sink
	shows   func(trace.Event) bool // whether print writes a hop
	restart func()                 // before each pipeline
	totals  *summary
}

// New returns an output that writes to the standard output. In text, the legend precedes the hops.
func New(stdout io.Writer, options Options) *Output {
	out := &Output{to: stdout, json: options.JSON, restart: func() {}, totals: newSummary()}
	if options.JSON {
		write := trace.JSON(stdout)
		out.shows = func(event trace.Event) bool {
			return options.Key == "" || event.Key == "" || event.Key == options.Key
		}
		out.print = func(event trace.Event) {
			if out.shows(event) {
				write(event)
			}
		}
		return out
	}
	width, isTerminal := cli.Terminal(stdout)
	colored := isTerminal && os.Getenv("NO_COLOR") == ""
	p := newPrinter(stdout, trace.Text(stdout, trace.TextOptions{
		Color: options.Color == "always" || options.Color == "auto" && colored,
		Width: width,
	}), options.Key)
	out.print, out.shows, out.restart = p.print, p.shows, p.restart
	text := strings.TrimPrefix(legend, "\n")
	if options.Queue == string(trace.RealFIFO) {
		text = strings.Replace(text, "deltafifo     queues the changes of each key",
			"realfifo      queues the changes in their order", 1)
	}
	_, _ = io.WriteString(stdout, text)
	return out
}

// Shows reports whether a hop that happens now is written.
func (out *Output) Shows(event trace.Event) bool { return out.shows(event) }

// Summarize writes the summary, with the number of objects in the store and of dead letters. Hops
// that follow are neither written nor counted.
func (out *Output) Summarize(objects, deadLetters int) {
	out.totals.print(out.to, out.json, objects, deadLetters)
}

// Pipeline returns the sink of one pipeline, which has this queue and ends with ctx. Call end after
// its end. The sink is safe for concurrent use.
func (out *Output) Pipeline(ctx context.Context, queue string) (sink trace.Sink, end func()) {
	out.restart()
	record := func(event trace.Event) { out.totals.record(named(event, queue), out.print) }
	left := &leftKeys{ctx: ctx, next: record, gets: map[string]trace.Event{}}
	return left.record, left.end
}

// named returns an event with the names that the flags and the blog posts use.
func named(event trace.Event, queue string) trace.Event {
	switch {
	case event.Hop == trace.Queue && queue == string(trace.RealFIFO):
		event.Hop = trace.RealFIFO
	case event.Hop == trace.Worker && event.What == "reconciled" && event.Error != "":
		event.What = "failed"
	}
	return event
}

// TraceFaults sends the faults of the requests for a resource to sink.
func TraceFaults(server *apitest.Server, resource schema.GroupResource, sink trace.Sink) {
	server.Faults().Observe(func(r apitest.Request, what string) {
		if r.Resource != resource.Resource || r.Group != resource.Group {
			return
		}
		event := trace.Event{Time: time.Now(), Hop: trace.Server, What: faultWhat}
		if r.Name != "" {
			event.Key = store.ObjectName{Namespace: r.Namespace, Name: r.Name}.String()
		}
		if event.Detail = what; r.Verb != "watch" {
			event.Detail = r.Verb + ": " + what
		}
		sink(event)
	})
}

// leftKeys drops the hops of the keys that workers take from a stopped queue without reconciling
// them, which empties it. At the end it sends their number.
//
//	L1  a Get after the end of ctx is held back until the key is reconciled, or done
type leftKeys struct {
	ctx  context.Context // of the pipeline
	next trace.Sink

	mu    sync.Mutex
	gets  map[string]trace.Event
	count int
}

func (l *leftKeys) record(event trace.Event) {
	for _, e := range l.filter(event) {
		l.next(e)
	}
}

// filter returns the events to send.
func (l *leftKeys) filter(event trace.Event) []trace.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	get, held := l.gets[event.Key]
	switch {
	case event.Hop == trace.Workqueue && event.What == "Get" && l.ctx.Err() != nil:
		l.gets[event.Key] = event
		return nil
	case held && event.Hop == trace.Workqueue && event.What == "Done":
		delete(l.gets, event.Key)
		l.count++
		return nil
	case held && event.Hop == trace.Worker:
		delete(l.gets, event.Key)
		return []trace.Event{get, event}
	}
	return []trace.Event{event}
}

func (l *leftKeys) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count == 0 {
		return
	}
	l.next(trace.Event{Time: time.Now(), Hop: trace.Workqueue, What: "ShutDown",
		Detail: cli.Count(l.count, "key") + " left in the queue"})
}
