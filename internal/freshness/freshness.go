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
	"errors"
	"sync"
	"sync/atomic"
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

// Handover is what the reflector hands over to the queue, or to the copy.
type Handover struct {
	Kind            Kind
	ResourceVersion string // that it reaches; "" unless it is a list, a change or a bookmark
	At              time.Time
	Losses          int   // of a list: the result of Losses before it was requested
	Inferred        error // of a list that was not requested: why; no watch follows it
}

// Kind is the kind of a Handover.
type Kind int

// The kinds.
const (
	Unordered Kind = iota // a change that reaches no version
	Change                // was taken from the watch at At
	Bookmark              // was taken from the watch at At
	List                  // shows what the collection held at At; if that is zero, AsOf stays
	Current               // nothing, but what was handed over before was current at At
)

// HandedOver is what was handed over so far. The copy may be behind.
type HandedOver struct {
	Moment
	Change, Bookmark time.Time // At of the last of each kind
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
//	F3  AsOf is zero, in held and in marks, from a loss until a list that was requested later
//	F4  after a failure of the consumer there is no mark until a list is handed over: the item
//	    that failed may have a part of a list that was queued before
//	F5  there is no mark once blind. The Tracker is blind once it cannot know what the queue
//	    holds: a call that hands something over has returned, and the queue had not counted it;
//	    or the queue counts outside of such a call; or the consumer has not stored exactly what
//	    was popped
//
// Without a queue, the copy holds what was handed over.
type Tracker struct {
	isDirect bool         // without a queue
	onMove   func()       // may be nil
	popped   atomic.Int64 // items so far, including those in processing
	pending  atomic.Int64 // deltas of the items in processing that are not stored
	storing  atomic.Int64 // when the processing began, as nanoseconds of Unix time; 0 if it ended

	// uncounted is set by Begin, and cleared under mu: the queue has not counted handover yet.
	// Begin sets handover; while uncounted, Queued reads it.
	uncounted atomic.Bool
	handover  Handover

	mu         sync.Mutex // guards the fields below
	handedOver HandedOver
	losses     int           // so far
	lost       bool          // no list that was requested since the last loss was handed over
	failed     bool          // no list was handed over since the consumer failed, or at all
	inferred   error         // of the last list
	blind      chan struct{} // closed once blind
	isBlind    bool
	marks      []mark // oldest first
	items      int    // queued so far
	stored     int    // items so far
	held       Moment
	isSynced   bool
	synced     chan struct{} // closed once isSynced
	moved      chan struct{} // closed when held changes; nil if no caller has waited since
	ended      error         // held does not change any more
}

// mark is a moment that the copy holds when the first items are stored.
type mark struct {
	Moment
	items int
}

var (
	errBlind    = errors.New("the queue does not report all that it holds")
	errPanicked = errors.New("process panicked")
)

// New returns the Tracker of an empty copy that is filled through a queue, which calls Queued and
// Process. onMove, if not nil, is called without a lock when the version of Held has changed. Two
// calls of it may run at once.
func New(onMove func()) *Tracker {
	return &Tracker{
		onMove: onMove, failed: true, blind: make(chan struct{}), synced: make(chan struct{}),
	}
}

// Direct returns the Tracker of an empty copy that is filled without a queue.
func Direct() *Tracker {
	t := New(nil)
	t.isDirect = true
	return t
}

// Followed is a Store of a reflector, in front of a copy that has a Tracker. The reflector uses the
// store that Followed returns.
type Followed interface {
	Followed() (store any, tracker *Tracker)
}

// Begin is called before a call that hands h over to the queue or to the copy, and End after it. If
// err is not nil, nothing was handed over. One goroutine calls Begin, End and Note.
func (t *Tracker) Begin(h Handover) {
	if !t.isDirect {
		t.handover = h
		t.uncounted.Store(true)
	}
}

// End ends what Begin has begun.
func (t *Tracker) End(h Handover, err error) {
	switch {
	case t.isDirect:
		if err == nil {
			t.mu.Lock()
			t.noteAndUnlock(h, 0)
		}
	case !t.uncounted.Load(): // the usual case, without a lock
	default:
		t.mu.Lock()
		wasUncounted := t.uncounted.Swap(false) // or another goroutine has counted it just now
		if !wasUncounted || err != nil {
			t.mu.Unlock()
			return
		}
		if h.Kind != Bookmark { // which changes no object
			t.blindLocked() // it is held back
		}
		t.noteAndUnlock(h, t.items)
	}
}

// Note is Begin and End for what needs no call, because it changes no object.
func (t *Tracker) Note(h Handover) {
	t.mu.Lock()
	t.noteAndUnlock(h, t.items)
}

// Queued is called by the queue, in each call that hands something over and under the queue's lock,
// with the number of items that it has queued so far. So the consumer cannot pop a change before it
// is marked.
func (t *Tracker) Queued(items int) {
	t.mu.Lock()
	t.items = items
	if !t.uncounted.Load() { // the call that hands it over has returned
		t.blindLocked()
		t.mu.Unlock()
		return
	}
	h := t.handover
	t.uncounted.Store(false) // from now on, the next Begin may set handover
	t.noteAndUnlock(h, items)
}

// noteAndUnlock notes what was handed over, and marks it as held after that many items.
func (t *Tracker) noteAndUnlock(h Handover, items int) {
	all := &t.handedOver
	switch h.Kind {
	case Current:
		if h.At.After(all.AsOf) {
			all.AsOf = h.At
		}
	case Change:
		all.ResourceVersion, all.Change = h.ResourceVersion, h.At
	case Bookmark:
		all.ResourceVersion, all.Bookmark = h.ResourceVersion, h.At
	case List:
		t.lost, t.failed, t.inferred = t.isBlind || h.Losses < t.losses, false, h.Inferred
		all.ResourceVersion = h.ResourceVersion
		if !h.At.IsZero() {
			all.AsOf = h.At
		}
	}
	if t.isDirect || t.isBlind || t.failed {
		t.mu.Unlock()
		return
	}
	m := all.Moment
	if t.lost {
		m.AsOf = time.Time{}
	}
	last := len(t.marks) - 1
	switch {
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
		t.wakeLocked()
	}
	t.mu.Unlock()
	if hasMoved && t.onMove != nil {
		t.onMove()
	}
}

func (t *Tracker) wakeLocked() {
	close(t.moved)
	t.moved = nil
}

// Process calls process for deltas that the queue has popped; items is how many items it has popped
// so far. If process fails or panics, they are not, or not all, in the copy. One goroutine calls
// Process.
func (t *Tracker) Process(items, deltas int, process func() error) (err error) {
	t.popped.Store(int64(items))
	t.pending.Store(int64(deltas))
	t.storing.Store(time.Now().UnixNano())
	err = errPanicked
	defer func() { // even if process panics
		t.storing.Store(0)
		if err == nil && t.pending.Load() <= 0 {
			return
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		t.stored, t.marks, t.failed = items, nil, true
		t.loseLocked()
		if err == nil { // they were dropped, or are processed later
			t.blindLocked()
		}
	}()
	return process()
}

// Stored is called during Process when that many deltas are in the copy, before readers are
// notified of the changes.
func (t *Tracker) Stored(deltas int) {
	items := int(t.popped.Load())
	missing := t.pending.Add(-int64(deltas))
	if missing > 0 {
		return
	}
	t.mu.Lock()
	if missing < 0 { // some were not popped, or are stored again in place of others
		t.blindLocked()
		t.mu.Unlock()
		return
	}
	t.stored = items
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

// StoringSince returns when the present Process began; the zero time if nothing is processed.
func (t *Tracker) StoringSince() time.Time {
	if began := t.storing.Load(); began != 0 {
		return time.Unix(0, began)
	}
	return time.Time{}
}

// Lose notes that a change is not handed over. A list that is requested now, or later, has it.
// Versions that were handed over remain true, because they are older. Any goroutine may call Lose.
func (t *Tracker) Lose() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.loseLocked()
}

func (t *Tracker) loseLocked() {
	t.losses++
	t.lost, t.held.AsOf = true, time.Time{}
	for i := range t.marks {
		t.marks[i].AsOf = time.Time{}
	}
}

func (t *Tracker) blindLocked() {
	if t.isBlind {
		return
	}
	t.isBlind, t.marks = true, nil
	t.loseLocked()
	close(t.blind)
	if t.moved != nil {
		t.wakeLocked()
	}
}

// Stop notes that held does not change any more. From now on, Await fails with err.
func (t *Tracker) Stop(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = err
	if t.moved != nil {
		t.wakeLocked()
	}
}

// Losses returns how often a change was lost.
func (t *Tracker) Losses() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.losses
}

// Held returns what the copy holds.
func (t *Tracker) Held() Moment {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.held
}

// HandedOver returns what was handed over so far. As with Held, AsOf is zero while a change may be
// missing.
func (t *Tracker) HandedOver() HandedOver {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.handedOver
	if t.lost {
		all.AsOf = time.Time{}
	}
	return all
}

// Blind returns a channel that closes once it is not known any more what the copy holds: see F5.
func (t *Tracker) Blind() <-chan struct{} { return t.blind }

// Err returns nil, or, once blind, an error that says so.
func (t *Tracker) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.isBlind {
		return errBlind
	}
	return nil
}

// Synced returns a channel that closes once the copy has held a list as a whole.
func (t *Tracker) Synced() <-chan struct{} { return t.synced }

// Await blocks until the copy holds every change up to resourceVersion. Otherwise it fails with the
// cause of ctx, with Stop's error, or because the versions cannot be compared or are not known; or
// with Inferred of the last list, once the copy is current as of a time after the call.
func (t *Tracker) Await(ctx context.Context, resourceVersion string) error {
	began := time.Now()
	for {
		isDone := ctx.Err() != nil
		t.mu.Lock()
		held, ended, isBlind := t.held, t.ended, t.isBlind
		inferred := t.inferred
		if t.moved == nil {
			t.moved = make(chan struct{})
		}
		moved := t.moved
		t.mu.Unlock()
		if has := held.ResourceVersion; has != "" {
			order, err := resourceversion.CompareResourceVersion(has, resourceVersion)
			if err != nil || order >= 0 {
				return err
			}
		}
		switch {
		case ended != nil:
			return ended
		case isBlind:
			return errBlind
		case inferred != nil && !held.AsOf.Before(began):
			return inferred
		case isDone:
			return context.Cause(ctx)
		}
		select {
		case <-moved:
		case <-ctx.Done():
		}
	}
}
