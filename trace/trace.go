// SPDX-License-Identifier: Apache-2.0

// Package trace watches one change travel, from the API server to the worker and back.
//
//	[server] -> reflector -> deltafifo -> store -> handler -> workqueue -> worker -> server
//
// Each piece is wrapped in a decorator that does what the piece does and tells a Sink about it. A piece that is not
// wrapped knows nothing of tracing and pays nothing for it.
//
// Read trace.go, text.go, then one file a piece in the order of the arrow above: listerwatcher.go, queue.go, indexer.go,
// handler.go, workqueue.go, reconcile.go, roundtripper.go; then go test -v ./trace.
// Goroutines: one for each traced watch, which ends with it. Locking: a Sink is called by many goroutines, with no lock
// of this package held; a queue's Pop may hold the queue's.
package trace

import (
	"encoding/json"
	"io"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"example.com/informerstack/store"
)

// Hop is a place that a change passes.
type Hop string

// The hops, in the order of travel.
const (
	Server    Hop = "server"
	Queue     Hop = "deltafifo"
	Store     Hop = "store"
	Handler   Hop = "handler"
	Workqueue Hop = "workqueue"
	Worker    Hop = "worker"
)

// Event is one thing that happened at one hop.
type Event struct {
	Time time.Time `json:"time"`
	Hop  Hop       `json:"hop"`
	// What happened, in the hop's own words: LIST, ADDED, Pop, OnUpdate, AddRateLimited, ...
	What string `json:"what"`
	// Key of the object, "" for what concerns the whole collection.
	Key string `json:"key,omitempty"`
	// ResourceVersion of the object or the collection, where there is one.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Detail is for people.
	Detail string `json:"detail,omitempty"`
	// Error is why it failed.
	Error string `json:"error,omitempty"`
}

// Sink receives events as they happen. It is called from many goroutines and should return soon.
type Sink func(Event)

// about sends an event about an object, which may be a tombstone.
func (s Sink) about(hop Hop, what string, obj any, detail string, err error) {
	event := Event{Time: time.Now(), Hop: hop, What: what, Detail: detail, ResourceVersion: version(obj)}
	event.Key, _ = store.DeletionHandlingMetaNamespaceKeyFunc(obj)
	s.send(event, err)
}

// collection sends an event that concerns no single object.
func (s Sink) collection(hop Hop, what, resourceVersion, detail string, err error) {
	s.send(Event{Time: time.Now(), Hop: hop, What: what, ResourceVersion: resourceVersion, Detail: detail}, err)
}

func (s Sink) send(event Event, err error) {
	if err != nil {
		event.Error = err.Error()
	}
	s(event)
}

// version is the object's resourceVersion, or "" if it has none.
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

// JSON returns a Sink that writes one JSON object a line. An error of w is dropped.
func JSON(w io.Writer) Sink {
	var mu sync.Mutex
	encoder := json.NewEncoder(w)
	return func(event Event) {
		mu.Lock()
		defer mu.Unlock()
		_ = encoder.Encode(event)
	}
}
