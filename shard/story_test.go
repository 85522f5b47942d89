// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A single replica owns all shards at once.
func TestStory_OneReplicaOwnsAll(t *testing.T) {
	story(t, 16, func(w *world) {
		a := w.process("a")
		w.loads(16)
		assert.True(t, a.Ready())
		a.stop()
		w.after(time.Second)
		assert.True(t, a.returned())
		assert.Empty(t, holderOf(w.lease(3)))
	})
}

// Three replicas share the shards, and share those of one that leaves.
func TestStory_ThreeReplicasConverge(t *testing.T) {
	story(t, 16, func(w *world) {
		a := w.process("a")
		w.process("b")
		w.after(time.Second)
		w.loads(8, 8)
		w.process("c")
		w.after(time.Second)
		w.loads(6, 5, 5)
		a.stop()
		w.after(time.Second)
		w.loads(8, 8)
	})
}

// The shards of a dead replica are taken when its Lease has not changed for LeaseDuration.
func TestStory_ADeadReplicaIsReplaced(t *testing.T) {
	story(t, 16, func(w *world) {
		w.process("a")
		b := w.process("b")
		w.after(time.Second)
		b.crash()
		w.after(DefaultLeaseDuration - 2*time.Second)
		w.loads(8)
		w.after(4 * time.Second)
		w.loads(16)
	})
}

// A new replica does not count on one that has died before it came, whose Lease is still there.
func TestStory_ANewReplicaDoesNotWaitForADeadOne(t *testing.T) {
	story(t, 16, func(w *world) {
		w.process("a")
		b := w.process("b")
		w.after(time.Second)
		b.crash()
		w.after(2 * DefaultLeaseDuration)
		w.loads(16)
		w.process("c")
		w.after(time.Second)
		w.loads(8, 8)
	})
}
