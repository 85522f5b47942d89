// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"example.com/informerstack/apitest"
	"example.com/informerstack/observe/trace"
	"example.com/informerstack/store"
)

// output writes the hops of every pipeline of this program, and counts them.
type output struct {
	print   trace.Sink
	shows   func(trace.Event) bool // whether print writes a hop
	restart func()                 // before each pipeline
	totals  *summary
}

// output returns the output that the flags ask for.
func (o *options) newOutput(stdout io.Writer) *output {
	out := &output{restart: func() {}, totals: newSummary()}
	if o.output == "json" {
		write := trace.JSON(stdout)
		out.shows = func(event trace.Event) bool {
			return o.key == "" || event.Key == "" || event.Key == o.key
		}
		out.print = func(event trace.Event) {
			if out.shows(event) {
				write(event)
			}
		}
		return out
	}
	width, isTerminal := terminal(stdout)
	colored := isTerminal && os.Getenv("NO_COLOR") == ""
	p := newPrinter(stdout, trace.Text(stdout, trace.TextOptions{
		Color: o.color == "always" || o.color == "auto" && colored,
		Width: width,
	}), o.key)
	out.print, out.shows, out.restart = p.print, p.shows, p.restart
	text := strings.TrimPrefix(legend, "\n")
	if o.queue == string(trace.RealFIFO) {
		text = strings.Replace(text, "deltafifo     queues the changes of each key",
			"realfifo      queues the changes in their order", 1)
	}
	_, _ = io.WriteString(stdout, text)
	return out
}

// terminal returns the width of the terminal that out is, or false.
func terminal(out any) (width int, ok bool) {
	file, ok := fileOf(out)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return 0, false
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0, true
	}
	return width, true
}

// pipeline returns the sink of one pipeline, which ends with ctx. end is called after its end.
func (out *output) pipeline(ctx context.Context, o *options) (sink trace.Sink, end func()) {
	out.restart()
	record := func(event trace.Event) { out.totals.record(named(event, o.queue), out.print) }
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

// faultWhat is the operation of a fault that the embedded server injects.
const faultWhat = "FAULT"

// traceFaults sends the faults of the requests for the target to sink.
func traceFaults(server *apitest.Server, t target, sink trace.Sink) {
	server.Faults().Observe(func(r apitest.Request, what string) {
		if r.Resource != t.resource.Resource || r.Group != t.resource.Group {
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
		Detail: count(l.count, "key") + " left in the queue"})
}

// count returns a number and a noun in the plural, unless there is one.
func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return thousands(n) + " " + noun
}

// thousands returns a number with a comma before each group of three digits.
func thousands(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
