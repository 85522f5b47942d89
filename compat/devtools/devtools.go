// SPDX-License-Identifier: Apache-2.0

// Package devtools shows the inside of a program that uses client-go's names: its informers, queues
// and elections, and why one key is not being reconciled. Nothing has to be registered.
//
//	compat/cache, compat/workqueue, compat/leaderelection -> [devtools] -> /debug/informers
//
// To use it, serve [Handler] at /debug/informers, beside the program's metrics. A program that is
// built with "informerstack swap --devtools" needs no change: see [Environment]. Then ask, for
// example with "informerstack devtools LINK --why namespace/name".
//
// It shows what is made after this package was initialized: import it in package main. The priority
// queues of controller-runtime, its default, are its own: they are shown in a program that is built
// with "informerstack swap --devtools". Elsewhere set controller.Options.NewQueue to
// NewPriorityQueue or NewQueue of compat/adapt, and wrap reconcilers with its ShowErrors; otherwise
// "no queue" in an answer means none of client-go's.
//
// Read devtools.go, then serve.go; then go test ./compat/devtools. Goroutines: the HTTP server's,
// if Environment is set. Locking: health's.
package devtools

import (
	"os"
	"time"

	"example.com/informerstack/compat/internal/found"
	"example.com/informerstack/informer"
	"example.com/informerstack/leaderelection"
	"example.com/informerstack/observe/health"
	"example.com/informerstack/observe/journal"
	"example.com/informerstack/store"
	"example.com/informerstack/workqueue"
)

var handler = health.New()

// always is how long a program is recorded that is asked to serve: the first question is mostly
// about what came before it.
const always = 100 * 365 * 24 * time.Hour

// Handler returns the handler of /debug/informers. It is read-only, and asks for no credentials:
// serve it on loopback, or behind an authorization. It answers /healthz and /readyz, too, but has
// no checks until the program adds some, so that both always pass.
func Handler() *health.Handler { return handler }

func init() {
	j := journal.New()
	if os.Getenv(Environment) != "" {
		j.Record(always)
	}
	handler.SetJournal(j)
	found.To(show, j)
	j.HearErrors() // queues of client-go do not get them
	serveFromEnvironment()
}

// show adds a thing to the page until it is collected: the page does not keep it in memory.
func show(name string, view func() any) (gone func()) {
	switch view().(type) {
	case viewOfInformer:
		return handler.AddInformer(name, shownInformer{view})
	case found.Queue:
		return health.AddQueue(handler, name, shownQueue{view})
	case viewOfElector:
		return handler.AddElection(name, shownElector{view})
	}
	return func() {}
}

type (
	viewOfInformer interface {
		Status() informer.Status
		GetStore() store.Store
	}
	viewOfElector interface{ Status() leaderelection.Status }
)

// The shown types read a thing as long as it exists. Then they are empty.
type (
	shownInformer struct{ view func() any }
	shownQueue    struct{ view func() any }
	shownElector  struct{ view func() any }
)

func (s shownInformer) Status() informer.Status {
	if i, ok := s.view().(viewOfInformer); ok {
		return i.Status()
	}
	return informer.Status{}
}

func (s shownInformer) GetStore() store.Store {
	if i, ok := s.view().(viewOfInformer); ok {
		return i.GetStore()
	}
	return nil
}

// Unread reports that the program has not read the store of the informer.
func (s shownInformer) Unread() bool {
	i, ok := s.view().(interface{ Unread() bool })
	return ok && i.Unread()
}

// Selection returns what the informer selects, if that is known.
func (s shownInformer) Selection() (selection informer.Collection, known bool) {
	if i, ok := s.view().(interface {
		Selection() (informer.Collection, bool)
	}); ok {
		return i.Selection()
	}
	return informer.Collection{}, false
}

func (s shownQueue) Snapshot() workqueue.Snapshot[string] {
	if q, ok := s.view().(found.Queue); ok {
		return q.Snapshot()
	}
	return workqueue.Snapshot[string]{}
}

func (s shownQueue) SnapshotOf(skip, limit int) workqueue.Part[string] {
	if q, ok := s.view().(found.Queue); ok {
		return q.SnapshotOf(skip, limit)
	}
	return workqueue.Part[string]{}
}

func (s shownQueue) Find(match func(item string) bool) workqueue.Part[string] {
	if q, ok := s.view().(found.Queue); ok {
		return q.Find(match)
	}
	return workqueue.Part[string]{}
}

func (s shownQueue) Groups(limit int) (most []workqueue.Group, all workqueue.GroupTotals) {
	if q, ok := s.view().(found.Queue); ok {
		return q.Groups(limit)
	}
	return nil, all
}

func (s shownQueue) Workers() map[string]journal.Worker {
	if q, ok := s.view().(found.Queue); ok {
		return q.Workers()
	}
	return nil
}

func (s shownQueue) ShuttingDown() bool {
	q, ok := s.view().(found.Queue)
	return ok && q.ShuttingDown()
}

func (s shownElector) Status() leaderelection.Status {
	if e, ok := s.view().(viewOfElector); ok {
		return e.Status()
	}
	return leaderelection.Status{}
}
