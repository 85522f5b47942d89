// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The others read the limit that a member announces, and any other text is no limit.
func TestPace_LimitsInAnAnnotation(t *testing.T) {
	for text, l := range map[string]limit{
		"0": {}, "5": {most: 5}, "0 stuck": {stuck: true}, "12 stuck": {12, true},
	} {
		assert.Equal(t, text, l.String())
		assert.Equal(t, l, parseLimit(text))
		p := &peer{}
		assert.Equal(t, unlimited, p.limit(), "no Lease")
		p.lease = &coordinationv1.Lease{}
		assert.Equal(t, unlimited, p.limit(), "no annotation")
		p.lease.Annotations = map[string]string{limitAnnotation: text}
		assert.Equal(t, l, p.limit())
	}
	assert.Equal(t, unlimited, parseLimit(unlimited.String()))
	for _, text := range []string{
		"", "x", " stuck", "-1", "-1 stuck", "5  stuck", "5 stuck ", "5.0",
	} {
		assert.Equal(t, unlimited, parseLimit(text), "%q", text)
	}
}

// A limit counts the active shards of a stuck member, and all owned ones of a new member, which
// therefore keeps them.
func TestPace_LimitOfAPhase(t *testing.T) {
	l := load{owned: 5, active: 3}
	for _, test := range []struct {
		pace pace
		want limit
	}{
		{pace{phase: paceWaiting, most: 9}, limit{most: 5}},
		{pace{phase: paceGrowing, most: 4}, limit{most: 5}},
		{pace{phase: paceGrowing, most: 9}, limit{most: 9}},
		{pace{phase: paceStuck, most: 9}, limit{most: 3, stuck: true}},
		{pace{phase: paceFull, most: 1}, limit{most: math.MaxInt}},
	} {
		assert.Equal(t, test.want, test.pace.limit(l), test.pace.phase)
	}
	for share, want := range map[int]int{0: 1, 1: 1, 8: 1, 9: 2, 16: 2, 17: 3, 80: 10} {
		assert.Equal(t, want, firstStep(share), "a share of %d", share)
	}
}

// The load counts each state, and has the oldest of the shards that are syncing.
func TestPace_Load(t *testing.T) {
	now := time.Now()
	tn := &tenure{shards: &Shards{}}
	assert.Equal(t, load{}, tn.load())
	for i, state := range []State{
		Elsewhere, Syncing, Acquiring, Syncing, Active, Syncing, Draining, Releasing, Active,
	} {
		since := now.Add(time.Duration((i-3)*(i-3)) * time.Second) // the fourth is the oldest
		if state != Syncing {
			since = since.Add(-time.Hour)
		}
		tn.shards.slots = append(tn.shards.slots, &slot{
			slotStatus: slotStatus{state: state, since: since},
		})
	}
	assert.Equal(t, load{held: 8, owned: 6, active: 2, syncing: now}, tn.load())
	for _, slot := range tn.shards.slots {
		assert.True(t, slot.mu.TryLock())
	}
}

// A list that brings objects has more time for its shard, up to a bound. Objects that it brought
// before do not count.
func TestPace_SyncUntil(t *testing.T) {
	cache := &brokenCache{}
	tn := &tenure{shards: &Shards{
		config: Config{LeaseDuration: time.Second}, caches: newCaches(1),
	}}
	tn.shards.caches.all[cache] = struct{}{}
	since := time.Now()
	for last, want := range map[int]int{-9: 4, 0: 4, 1: 5, 11: 15, 12: 16, 13: 16, 99: 16} {
		cache.last = since.Add(time.Duration(last) * time.Second)
		got := tn.syncUntil(since).Sub(since)
		assert.Equal(t, time.Duration(want)*time.Second, got, "an object after %d s", last)
	}
}

// A new member waits longer for each member of the same Config.Identity that has died young, and
// for no others.
func TestPace_Penalty(t *testing.T) {
	const second = time.Second
	now := time.Now()
	config := Config{Identity: "a", LeaseDuration: second}
	me := config.newIdentity()
	assert.Equal(t, "a", baseOf(me))
	assert.Empty(t, baseOf("a"))
	// dead returns a member that has lived for some time.
	dead := func(identity string, lived time.Duration) *peer {
		return &peer{
			identity: identity, duration: second, since: now.Add(-time.Hour), renewed: true,
			lease: &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{
				HolderIdentity: &identity,
				AcquireTime:    &metav1.MicroTime{Time: now.Add(-time.Hour)},
				RenewTime:      &metav1.MicroTime{Time: now.Add(lived - time.Hour)},
			}},
		}
	}
	young := func() *peer { return dead(config.newIdentity(), youngFor*second-1) }
	alive, left, gone, unknown, fresh := young(), young(), young(), young(), young()
	unrenewed := young()
	unrenewed.lease.Spec.RenewTime = nil
	alive.since = now
	left.lease.Spec.HolderIdentity = new("")
	gone.lease = nil
	unknown.lease.Spec.AcquireTime = nil
	fresh.since, fresh.renewed = now, false
	for name, test := range map[string]struct {
		peers []*peer
		want  time.Duration
	}{
		"none":           {nil, 0},
		"one":            {[]*peer{young()}, 2 * second},
		"two":            {[]*peer{young(), young()}, 4 * second},
		"four":           {[]*peer{young(), young(), young(), young()}, 16 * second},
		"five":           {[]*peer{young(), young(), young(), young(), young()}, 16 * second},
		"old":            {[]*peer{dead(config.newIdentity(), youngFor*second)}, 0},
		"another's":      {[]*peer{dead("b"+me[1:], 0)}, 0},
		"of this member": {[]*peer{dead(me, 0)}, 0},
		"alive":          {[]*peer{alive}, 0},
		"left":           {[]*peer{left}, 0},
		"gone":           {[]*peer{gone}, 0},
		"no start":       {[]*peer{unknown}, 2 * second},
		"no renewal":     {[]*peer{unrenewed}, 2 * second},
		"not renewed":    {[]*peer{fresh}, 2 * second},
	} {
		tn := &tenure{me: me, shards: &Shards{config: config, peers: map[string]*peer{}}}
		for i, p := range test.peers {
			tn.shards.peers[fmt.Sprint(i)] = p
		}
		assert.Equal(t, test.want, tn.penalty(now), name)
		assert.True(t, tn.shards.mu.TryLock())
	}
}
