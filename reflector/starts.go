// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"example.com/informerstack/internal/helpers/async"
	"example.com/informerstack/internal/helpers/listwatch"
)

// Starts limits how many reflectors fetch everything at the same time: when a program starts, and
// when many watches expire together. Set Limit and SmallFirst, then share it between the reflectors
// of a client, by Options.Starts.
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
type Starts struct {
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

const (
	turnPatience  = time.Minute
	countPatience = 5 * time.Second
)

// waiter is a reflector that waits for a turn.
type waiter struct {
	since   time.Time
	counted bool          // objects is final
	objects int64         // unknownCount if it is not known, 0 unless SmallFirst
	turn    chan struct{} // closed when it gets one
}

const unknownCount = math.MaxInt64

// await waits for a turn, which ends when end is called. The error is that of ctx. count counts the
// objects; it returns within countPatience.
func (s *Starts) await(ctx context.Context, count func() int64) (end func(), err error) {
	w := &waiter{since: time.Now(), counted: !s.SmallFirst, turn: make(chan struct{})}
	if s.SmallFirst {
		w.objects = unknownCount
	}
	s.change(func() { s.waiting = append(s.waiting, w) })
	defer func() {
		if end == nil { // ctx is done, or count has panicked
			s.leave(w)
		}
	}()
	if s.SmallFirst {
		objects := count()
		s.change(func() { w.counted, w.objects = true, objects })
	}
	select {
	case <-w.turn:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return s.turn(), nil
}

// turn is a turn that was given, until end is called or turnPatience is over.
func (s *Starts) turn() (end func()) {
	giveBack := sync.OnceFunc(func() { s.change(func() { s.held-- }) })
	timer := time.AfterFunc(turnPatience, giveBack)
	return func() {
		timer.Stop()
		giveBack()
	}
}

// change changes s and gives the turns that are free then.
func (s *Starts) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	for next := s.nextLocked(time.Now()); next != nil; next = s.nextLocked(time.Now()) {
		s.waiting = slices.DeleteFunc(s.waiting, func(w *waiter) bool { return w == next })
		s.held++
		close(next.turn)
	}
}

// nextLocked returns the waiter that gets a turn now, or nil.
func (s *Starts) nextLocked(now time.Time) *waiter {
	if len(s.waiting) == 0 || s.held >= max(s.Limit, 1) {
		return nil
	}
	oldest := s.waiting[0]
	switch waited := now.Sub(oldest.since); {
	case waited >= turnPatience:
		return oldest // T3
	case waited < countPatience &&
		slices.ContainsFunc(s.waiting, func(w *waiter) bool { return !w.counted }):
		return nil // T2
	}
	return slices.MinFunc(s.waiting, func(a, b *waiter) int {
		return cmp.Compare(a.objects, b.objects)
	})
}

// leave ends the wait of w, or its turn if it got one meanwhile.
func (s *Starts) leave(w *waiter) {
	s.change(func() {
		before := len(s.waiting)
		s.waiting = slices.DeleteFunc(s.waiting, func(other *waiter) bool { return other == w })
		if len(s.waiting) == before {
			s.held--
		}
	})
}

// why is the reason why a reflector waits.
func (s *Starts) why() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Errorf("%d of %d informers have a turn to fetch everything, the others wait for one",
		s.held, s.held+len(s.waiting))
}

// inTurn calls fetch, which fetches everything in the phase now, when Options.Starts allows it.
func (r *Reflector) inTurn(
	ctx context.Context, now Phase, fetch func(context.Context) error,
) error {
	if r.opts.Starts != nil {
		r.setPhase(AwaitingTurn)
		end, err := r.opts.Starts.await(ctx, func() int64 { return r.countObjects(ctx) })
		if err != nil {
			return err
		}
		defer end()
		r.setPhase(now)
	}
	return fetch(ctx)
}

// errSecondObject ends a LIST of one object that brings more: the server ignores the limit.
var errSecondObject = errors.New("more than one object")

// countObjects asks the server for the number of objects, for countPatience at most.
func (r *Reflector) countObjects(ctx context.Context) int64 {
	ctx, cancel := context.WithTimeout(ctx, countPatience)
	defer cancel()
	answer := async.Call(func() (int64, error) {
		count := int64(0)
		m, err := r.fetchPage(ctx, listwatch.Question(), func(runtime.Object) error {
			if count++; count > 1 {
				return errSecondObject
			}
			return nil
		})
		switch {
		case err != nil, m.Continue != "" && m.RemainingItemCount == nil:
			return unknownCount, err
		case m.RemainingItemCount != nil:
			count += *m.RemainingItemCount
		}
		return count, nil
	})
	select {
	case o := <-answer:
		if objects, err := o.Unpack(); err == nil {
			return objects
		}
	case <-ctx.Done():
	}
	return unknownCount
}
