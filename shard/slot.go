// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"errors"
	"sync"
	"time"

	"example.com/informerstack/controller"
	"example.com/informerstack/leaderelection"
)

// State is the state of one shard in this process. tenure.step decides which one follows.
type State string

// The states.
const (
	Elsewhere State = "elsewhere" // another replica has the shard, or no replica
	Acquiring State = "acquiring" // the shard's Lease is being written
	Syncing   State = "syncing"   // owned; the caches list its objects
	Active    State = "active"    // owned, and its keys are reconciled
	Draining  State = "draining"  // owned; no reconcile begins, and the running ones come to an end
	Releasing State = "releasing" // the shard's Lease is being cleared
)

// owned reports whether the process has the right to act for the shard.
func (s State) owned() bool { return s == Syncing || s == Active || s == Draining }

// move is a change of the state of one shard in this process.
type move struct {
	shard    Shard
	from, to State
	token    leaderelection.FencingToken // of the shard that was acquired or is given up
	err      error                       // why the shard was lost
}

// acquired reports whether the process owns the shard since this change.
func (m move) acquired() bool { return !m.from.owned() && m.to.owned() }

// released reports whether the process owned the shard until this change.
func (m move) released() bool { return m.from.owned() && !m.to.owned() }

// The causes of the end of a reconcile's context, see context.Cause.
var (
	// ErrMoved is the cause if the shard is to move and the reconcile has used up the DrainTimeout.
	ErrMoved = errors.New("shard moves to another replica")
	// ErrLost is the cause if the shard was lost: its Lease was deleted, or names another holder.
	// If the membership was lost, the cause is a leaderelection.ErrLost.
	ErrLost = errors.New("shard was lost")
)

// slot is one shard in this process, where the manager and the workers meet.
//
//	G1  a call of reconcile begins only while the state is Active and the member's term is valid
//	G2  right is set while the state is owned, and its context ends with it at the latest
//	G3  the shard is not released while running > 0
//	G4  no key is parked while the state is Elsewhere, or is Active and right is valid. (A right
//	    may end before the manager changes the state.)
type slot struct {
	mu sync.Mutex
	slotStatus
	parked map[controller.Refused]struct{} // keys that wait for Active or Elsewhere: G4
}

// slotStatus is a slot at one moment.
type slotStatus struct {
	state   State
	since   time.Time // when the state was reached
	running int       // calls of reconcile, also those that were begun under an earlier right
	right   *right
}

// right is the right to act for a shard: from its acquisition until the shard is released or lost,
// or the member's term is over.
type right struct {
	ctx    context.Context // of the reconciles
	end    context.CancelCauseFunc
	term   context.Context // Err reads the clocks
	token  leaderelection.FencingToken
	drains time.Time // when ctx ends because the shard moves; zero if it is to stay
}

func newRight(term context.Context, token leaderelection.FencingToken) *right {
	r := &right{term: term, token: token}
	r.ctx, r.end = context.WithCancelCause(term)
	return r
}

// valid reports whether the right lasts. It reads the clocks, so that after a pause of the process
// the answer is right before a timer has fired.
func (r *right) valid() bool { return r.term.Err() == nil && r.ctx.Err() == nil }

// enter begins a call of reconcile, if the shard is active.
func (s *slot) enter() (*right, State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != Active || !s.right.valid() {
		return nil, s.state
	}
	s.running++
	return s.right, Active
}

// leave ends a call, and reports whether the manager waits for that.
func (s *slot) leave() (last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	return s.running == 0 && s.state != Active
}

func (s *slot) look() slotStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.slotStatus
}

// park makes a key wait until the shard is active, or another replica's. Then the key is queued, to
// be reconciled or dropped. If the shard is so already, the key is queued at once. Keys in a
// backoff and dead letters are not queued: a change of the state is no change of a key.
func (s *slot) park(key controller.Refused) {
	s.mu.Lock()
	waits := s.state != Elsewhere && (s.state != Active || !s.right.valid())
	if waits {
		if s.parked == nil {
			s.parked = map[controller.Refused]struct{}{}
		}
		s.parked[key] = struct{}{}
	}
	s.mu.Unlock()
	if !waits {
		key.Requeue()
	}
}

// set changes the state, and queues the keys that have waited for it. If it ends the ownership, it
// ends the right, for that reason.
func (s *slot) set(to State, r *right, why error) move {
	var parked map[controller.Refused]struct{}
	s.mu.Lock()
	if to == Active || to == Elsewhere {
		parked, s.parked = s.parked, nil
	}
	m := move{from: s.state, to: to, err: why}
	if r != nil {
		s.right = r
	}
	if s.right != nil {
		m.token = s.right.token
	}
	if !to.owned() && s.right != nil {
		s.right.end(why)
		s.right = nil
	}
	s.state, s.since = to, time.Now()
	s.mu.Unlock()
	for key := range parked {
		key.Requeue()
	}
	return m
}
