// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/informerstack/controller"
	"example.com/informerstack/informer"
	"example.com/informerstack/store"
)

// replicas are whole programs: each has its part of the shards, an informer of ConfigMaps, and a
// controller. They record what they reconcile.
type replicas struct {
	*world
	by     By
	newest map[string]uint64 // of each key, the version on the server; 0 if it was deleted

	mu      sync.Mutex
	running map[string]string // the process that reconciles a key
	done    map[string]uint64 // the newest version of each key that was reconciled
	cleaned map[string]int    // how often a deleted key was reconciled
}

func replicaStory(t *testing.T, by By, play func(r *replicas)) {
	story(t, 16, func(w *world) {
		play(&replicas{
			world: w, by: by, newest: map[string]uint64{}, running: map[string]string{},
			done: map[string]uint64{}, cleaned: map[string]int{},
		})
	})
}

// replica starts a program.
func (r *replicas) replica(name string) *process {
	p := r.newProcess(name)
	client := kubernetes.NewForConfigOrDie(&rest.Config{
		Host: "http://server", QPS: -1, Transport: p.link,
	}).CoreV1().RESTClient()
	maps := informer.New[*corev1.ConfigMap](client, "configmaps",
		p.Options(r.by, informer.Options{}))
	reconcile := func(_ context.Context, key string) (controller.Result, error) {
		r.reconcile(p, maps.GetIndexer(), key)
		return controller.Result{}, nil
	}
	c := controller.New("maps", Reconcile(p.Shards, ValueIn(maps.GetIndexer(), r.by), reconcile),
		controller.Options[string]{
			Workers: 2, CacheSyncTimeout: time.Hour,
			WaitFor: []controller.Synced{maps.HasSyncedChecker()},
		})
	_, err := maps.AddEventHandler(c.Handler(store.DeletionHandlingMetaNamespaceKeyFunc))
	require.NoError(r.t, err)
	p.start()
	ctx, cancel := context.WithCancel(quiet())
	var running sync.WaitGroup
	running.Go(func() { maps.Run(ctx) })
	running.Go(func() { assert.NoError(r.t, c.Run(ctx)) })
	stop := p.cancel
	p.cancel = func() { stop(); cancel() }
	r.t.Cleanup(running.Wait)
	r.settle()
	return p
}

func (r *replicas) reconcile(p *process, objects store.Store, key string) {
	r.mu.Lock()
	assert.Empty(r.t, r.running[key], "%s is reconciled twice", key)
	r.running[key] = p.name
	r.mu.Unlock()
	time.Sleep(20 * time.Millisecond)
	obj, exists, err := objects.GetByKey(key)
	require.NoError(r.t, err)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.running, key)
	if exists {
		r.done[key] = max(r.done[key], versionOf(obj))
		return
	}
	assert.Zero(r.t, r.newest[key], "%s: an object of another replica looks deleted", key)
	r.cleaned[key]++
}

// write creates, changes or deletes an object. A name is not used again.
func (r *replicas) write(random *rand.Rand) {
	key := fmt.Sprintf("default/m-%d", random.IntN(60))
	obj := configMap(key)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch version, known := r.newest[key]; {
	case !known:
		require.NoError(r.t, r.server.Create(obj))
		r.newest[key] = versionOf(obj)
	case version == 0:
	case random.IntN(8) == 0:
		require.NoError(r.t, r.server.Delete(obj))
		r.newest[key] = 0
	default:
		require.NoError(r.t, r.server.Get(obj))
		obj.Data = map[string]string{"was": obj.ResourceVersion}
		require.NoError(r.t, r.server.Update(obj))
		r.newest[key] = versionOf(obj)
	}
}

// busy lets time pass while objects change.
func (r *replicas) busy(random *rand.Rand, d time.Duration) {
	for ; d > 0; d -= 50 * time.Millisecond {
		r.write(random)
		time.Sleep(50 * time.Millisecond)
		r.settle()
	}
}

// settled compares what was reconciled with what is on the server. No replica sees an object that
// is deleted while its shard has no owner, as if the controller was not running: it needs a
// finalizer. When nothing moves, every delete is reconciled.
func (r *replicas) settled(d time.Duration) {
	r.after(d)
	r.mu.Lock()
	var deleted []string
	for key, version := range r.newest {
		if version > 0 {
			assert.Equal(r.t, version, r.done[key], "the last change of %s was reconciled", key)
		}
		if version > 0 && len(deleted) < 5 {
			require.NoError(r.t, r.server.Delete(configMap(key)))
			r.newest[key] = 0
			deleted = append(deleted, key)
		}
	}
	r.mu.Unlock()
	r.after(time.Second)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, key := range deleted {
		assert.Positive(r.t, r.cleaned[key], "the delete of %s was reconciled", key)
	}
}

// Replicas come, go and die while objects change. Every change is reconciled, by one replica at a
// time, and an object that has moved does not look deleted.
func TestStory_ReplicasShareTheWork(t *testing.T) {
	for name, by := range map[string]By{"uid": ByUID, "namespace": ByNamespace} {
		t.Run(name, func(t *testing.T) {
			replicaStory(t, by, func(r *replicas) {
				random := rand.New(rand.NewPCG(1, 1))
				a := r.replica("a")
				r.busy(random, 5*time.Second)
				r.settled(2 * time.Second)
				r.replica("b")
				r.busy(random, 5*time.Second)
				c := r.replica("c")
				r.busy(random, 5*time.Second)
				r.settled(3 * time.Second)
				a.stop()
				r.busy(random, 5*time.Second)
				r.replica("d")
				r.busy(random, 2*time.Second)
				r.settled(3 * time.Second)
				c.crash()
				r.busy(random, 5*time.Second)
				r.settled(DefaultLeaseDuration + 5*time.Second)
			})
		})
	}
}
