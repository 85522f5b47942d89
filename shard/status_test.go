// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/informer"
	"example.com/informerstack/leaderelection"
)

// deafLister is an informer of Leases that has lost its server.
type deafLister struct {
	informer.SharedIndexInformer
	err error
}

func (d deafLister) Err() error { return d.err }

// A snapshot has what the slots have, and belongs to the caller.
func TestStatus(t *testing.T) {
	s, _ := shards(t, Active)
	s.slots[0].enter()
	s.moved(Move{From: Acquiring, To: Active})
	s.status.Members = []MemberStatus{{Identity: "a"}}
	s.status.Shards = []ShardStatus{{Owner: "a"}}
	status := s.Status()
	assert.Equal(t, []ShardStatus{{
		State: Active, Since: s.slots[0].since, Running: 1, Owner: "a",
		Token: leaderelection.FencingToken{UID: "u", Transitions: 3},
	}}, status.Shards)
	assert.Equal(t, map[string]int{MoveAcquired: 1}, status.Moves)
	status.Shards[0].Owner, status.Members[0].Identity = "b", "b"
	status.Moves[MoveAcquired] = 9
	again := s.Status()
	assert.Equal(t, "a", again.Shards[0].Owner)
	assert.Equal(t, "a", again.Members[0].Identity)
	assert.Equal(t, 1, again.Moves[MoveAcquired])

	s.lister = deafLister{err: errors.New("deaf")}
	assert.ErrorContains(t, s.Status().LastError, "deaf", "it has not joined")
	s.status.Joined = true
	assert.NoError(t, s.Status().LastError)
}

// Only changes of the ownership count as moves.
func TestStatus_Moves(t *testing.T) {
	s, _ := shards(t, Elsewhere)
	lost := errors.New("lost")
	for _, m := range []Move{
		{From: Elsewhere, To: Acquiring}, {From: Acquiring, To: Syncing},
		{From: Syncing, To: Active}, {From: Active, To: Draining},
		{From: Draining, To: Releasing},
		{From: Acquiring, To: Elsewhere, Err: lost}, {From: Active, To: Elsewhere, Err: lost},
		{From: Active, To: Draining, Err: lost},
	} {
		s.moved(m)
	}
	assert.Equal(t, map[string]int{MoveAcquired: 1, MoveReleased: 1, MoveLost: 1}, s.Status().Moves)
}

// A process is ready for a term only.
func TestReady_EndsWithTheTerm(t *testing.T) {
	s, _ := shards(t, Active)
	assert.False(t, s.Ready())
	term, end := context.WithCancel(t.Context())
	s.ready.Store(&term)
	assert.True(t, s.Ready())
	end()
	assert.False(t, s.Ready())
}

// A reconcile that runs longer than it may is a reason to end the process; one of a shard that the
// process owns is not.
func TestCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, test := range []struct {
			state State
			runs  bool
			limit time.Duration // 0: it may run for ever
		}{
			{Elsewhere, true, time.Minute}, {Acquiring, true, time.Minute},
			{Releasing, true, time.Minute}, {Draining, true, time.Minute + DefaultDrainTimeout},
			{Active, true, 0}, {Syncing, true, 0}, {Elsewhere, false, 0}, {Draining, false, 0},
		} {
			s, _ := shards(t, test.state)
			if test.runs {
				s.slots[0].running = 1
			}
			if test.limit == 0 {
				time.Sleep(time.Hour)
				assert.NoError(t, s.Check(time.Minute), test.state)
				continue
			}
			time.Sleep(test.limit)
			require.NoError(t, s.Check(time.Minute), test.state)
			time.Sleep(time.Nanosecond)
			assert.EqualError(t, s.Check(time.Minute), "reconciles ignore that their context is "+
				"done, and block shards 0 of group g", test.state)
		}
	})
}

// The members of a plan have their parts, and so have owners that are no members any more.
func TestPlan_Status(t *testing.T) {
	p := &plan{
		members: []string{"a", "b"},
		owners:  []owner{{member: "a"}, {member: "gone"}, {}},
		targets: []string{"b", "a", ""},
		limits:  map[string]limit{"b": {most: 1, stuck: true}},
	}
	assert.Equal(t, []MemberStatus{
		{Identity: "a", Shards: 1, Target: 1},
		{Identity: "b", Target: 1, Stuck: true, Limited: true}, {Identity: "gone", Shards: 1},
	}, p.status())
}
