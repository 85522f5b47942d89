// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"errors"
	"math"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"

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
	s.moved(move{from: Acquiring, to: Active})
	s.plan = plan{owners: []owner{{member: "a"}}, targets: []string{"a"}}
	status := s.Status()
	assert.Equal(t, []ShardStatus{{
		State: Active, Since: s.slots[0].since, Running: 1, Owner: "a", Target: "a",
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
	for _, m := range []move{
		{from: Elsewhere, to: Acquiring}, {from: Acquiring, to: Syncing},
		{from: Syncing, to: Active}, {from: Active, to: Draining},
		{from: Draining, to: Releasing},
		{from: Acquiring, to: Elsewhere, err: lost}, {from: Active, to: Elsewhere, err: lost},
		{from: Active, to: Draining, err: lost},
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
		{Identity: "b", Target: 1, Stuck: true, Limited: true},
		{Identity: "gone", Shards: 1, Leaving: true},
	}, p.status(map[string]bool{"gone": true}))
}

func TestNew_RefusesInvalidConfigs(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"no name":          {func(c *Config) { c.Name = "" }, "option Name"},
		"no namespace":     {func(c *Config) { c.Namespace = "" }, "option Namespace"},
		"no client":        {func(c *Config) { c.Client = nil }, "option Client is nil"},
		"negative count":   {func(c *Config) { c.Count = -1 }, "option Count"},
		"count too large":  {func(c *Config) { c.Count = math.MaxInt }, "option Count"},
		"negative drain":   {func(c *Config) { c.DrainTimeout = -1 }, "option DrainTimeout"},
		"negative lease":   {func(c *Config) { c.LeaseDuration = -1 }, "leaseDuration"},
		"lease too long":   {func(c *Config) { c.LeaseDuration = math.MaxInt64 }, "LeaseDuration"},
		"retry beyond all": {func(c *Config) { c.RetryPeriod = time.Hour }, "retryPeriod"},
		"negative retry":   {func(c *Config) { c.RetryPeriod = -1 }, "retryPeriod"},
	} {
		t.Run(name, func(t *testing.T) {
			c := Config{Name: "g", Namespace: "default", Client: restClient(t, newLink(nil))}
			test.change(&c)
			_, err := New(c)
			assert.ErrorContains(t, err, test.want)
		})
	}
}

func TestNew_Defaults(t *testing.T) {
	s, err := New(Config{Name: "g", Namespace: "default", Client: restClient(t, newLink(nil))})
	require.NoError(t, err)
	host, err := os.Hostname()
	require.NoError(t, err)
	s.config.Client = nil
	assert.Equal(t, Config{
		Name: "g", Namespace: "default", Count: DefaultCount, Identity: host,
		LeaseDuration: DefaultLeaseDuration, RenewDeadline: DefaultRenewDeadline,
		RetryPeriod: DefaultRetryPeriod, DrainTimeout: DefaultDrainTimeout,
	}, s.config)
	assert.Len(t, s.slots, DefaultCount)
}

// Two processes that start together both find no Lease of shard 0. That is no failure, and neither
// is a stop.
func TestStory_TwoCreateTheFirstLease(t *testing.T) {
	story(t, 2, func(w *world) {
		w.weather = weather{there: time.Second}.of(isCreation)
		a, b := w.process("a"), w.process("b")
		w.after(2500 * time.Millisecond) // the first Lease, and those of the members
		for _, p := range []*process{a, b} {
			assert.True(t, p.Status().Joined)
			assert.NoError(t, p.Status().LastError)
			p.stop()
			w.after(time.Second)
			assert.NoError(t, p.Status().LastError)
		}
	})
}

// A Lease of another program has the name of shard 0's: the process does not join.
func TestStory_TheFirstLeaseIsForeign(t *testing.T) {
	story(t, 2, func(w *world) {
		lease := leaseNamed("group-0")
		require.NoError(t, w.server.Create(lease))
		a := w.process("a")
		w.after(time.Minute)
		assert.Zero(t, a.Status().Terms)
		assert.ErrorContains(t, a.Status().LastError, "so it is not this group's")
	})
}

// After a term, its Lease is deleted if it was released. Otherwise the others have to wait until
// it is over.
func TestShards_Forget(t *testing.T) {
	story(t, 1, func(w *world) {
		a := w.newProcess("a")
		member := &membership{identity: "a_1"}
		lease := leaseNamed(a.leases.memberName("a_1"))
		lease.Spec.HolderIdentity = new("a_1")
		require.NoError(t, w.server.Create(lease))
		a.forget(context.Background(), member)
		require.NoError(t, w.server.Get(lease))
		lease.Spec.HolderIdentity = new("")
		require.NoError(t, w.server.Update(lease))
		a.forget(context.Background(), member)
		assert.Error(t, w.server.Get(lease))
		close(a.ended)
	})
}

// Two processes must share a kind of objects by the same value while both are members. A kind
// that only one of them shares does not matter.
func TestShards_CheckBy(t *testing.T) {
	s := newShards(t, 1)
	s.caches.uses("v1.Pod", ByUID)
	now := time.Now()
	for bys, fails := range map[string]bool{
		"v1.Pod=uid": false, "v1.Pod=namespace": true, "v1.Secret=owner": false, "": false,
		"v1.Pod=namespace,v1.Pod=uid": false, "v1.Pod=namespace,v1.Secret=owner": true,
	} {
		lease := &coordinationv1.Lease{}
		lease.Annotations = map[string]string{byAnnotation: bys}
		lease.Spec.HolderIdentity = new("b_1")
		p := &peer{lease: lease, identity: "b_1", since: now, duration: time.Minute}
		assert.Equal(t, fails, s.checkBy(p, now) != nil, bys)
		assert.NoError(t, s.checkBy(p, now.Add(time.Minute)), "it is dead")
		s.ended["b_1"] = true
		assert.NoError(t, s.checkBy(p, now), "it was a term of this process")
		delete(s.ended, "b_1")
	}
}
