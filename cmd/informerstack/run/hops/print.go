// SPDX-License-Identifier: Apache-2.0

// Package hops writes every hop of every change, as lines for people or as JSON, and sums them up.
//
//	trace.Sink -> [hops] -> standard output
//
// Read print.go (the lines for people), summary.go (counts and times) and sink.go (the output);
// then go test -v ./cmd/informerstack/run/hops. Goroutines: none; the pieces call the sink.
// Locking: each type has a mutex of its own, and writes under it, so that lines stay whole and in
// order.
package hops

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"example.com/informerstack/observe/trace"
)

// legend explains the lines. It precedes the first one.
const legend = `
A line is one hop of a change: time, piece, operation, key, @resourceVersion.

             server          the API server: events of the watch, and writes
              reflector      follows the server: its phases, failures and waits
               deltafifo     queues the changes of each key
                store        the local copy
                 handler     is called with each change, and queues its key
                  workqueue  gives each key to one worker at a time
                   worker    reconciles the key; its writes return as changes

`

// faultWhat is the operation of a fault that the embedded server injects.
const faultWhat = "FAULT"

// printer writes hops for people: a blank line precedes each change, the objects of a list are one
// line, and with a key it writes the hops of that key only.
//
// A listed object is quiet if its version is known, or if the list is the first: its hops are not
// written, nor those of a write by a worker. It is loud from its next change on, or from its first
// error. A change during a reconcile may be the worker's own: its hops are held until the end.
//
//	P1  a key is in quiet from its hop after a list to its next change or error
//	P2  with a key of the reader, quiet is empty
//	P3  at the end of a reconcile of a quiet key, its held hops are written if there were more
//	    changes than writes; otherwise they are dropped
type printer struct {
	out  io.Writer
	line trace.Sink
	key  string // write only the hops of this key; "" means all

	mu        sync.Mutex
	lists     int               // Replace calls so far
	streaming bool              // the watch sends the objects of a list
	versions  map[string]string // key of a live object -> the resourceVersion that was delivered
	quiet     map[string]*quietKey
	inChange  bool // the last line was a hop of a change
}

// quietKey is what happens to a quiet key.
type quietKey struct {
	running bool          // a worker reconciles it
	writes  int           // of workers, less the changes since
	held    []trace.Event // the hops since the first change while running
}

// newPrinter returns a printer that writes each hop with line, and blank lines to out.
func newPrinter(out io.Writer, line trace.Sink, key string) *printer {
	p := &printer{out: out, line: line, key: key}
	p.restart()
	return p
}

// restart makes the next list a first one: another pipeline begins.
func (p *printer) restart() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lists, p.streaming = 0, false
	p.versions, p.quiet = map[string]string{}, map[string]*quietKey{}
}

// print writes a hop if it is shown, after the held hops that it releases.
func (p *printer) print(event trace.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	shown := p.showsLocked(event)
	released := p.followLocked(event)
	for _, held := range released {
		p.writeLocked(held)
	}
	if shown || len(released) > 0 {
		p.writeLocked(event)
	}
}

func (p *printer) writeLocked(event trace.Event) {
	if p.key == "" && isList(event) && !strings.HasPrefix(event.Detail, "0 ") {
		which := "unchanged objects"
		if p.lists == 1 {
			which = "this first list"
		}
		event.Detail = strings.TrimPrefix(
			fmt.Sprintf("%s; the hops of %s are not shown", event.Detail, which), "; ")
	}
	if isChange(event) || p.inChange && event.Key == "" {
		fmt.Fprintln(p.out)
	}
	p.inChange = event.Key != ""
	p.line(event)
}

// shows reports whether a hop that happens now is written.
func (p *printer) shows(event trace.Event) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.showsLocked(event)
}

func (p *printer) showsLocked(event trace.Event) bool {
	switch {
	case event.Key == "":
		return true
	case p.key != "":
		return event.Key == p.key
	case event.Error != "" || event.What == faultWhat:
		return true
	case p.listedLocked(event):
		return false
	}
	k := p.quiet[event.Key]
	return k == nil || isChange(event) && !k.running && k.writes == 0
}

// listedLocked reports whether a hop is that of an object of a list with nothing new.
func (p *printer) listedLocked(event trace.Event) bool {
	version, known := p.versions[event.Key]
	same := known && version == event.ResourceVersion
	switch {
	case p.streaming && isChange(event):
		return p.lists == 0 || same
	case event.Hop == trace.Handler:
		return event.Detail == "initial list" || event.Detail == "unchanged"
	case event.What == "Pop" && event.Detail == "Sync":
		return true
	case event.What == "Pop" && event.Detail == "Replaced":
		return p.lists == 1 && !known || same
	}
	return false
}

// followLocked keeps the invariants. It returns the held hops that are to be written.
func (p *printer) followLocked(event trace.Event) (released []trace.Event) {
	switch {
	case p.key != "" || event.What == faultWhat:
		return nil
	case event.Key == "":
		if event.Hop == trace.Reflector && strings.Contains(event.What, " -> ") {
			p.streaming = strings.HasSuffix(event.What, "-> streaming")
		}
		if isList(event) && event.What == "Replace" {
			p.lists++
		}
		return nil
	case event.Hop == trace.Handler && event.What == "OnDelete":
		delete(p.versions, event.Key)
	case event.Hop == trace.Handler:
		p.versions[event.Key] = event.ResourceVersion
	}
	k, listed := p.quiet[event.Key], p.listedLocked(event)
	if k == nil {
		if listed && event.Error == "" {
			p.quiet[event.Key] = &quietKey{}
		}
		return nil
	}
	switch {
	case listed && event.Error == "":
		return nil
	case event.Error != "" || isChange(event) && !k.running && k.writes == 0:
		delete(p.quiet, event.Key)
		return k.held
	case isChange(event):
		k.writes--
	case event.Hop == trace.Server && written(event):
		k.writes++
	case event.Hop == trace.Worker && event.What == "reconcile":
		k.running = true
	case event.Hop == trace.Worker && k.writes < 0:
		delete(p.quiet, event.Key)
		return k.held
	case event.Hop == trace.Worker:
		k.running, k.held = false, nil
	}
	if k.running && (isChange(event) || len(k.held) > 0) {
		k.held = append(k.held, event)
	}
	return nil
}

// isList reports whether a hop hands all objects to the queue.
func isList(event trace.Event) bool {
	return (event.Hop == trace.Queue || event.Hop == trace.RealFIFO) && event.Error == "" &&
		(event.What == "Replace" || event.What == "Resync")
}

// isChange reports whether a hop begins a change: it is an event of a watch for one object.
func isChange(event trace.Event) bool {
	return event.Hop == trace.Server && event.Key != "" &&
		(event.What == "ADDED" || event.What == "MODIFIED" || event.What == "DELETED")
}

// written reports whether a hop is a worker's write that has changed the object on the server.
func written(event trace.Event) bool {
	return !isChange(event) && strings.Contains(", "+event.Detail, ", 2")
}
