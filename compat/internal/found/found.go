// SPDX-License-Identifier: Apache-2.0

// Package found reports the informers, queues and electors that a program makes with compat, so
// that package devtools can show them without registration.
//
//	compat/cache, compat/workqueue, compat/leaderelection -> [found] -> compat/devtools
//
// Without a Report, Add does nothing. A thing that is reported can be collected as before.
//
// It imports no package that depends on client-go's rest, which uses a workqueue itself.
//
// Read found.go and workers.go; then go test ./compat/devtools. Goroutines: none, except runtime's
// for cleanups. Locking: the mutex of Workers, which is locked under that of a queue.
package found

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"weak"

	"example.com/informerstack/workqueue"
)

// Report receives each thing that is made. view returns what a page may read of it, or nil once
// it was collected. After that, gone is called.
type Report func(name string, view func() any) (gone func())

var report atomic.Pointer[Report]

// To sets the Report of the process, or none.
func To(r Report) {
	if r == nil {
		report.Store(nil)
		return
	}
	report.Store(&r)
}

// Add reports made. show returns what a page may read of it.
func Add[T any](name string, made *T, show func(made *T) any) {
	r := report.Load()
	if r == nil {
		return
	}
	pointer := weak.Make(made)
	gone := (*r)(name, func() any {
		if made := pointer.Value(); made != nil {
			return show(made)
		}
		return nil
	})
	runtime.AddCleanup(made, func(gone func()) { gone() }, gone)
}

// Queue is what a page may read of a queue. Workers returns the goroutines that have items, as far
// as they are known.
type Queue interface {
	Snapshot() workqueue.Snapshot[string]
	Workers() map[string]Worker
}

// AddQueue reports a queue, which is a pointer, with the workers that watch it.
func AddQueue[T comparable, Q any, P interface {
	*Q
	Snapshot() workqueue.Snapshot[T]
}](name string, workers *Workers, queue P) {
	Add(name, (*Q)(queue), func(queue *Q) any { return texts[T]{P(queue), workers} })
}

// texts is a queue with items as texts.
type texts[T comparable] struct {
	queue   interface{ Snapshot() workqueue.Snapshot[T] }
	workers *Workers
}

// Workers implements Queue.
func (t texts[T]) Workers() map[string]Worker {
	return t.workers.of(func() []string { return t.Snapshot().Processing })
}

// Snapshot implements Queue.
func (t texts[T]) Snapshot() workqueue.Snapshot[string] {
	s := t.queue.Snapshot()
	shown := workqueue.Snapshot[string]{
		Ready: all(s.Ready), Processing: all(s.Processing), Again: all(s.Again), Limited: s.Limited,
	}
	for _, w := range s.Waiting {
		shown.Waiting = append(shown.Waiting,
			workqueue.Waiting[string]{Item: fmt.Sprint(w.Item), Due: w.Due, Failures: w.Failures})
	}
	return shown
}

func all[T comparable](items []T) []string {
	var shown []string
	for _, item := range items {
		shown = append(shown, fmt.Sprint(item))
	}
	return shown
}
