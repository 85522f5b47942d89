// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
)

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
		lease.Annotations = map[string]string{ByAnnotation: bys}
		lease.Spec.HolderIdentity = new("b_1")
		p := &peer{lease: lease, identity: "b_1", since: now, duration: time.Minute}
		assert.Equal(t, fails, s.checkBy(p, now) != nil, bys)
		assert.NoError(t, s.checkBy(p, now.Add(time.Minute)), "it is dead")
		s.ended["b_1"] = true
		assert.NoError(t, s.checkBy(p, now), "it was a term of this process")
		delete(s.ended, "b_1")
	}
}
