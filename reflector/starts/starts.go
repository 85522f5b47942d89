// SPDX-License-Identifier: Apache-2.0

// Package starts lets a few reflectors at a time fetch everything.
//
//	many reflectors -> [starts] -> LIST, or a streaming list, of a few at a time -> API server
//
// To use it, share a [Limiter] between the reflectors of a client, by Options.Starts.
//
// Read starts.go; then go test -v -run Starts ./reflector. Goroutines: those of the reflectors, and
// a timer for each turn. Locking: one mutex, under which no foreign code runs.
package starts

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"
)

// Limiter limits how many reflectors fetch everything at the same time: when a program starts, and
// when many watches expire together. Set Limit and SmallFirst, then share it between the reflectors
// of a client, by reflector.Options.Starts.
//
// A reflector waits for a turn before each LIST of everything, of one page or more, and before each
// streaming list. The turn ends when the store has been given everything, or the attempt has
// failed: a reflector does not back off in a turn. It lasts at most a minute, as long as an API
// server works on a LIST; a request that takes longer continues without one. So an
// attempt that hangs, in the server or in a transform, delays the others for a minute.
//
// Other requests need no turn: watches, LISTs of one object that ask for the newest
// resourceVersion, and those that package shard makes beside a watch.
//
//	T1  at most Limit turns are held
//	T2  while a reflector waits, Limit turns are held, or a count of objects is under way; one
//	    that has waited for countPatience waits for no count that begins later
//	T3  no reflector that asks later passes one that has waited for turnPatience
//	T4  a turn ends after turnPatience, or earlier
type Limiter struct {
	// Limit is how many reflectors may fetch everything at the same time. Less than 1 means 1.
	Limit int
	// SmallFirst gives the next turn to the reflector with the fewest objects, instead of in the
	// order of asking. Before it waits, each asks the server for their number, by a LIST of
	// one object. If the server does not say it, as with a selector, the number counts as the
	// largest.
	SmallFirst bool

	mu      sync.Mutex
	held    int       // turns
	waiting []*waiter // in the order in which they asked
}

// Unknown is a number of objects that is not known. It is the largest.
const Unknown = math.MaxInt64

const (
	turnPatience  = time.Minute
	countPatience = 5 * time.Second
)

// waiter is a reflector that waits for a turn.
type waiter struct {
	since   time.Time
	counted bool          // objects is final
	objects int64         // Unknown if it is not known, 0 unless SmallFirst
	turn    chan struct{} // closed when it gets one
}

// Await waits for a turn, which ends when end is called. The error is that of ctx. count is called
// with SmallFirst. It returns the number of objects, or Unknown, and soon after its context ends.
func (l *Limiter) Await(
	ctx context.Context, count func(context.Context) int64,
) (end func(), err error) {
	w := &waiter{since: time.Now(), counted: !l.SmallFirst, turn: make(chan struct{})}
	if l.SmallFirst {
		w.objects = Unknown
	}
	l.change(func() { l.waiting = append(l.waiting, w) })
	defer func() {
		if end == nil { // ctx is done, or count has panicked
			l.leave(w)
		}
	}()
	if l.SmallFirst {
		countCtx, cancel := context.WithTimeout(ctx, countPatience)
		defer cancel()
		objects := count(countCtx)
		l.change(func() { w.counted, w.objects = true, objects })
	}
	select {
	case <-w.turn:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return l.turn(), nil
}

// turn is a turn that was given, until end is called or turnPatience is over.
func (l *Limiter) turn() (end func()) {
	giveBack := sync.OnceFunc(func() { l.change(func() { l.held-- }) })
	timer := time.AfterFunc(turnPatience, giveBack)
	return func() {
		timer.Stop()
		giveBack()
	}
}

// change changes l and gives the turns that are free then.
func (l *Limiter) change(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
	for next := l.nextLocked(time.Now()); next != nil; next = l.nextLocked(time.Now()) {
		l.waiting = slices.DeleteFunc(l.waiting, func(w *waiter) bool { return w == next })
		l.held++
		close(next.turn)
	}
}

// nextLocked returns the waiter that gets a turn now, or nil.
func (l *Limiter) nextLocked(now time.Time) *waiter {
	if len(l.waiting) == 0 || l.held >= max(l.Limit, 1) {
		return nil
	}
	oldest := l.waiting[0]
	switch waited := now.Sub(oldest.since); {
	case waited >= turnPatience:
		return oldest // T3
	case waited < countPatience &&
		slices.ContainsFunc(l.waiting, func(w *waiter) bool { return !w.counted }):
		return nil // T2
	}
	return slices.MinFunc(l.waiting, func(a, b *waiter) int {
		return cmp.Compare(a.objects, b.objects)
	})
}

// leave ends the wait of w, or its turn if it got one meanwhile.
func (l *Limiter) leave(w *waiter) {
	l.change(func() {
		before := len(l.waiting)
		l.waiting = slices.DeleteFunc(l.waiting, func(other *waiter) bool { return other == w })
		if len(l.waiting) == before {
			l.held--
		}
	})
}

// Why is the reason why a reflector waits.
func (l *Limiter) Why() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return fmt.Errorf("%d of %d informers have a turn to fetch everything, the others wait for one",
		l.held, l.held+len(l.waiting))
}
