// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/informerstack/compat/adapt"
	"example.com/informerstack/shard"
)

// shardedReplica is one process that runs the manager beside others.
type shardedReplica struct {
	manager.Manager
	shards *shard.Shards
	stop   func()
}

func (w *world) startSharded(identity string) *shardedReplica {
	shards, err := newShards(w.config(), "default", identity, 16)
	require.NoError(w.t, err)
	m, err := newShardedManager(w.config(), shards, options())
	require.NoError(w.t, err)
	return &shardedReplica{m, shards, w.run(m)}
}

// cached returns the number of ConfigMaps in the replica's cache.
func (r *shardedReplica) cached(t *testing.T) int {
	var list corev1.ConfigMapList
	require.NoError(t, r.GetClient().List(t.Context(), &list))
	return len(list.Items)
}

// allAnnotated asserts that each ConfigMap has the right checksum.
func (w *world) allAnnotated(names []string) {
	w.t.Helper()
	for _, name := range names {
		configMap := empty()
		configMap.Name = name
		require.NoError(w.t, w.Get(configMap))
		require.Equal(w.t, checksum(configMap), configMap.Annotations[checksumAnnotation], name)
	}
}

// The guard passes on the whole result of the inner reconciler, and its error.
func TestGuarded_KeepsTheResult(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		want := reconcile.Result{RequeueAfter: time.Hour, Priority: new(7)}
		failure := errors.New("no")
		inner := reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
			return want, failure
		})
		value := func(reconcile.Request) (string, bool) { return "uid", true }
		replica := w.startSharded("one")
		defer replica.stop()
		guard := guarded(replica.shards, value, inner)
		got, err := guard.Reconcile(t.Context(), reconcile.Request{})
		require.NoError(t, err)
		require.Equal(t, reconcile.Result{}, got, "another replica has it")

		time.Sleep(10 * time.Second)
		got, err = guard.Reconcile(t.Context(), reconcile.Request{})
		require.Equal(t, failure, err)
		require.Equal(t, want, got)
	})
}

// Two replicas work at the same time, each on its part, which is all that it caches. When one
// stops, the other works on everything.
func TestStory_ReplicasShareTheConfigMaps(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		const count = 40
		names := []string{"a"}
		for i := len(names); i < count; i++ {
			configMap := empty()
			configMap.Name = fmt.Sprint("map-", i)
			names = append(names, configMap.Name)
			require.NoError(t, w.Create(configMap))
		}
		change := func() {
			for _, name := range names {
				configMap := empty()
				configMap.Name = name
				require.NoError(t, w.Get(configMap))
				configMap.Data = map[string]string{"at": time.Now().String()}
				require.NoError(t, w.Update(configMap))
			}
		}
		first := w.startSharded("first")
		defer first.stop()
		time.Sleep(10 * time.Second)
		require.True(t, first.shards.Ready())
		w.allAnnotated(names)
		require.Equal(t, count, first.cached(t))

		second := w.startSharded("second")
		defer second.stop()
		time.Sleep(20 * time.Second) // it takes its share in steps
		require.True(t, second.shards.Ready())
		require.Less(t, first.cached(t), count)
		require.Equal(t, count, first.cached(t)+second.cached(t))
		change()
		time.Sleep(10 * time.Second)
		w.allAnnotated(names)

		first.stop()
		change()
		time.Sleep(10 * time.Second)
		require.Equal(t, count, second.cached(t))
		w.allAnnotated(names)
		configMaps, err := second.GetCache().GetInformer(t.Context(), &corev1.ConfigMap{})
		require.NoError(t, err)
		core, ours := adapt.CoreInformer(configMaps)
		require.True(t, ours)
		require.Zero(t, core.Status().Reflector.Failures)
	})
}

// If the controller ends, so does the process, and its shards are free at once.
func TestStory_ThePartsEndTogether(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		shards, err := newShards(w.config(), "default", "one", 4)
		require.NoError(t, err)
		m, err := newShardedManager(w.config(), shards, options())
		require.NoError(t, err)
		failure := errors.New("the controller has ended")
		require.NoError(t, m.Add(manager.RunnableFunc(func(context.Context) error {
			time.Sleep(10 * time.Second)
			assert.True(t, shards.Ready())
			return failure
		})))
		require.ErrorIs(t, m.Start(t.Context()), failure)
		assert.False(t, shards.Status().Joined)
		leases, err := w.List("leases", "default")
		require.NoError(t, err)
		for _, lease := range leases {
			spec, _ := lease.Object["spec"].(map[string]any)
			assert.Empty(t, spec["holderIdentity"], lease.GetName())
		}
	})
}
