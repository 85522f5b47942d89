// SPDX-License-Identifier: Apache-2.0

// Package freshness knows how current a copy of a collection is.
//
//	API server -> reflector -> queue -> informer -> store
//	                  |          |         |
//	                  '----> [freshness] <-'----> Health, WaitForResourceVersion, HasSynced
//
// The reflector hands changes over, the queue counts its items, and the informer stores them. All
// three report it to a [Tracker]; everything else only reads that.
//
// Read this file and docs/freshness.md; then go test -v ./internal/freshness. Goroutines: none.
// Locking: one mutex, under which nothing else is locked and no foreign code runs.
package freshness

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Moment is a state of a collection.
type Moment struct {
	// ResourceVersion means every change up to it. It is "" before the first list.
	ResourceVersion string
	// AsOf means everything that the collection held then. It is the zero time before the first
	// list, and while a change may be missing.
	AsOf time.Time
}

// Arrival is what a list, a change or a bookmark brings. The AsOf of a list is zero if it shows the
// state that was handed over before; that of a change or bookmark is zero.
type Arrival struct {
	Moment
	IsList     bool // it replaces everything
	IsBookmark bool
	At         time.Time // when a change or bookmark was received
}

// Tracker follows one copy, which may be filled through a queue.
//
// A queue may merge a change with an older one of the same object, so objects change their order.
// One number serves all queues: items are processed in the order in which they were queued, and a
// change that is merged is in an item that was queued earlier. So if n items were queued when a
// change was handed over, every change up to it is in the first n items.
//
//	handed over    a@1, b@2, a@3, c@4
//	queued         a@1 a@3 | b@2 | c@4
//	marks          1 after 1 item, 3 after 2 items, 4 after 3 items
//	a is stored    held is 1: b@2 is missing
//	b is stored    held is 3
//
//	F1  once the first m.items items are stored, the copy holds the moment of mark m
//	F2  no mark is reached, and each has more items than the one before; held is the last one
//	    that was reached
//	F3  AsOf is zero, in held and in marks, from a loss until a list that was handed over later
//	F4  after a failure of the consumer there is no mark until a list is handed over: the item
//	    that failed may have a part of a list that was queued before
//
// Without a queue there are no items, and what was handed over is stored.
type Tracker struct {
	// The goroutine that hands over owns these fields.
	arriving Arrival // what is handed over now
	isDue    bool    // and is not marked yet
	items    int     // queued so far

	// The goroutine that processes owns these fields.
	popped    int  // items so far, including those in processing
	isPending bool // they are not stored yet

	onMove func() // may be nil

	mu       sync.Mutex // guards the fields below
	received Moment     // handed over so far
	change   time.Time  // At of the last change
	bookmark time.Time  // At of the last bookmark
	lost     bool       // no list was handed over since a loss
	failed   bool       // no list was handed over since the consumer failed, or at all
	marks    []mark     // oldest first
	stored   int        // items so far
	held     Moment
	isSynced bool
	synced   chan struct{} // closed once isSynced
	moved    chan struct{} // closed when held changes; nil if no caller has waited since
	ended    error         // held does not change any more
}

// mark is a moment that the copy holds when the first items are stored.
type mark struct {
	Moment
	items int
}

// New returns the Tracker of an empty copy.
func New() *Tracker { return &Tracker{failed: true, synced: make(chan struct{})} }

// OnMove sets a function that is called, without a lock, when the version of Held has changed. Two
// calls may run at once. It is set before the first change.
func (t *Tracker) OnMove(f func()) { t.onMove = f }

// HandOver calls put, which passes a to the copy, or to a queue before it. If put returns an error,
// nothing was handed over. One goroutine calls HandOver and Current.
func (t *Tracker) HandOver(a Arrival, put func() error) error {
	t.arriving, t.isDue = a, true
	err := put()
	if err == nil && t.isDue { // no queue has taken it
		t.Queued(t.items)
	}
	t.isDue = false
	return err
}

// Current notes that everything which was handed over was current at asOf.
func (t *Tracker) Current(asOf time.Time) {
	t.arriving, t.isDue = Arrival{Moment: Moment{AsOf: asOf}}, true
	t.Queued(t.items)
}

// Queued is called by the queue, during put and under the queue's lock, with the number of items
// that it has queued so far. So the consumer cannot pop a change before it is marked. A nil Tracker
// does nothing.
func (t *Tracker) Queued(items int) {
	if t == nil {
		return
	}
	t.items = items
	if !t.isDue {
		return
	}
	a := &t.arriving
	t.isDue = false
	t.mu.Lock()
	if a.IsList || a.ResourceVersion != "" {
		t.received.ResourceVersion = a.ResourceVersion
	}
	switch {
	case a.IsList:
		t.lost, t.failed = false, false
	case a.IsBookmark:
		t.bookmark = a.At
	case !a.At.IsZero():
		t.change = a.At
	}
	if !a.AsOf.IsZero() && (a.IsList || a.AsOf.After(t.received.AsOf)) {
		t.received.AsOf = a.AsOf
	}
	m := t.received
	if t.lost {
		m.AsOf = time.Time{}
	}
	last := len(t.marks) - 1
	switch {
	case t.failed:
		t.mu.Unlock()
	case items <= t.stored: // so there are no marks
		t.holdAndUnlock(m)
	case last >= 0 && t.marks[last].items == items:
		t.marks[last].Moment = m
		t.mu.Unlock()
	default:
		t.marks = append(t.marks, mark{m, items})
		t.mu.Unlock()
	}
}

// holdAndUnlock moves held, and wakes all waiters.
func (t *Tracker) holdAndUnlock(m Moment) {
	hasMoved := t.held.ResourceVersion != m.ResourceVersion
	t.held = m
	if !t.isSynced {
		t.isSynced = true
		close(t.synced)
	}
	if t.moved != nil {
		close(t.moved)
		t.moved = nil
	}
	t.mu.Unlock()
	if hasMoved && t.onMove != nil {
		t.onMove()
	}
}

// Process calls process for items that the queue has popped; popped is their number so far. If
// process fails or panics, they are not, or not all, in the copy. One goroutine calls Process and
// Stored.
func (t *Tracker) Process(popped int, process func() error) (err error) {
	if t == nil {
		return process()
	}
	t.popped, t.isPending = popped, true
	ok := false
	defer func() { // even if process panics
		if ok {
			t.Stored()
			return
		}
		t.mu.Lock()
		t.stored, t.marks, t.failed = popped, nil, true
		t.loseLocked()
		t.mu.Unlock()
	}()
	err = process()
	ok = err == nil
	return err
}

// Stored is called during Process when all items are in the copy, before readers are notified of
// the changes. Otherwise they count as stored when process returns.
func (t *Tracker) Stored() {
	if !t.isPending {
		return
	}
	t.isPending = false
	t.mu.Lock()
	t.stored = t.popped
	n := 0
	for n < len(t.marks) && t.marks[n].items <= t.stored {
		n++
	}
	if n == 0 {
		t.mu.Unlock()
		return
	}
	reached := t.marks[n-1].Moment
	if t.marks = t.marks[n:]; len(t.marks) == 0 {
		t.marks = nil
	}
	t.holdAndUnlock(reached)
}

// Lose notes that a change is not handed over. Versions that were handed over remain true, because
// they are older. Any goroutine may call Lose.
func (t *Tracker) Lose() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.loseLocked()
}

func (t *Tracker) loseLocked() {
	t.lost, t.held.AsOf = true, time.Time{}
	for i := range t.marks {
		t.marks[i].AsOf = time.Time{}
	}
}

// Stop notes that held does not change any more. From now on, Await fails with err.
func (t *Tracker) Stop(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = err
	if t.moved != nil {
		close(t.moved)
		t.moved = nil
	}
}

// Held returns what the copy holds.
func (t *Tracker) Held() Moment {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.held
}

// Received returns what was handed over. The copy may be behind. A nil Tracker received nothing.
func (t *Tracker) Received() Moment {
	if t == nil {
		return Moment{}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lost {
		return Moment{ResourceVersion: t.received.ResourceVersion}
	}
	return t.received
}

// Last returns when the last change and the last bookmark that were handed over were received.
func (t *Tracker) Last() (change, bookmark time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.change, t.bookmark
}

// Synced returns a channel that closes once the copy has held a list as a whole.
func (t *Tracker) Synced() <-chan struct{} { return t.synced }

// Await blocks until the copy holds every change up to resourceVersion. Otherwise it fails with the
// cause of ctx, with Stop's error, or because the versions cannot be compared.
func (t *Tracker) Await(ctx context.Context, resourceVersion string) error {
	for {
		isDone := ctx.Err() != nil
		t.mu.Lock()
		held, ended := t.held.ResourceVersion, t.ended
		if t.moved == nil {
			t.moved = make(chan struct{})
		}
		moved := t.moved
		t.mu.Unlock()
		if held != "" {
			order, err := resourceversion.CompareResourceVersion(held, resourceVersion)
			if err != nil || order >= 0 {
				return err
			}
		}
		switch {
		case ended != nil:
			return ended
		case isDone:
			return context.Cause(ctx)
		}
		select {
		case <-moved:
		case <-ctx.Done():
		}
	}
}
