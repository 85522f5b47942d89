// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"

	"example.com/informerstack/leaderelection"
)

// waiting is a key that was refused. It counts how often it was queued again.
type waiting struct{ queued *int }

func (w waiting) Requeue() { *w.queued++ }

// A key waits in each state but Elsewhere and Active: G4. If the right is over, it waits in an
// active shard, too. It is queued with the next change to Active or Elsewhere.
func TestSlot_Park(t *testing.T) {
	for _, over := range []bool{false, true} {
		for _, state := range []State{
			Elsewhere, Acquiring, Syncing, Active, Draining, Releasing,
		} {
			for _, next := range []State{Acquiring, Active, Elsewhere} {
				term := &pausedTerm{Context: context.Background()}
				r := newRight(term, leaderelection.FencingToken{})
				s := &slot{state: Elsewhere}
				s.set(state, r, nil)
				term.over = over
				queued := 0
				s.park(waiting{&queued})
				s.park(waiting{&queued})
				waits := state != Elsewhere && (state != Active || over)
				if !waits {
					assert.Equal(t, 2, queued, "%s, over: %v", state, over)
					assert.Empty(t, s.parked)
					continue
				}
				assert.Zero(t, queued, "%s, over: %v", state, over)
				s.set(next, newRight(context.Background(), leaderelection.FencingToken{}), nil)
				want := 1
				if next == Acquiring {
					want = 0
				}
				assert.Equal(t, want, queued, "%s, over: %v, then %s", state, over, next)
				assert.Len(t, s.parked, 1-want)
			}
		}
	}
}

// The right of a shard ends with its ownership, for the reason of the change: G2.
func TestSlot_Right(t *testing.T) {
	s := &slot{state: Acquiring}
	r := newRight(context.Background(), leaderelection.FencingToken{UID: "u", Transitions: 3})
	for _, state := range []State{Syncing, Active, Draining} {
		move := s.set(state, r, nil)
		assert.Equal(t, r.token, move.Token)
		assert.True(t, r.valid())
		assert.Equal(t, move.Time, s.since)
	}
	move := s.set(Elsewhere, nil, ErrLost)
	assert.Equal(t, r.token, move.Token)
	assert.Equal(t, ErrLost, move.Err)
	assert.False(t, r.valid())
	assert.ErrorIs(t, context.Cause(r.ctx), ErrLost)
	_, _, right := s.look()
	assert.Nil(t, right)
	assert.Zero(t, s.set(Acquiring, nil, nil).Token)
}
