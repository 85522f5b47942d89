// SPDX-License-Identifier: Apache-2.0

// Package trace shows how one change travels from the API server to the worker and back.
//
//	[server] -> reflector -> deltafifo -> store -> handler -> workqueue -> worker -> server
//
// A decorator around each piece calls the piece and sends an Event to a Sink. The pieces contain no
// code for tracing, so a program that does not trace pays nothing.
//
// To use it, wrap each piece with the decorator of its interface, for example DeltaQueue in
// informer.Options.WrapQueue, and pass all of them one Sink: Text, JSON or your own.
//
// Read trace.go and text.go; then one file per piece, in the order of the arrow above:
// listerwatcher.go, reflector.go, queue.go, indexer.go, handler.go, workqueue.go, reconcile.go,
// roundtripper.go. Then run go test -v ./observe/trace. Goroutines: one per traced watch, which
// ends with the watch. Locking: many goroutines call a Sink, without a lock of this package; a
// queue's Pop may hold the lock of the queue.
package trace

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"example.com/informerstack/store"
)

// Hop is a piece that a change passes.
type Hop string

// The hops, in the order that a change passes them.
const (
	Server    Hop = "server"
	Reflector Hop = "reflector"
	Queue     Hop = "deltafifo"
	Store     Hop = "store"
	Handler   Hop = "handler"
	Workqueue Hop = "workqueue"
	Worker    Hop = "worker"
)

// RealFIFO is what a program may call the Queue hop if its queue is a RealFIFO. The decorators do
// not use it.
const RealFIFO Hop = "realfifo"

// Event is one operation at one hop.
type Event struct {
	Time time.Time `json:"time"`
	Hop  Hop       `json:"hop"`
	// The operation, in the terms of the hop: LIST, ADDED, Pop, OnUpdate, AddRateLimited, ...
	What string `json:"what"`
	// Key is the object's key, or "" if the event concerns the whole collection.
	Key string `json:"key,omitempty"`
	// ResourceVersion is that of the object or the collection, or "".
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Detail is a text for people.
	Detail string `json:"detail,omitempty"`
	// Error is the error's text, or "" if the call succeeded.
	Error string `json:"error,omitempty"`
}

// Sink receives events as they happen. It is called by many goroutines at the same time, and should
// return quickly. Texts of an Event come from servers and users as they are: Text and JSON escape
// and truncate them.
type Sink func(Event)

// about sends an event for an object, which may be a tombstone.
func (s Sink) about(hop Hop, what string, obj any, detail string, err error) {
	key, _ := store.DeletionHandlingMetaNamespaceKeyFunc(obj)
	s.send(Event{Hop: hop, What: what, Key: key, ResourceVersion: version(obj), Detail: detail},
		err)
}

// collection sends an event for the whole collection.
func (s Sink) collection(hop Hop, what, resourceVersion, detail string, err error) {
	s.send(Event{Hop: hop, What: what, ResourceVersion: resourceVersion, Detail: detail}, err)
}

// send adds the time, and the text of err.
func (s Sink) send(event Event, err error) {
	event.Time = time.Now()
	if err != nil {
		event.Error = err.Error()
	}
	s(event)
}

// version returns the object's resourceVersion, or "" if obj is not an object.
func version(obj any) string {
	if tombstone, ok := obj.(store.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return ""
	}
	return m.GetResourceVersion()
}
