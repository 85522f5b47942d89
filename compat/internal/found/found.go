// SPDX-License-Identifier: Apache-2.0

// Package found reports the informers, queues and electors that a program makes with compat, so
// that package devtools can show them without registration.
//
//	compat/cache, compat/workqueue, compat/leaderelection -> [found] -> compat/devtools
//
// Without a Report, Add does nothing, and there is no Journal. A thing that is reported can be
// collected as before.
//
// It imports no package that depends on client-go's rest, which uses a workqueue itself.
//
// Read found.go; then go test ./compat/devtools. Goroutines: none, except runtime's for cleanups.
// Locking: a mutex for the names.
package found

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"weak"

	"example.com/informerstack/internal/helpers/printable"
	"example.com/informerstack/observe/journal"
	"example.com/informerstack/workqueue"
)

// Report receives each thing that is made. view returns what a page may read of it, or nil once
// it was collected. After that, gone is called.
type Report func(name string, view func() any) (gone func())

type reader struct {
	report  Report
	journal *journal.Journal
}

var present atomic.Pointer[reader]

// To sets the Report and the Journal of the process; nil ends the reports.
func To(r Report, j *journal.Journal) {
	if r == nil {
		present.Store(nil)
		return
	}
	present.Store(&reader{r, j})
}

// Journal returns the Journal that handlers and queues write to, or nil.
func Journal() *journal.Journal {
	if r := present.Load(); r != nil {
		return r.journal
	}
	return nil
}

// Add reports made. show returns what a page may read of it. Once made was collected, a name from
// TakeName is free.
func Add[T any](name string, made *T, show func(made *T) any) {
	r := present.Load()
	if r == nil {
		return
	}
	pointer := weak.Make(made)
	gone := r.report(name, func() any {
		if made := pointer.Value(); made != nil {
			return show(made)
		}
		return nil
	})
	runtime.AddCleanup(made, func(gone func()) {
		gone()
		releaseName(name)
	}, gone)
}

// taken are the names that TakeName has returned and that are not free.
var taken = struct {
	mu      sync.Mutex
	makers  map[string]string // by name
	numbers map[string]*numbers
}{makers: map[string]string{}, numbers: map[string]*numbers{}}

// numbers are those of the names of one maker.
type numbers struct{ last, living int }

// TakeName returns a name, to be passed to Add, that nothing else has: that of its maker, and from
// the second one on a number.
func TakeName(maker string) string {
	taken.mu.Lock()
	defer taken.mu.Unlock()
	n := taken.numbers[maker]
	if n == nil {
		n = &numbers{}
		taken.numbers[maker] = n
	}
	n.last++
	n.living++
	name := maker
	if n.last > 1 {
		name = fmt.Sprintf("%s %d", maker, n.last)
	}
	taken.makers[name] = maker
	return name
}

// releaseName makes a name from TakeName free. It is a no-op for other names.
func releaseName(name string) {
	taken.mu.Lock()
	defer taken.mu.Unlock()
	maker, ok := taken.makers[name]
	if !ok {
		return
	}
	delete(taken.makers, name)
	if n := taken.numbers[maker]; n.living > 1 {
		n.living--
	} else {
		delete(taken.numbers, maker)
	}
}

// Queue is what a page may read of a queue. Workers returns the goroutines that have items, if the
// queue writes to the Journal.
type Queue interface {
	Snapshot() workqueue.Snapshot[string]
	workqueue.Partial[string]
	workqueue.Grouped
	Workers() map[string]journal.Worker
	ShuttingDown() bool
}

// AddQueue reports a queue, which is a pointer.
func AddQueue[T comparable, Q any, P interface {
	*Q
	Snapshot() workqueue.Snapshot[T]
}](name string, queue P) {
	if present.Load() != nil { // without a Report, not even the function below costs anything
		Add(name, (*Q)(queue), func(queue *Q) any { return texts[T]{P(queue)} })
	}
}

// texts is a queue with items as texts.
type texts[T comparable] struct {
	queue interface{ Snapshot() workqueue.Snapshot[T] }
}

// Workers implements Queue.
func (t texts[T]) Workers() map[string]journal.Worker {
	if noted, ok := t.queue.(interface {
		Workers() map[string]journal.Worker
	}); ok {
		return noted.Workers()
	}
	return nil
}

// ShuttingDown implements Queue. It is false if it is not known.
func (t texts[T]) ShuttingDown() bool {
	known, ok := t.queue.(interface{ ShuttingDown() bool })
	return ok && known.ShuttingDown()
}

// Groups implements Queue.
func (t texts[T]) Groups(limit int) (most []workqueue.Group, all workqueue.GroupTotals) {
	if grouped, ok := t.queue.(workqueue.Grouped); ok {
		return grouped.Groups(limit)
	}
	return nil, all
}

// Snapshot implements Queue.
func (t texts[T]) Snapshot() workqueue.Snapshot[string] {
	return shown(t.queue.Snapshot())
}

// SnapshotOf implements Queue.
func (t texts[T]) SnapshotOf(skip, limit int) workqueue.Part[string] {
	return shownPart(workqueue.SnapshotOf(t.queue, skip, limit))
}

// Find implements Queue.
func (t texts[T]) Find(match func(item string) bool) workqueue.Part[string] {
	return shownPart(workqueue.Find(t.queue, func(item T) bool {
		return match(printable.KeyOf(item))
	}))
}

func shownPart[T comparable](p workqueue.Part[T]) workqueue.Part[string] {
	return workqueue.Part[string]{Snapshot: shown(p.Snapshot), Total: p.Total, Numbers: p.Numbers,
		LastDue: p.LastDue}
}

func shown[T comparable](s workqueue.Snapshot[T]) workqueue.Snapshot[string] {
	shown := workqueue.Snapshot[string]{
		Ready: all(s.Ready), Processing: all(s.Processing), Again: all(s.Again),
		Taken: s.Taken, Limited: s.Limited,
	}
	for _, w := range s.Waiting {
		shown.Waiting = append(shown.Waiting, workqueue.Waiting[string]{
			Item: printable.Key(w.Item), Due: w.Due, Failures: w.Failures})
	}
	for item, priority := range s.Priorities {
		if shown.Priorities == nil {
			shown.Priorities = map[string]int{}
		}
		shown.Priorities[printable.Key(item)] = priority
	}
	for item, group := range s.Held {
		if shown.Held == nil {
			shown.Held = map[string]workqueue.Group{}
		}
		shown.Held[printable.Key(item)] = group
	}
	return shown
}

func all[T comparable](items []T) []string {
	var shown []string
	for _, item := range items {
		shown = append(shown, printable.Key(item))
	}
	return shown
}
