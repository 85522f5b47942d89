// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/internal/tools/narrate"
)

// fakeCache syncs when sync is called.
type fakeCache struct {
	name string
	done chan struct{}
}

func newCache(name string) *fakeCache { return &fakeCache{name: name, done: make(chan struct{})} }

func (c *fakeCache) Name() string          { return c.name }
func (c *fakeCache) Done() <-chan struct{} { return c.done }
func (c *fakeCache) sync() *fakeCache      { close(c.done); return c }

// failingCache is a cache that knows why it does not sync, as an informer does.
type failingCache struct {
	*fakeCache
	err error
}

func (c failingCache) Err() error { return c.err }

// No worker starts before every cache is synced: reconcile never reads half a cache.
func TestStory_WorkersWaitForCaches(t *testing.T) {
	pods, nodes := newCache("pods"), newCache("nodes")
	story(t, Options[string]{}, func(w *world) {
		pods.done, nodes.done = make(chan struct{}), make(chan struct{}) // channels of the bubble
		w.c.opts.WaitFor = []Synced{pods, nodes}
		w.change("a")
		w.run()
		w.after(time.Minute)
		nodes.sync()
		w.settle()
		w.workerSaw()
		snapshot := w.c.Snapshot()
		assert.Equal(t, PhaseWaiting, snapshot.Phase)
		assert.Equal(t, []MissingCache{{Name: "pods"}}, snapshot.Missing)
		pods.sync()
		w.settle()
		w.workerSaw("a: ok")
		assert.Equal(t, PhaseRunning, w.c.Snapshot().Phase)
	})
}

// kubernetes-sigs/controller-runtime#1653: a cache that never syncs (no permission, no such kind)
// is named, with its cause.
func TestStory_MissingCacheIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forbidden := errors.New("pods is forbidden")
		w := newWorld(t, Options[string]{WaitFor: []Synced{
			failingCache{newCache("pods"), forbidden}, newCache("nodes").sync(),
			newCache("secrets"),
		}})
		w.narrate = narrate.New(t)
		w.change("a")
		err := w.c.Run(t.Context())
		w.narrate.Event("worker", "Run returns: %v", err)
		assert.Equal(t, DefaultCacheSyncTimeout, time.Since(w.start))
		assert.EqualError(t, err, `run controller "story": `+
			"caches not synced within 2m0s: pods (pods is forbidden), secrets")
		assert.ErrorIs(t, err, forbidden)
		missing, ok := errors.AsType[*CacheSyncError](err)
		require.True(t, ok)
		assert.Equal(t, []MissingCache{{"pods", forbidden}, {"secrets", nil}}, missing.Missing)
		w.workerSaw()
		assert.True(t, w.c.Queue().ShuttingDown())
	})
}

// A stop while the caches load, or before, is an ordinary stop.
func TestStory_StopWhileWaitingForCaches(t *testing.T) {
	for _, before := range []bool{false, true} {
		story(t, Options[string]{}, func(w *world) {
			ctx, cancel := context.WithCancel(w.ctx)
			defer cancel()
			if w.ctx = ctx; before {
				cancel()
			}
			w.c.opts.WaitFor = []Synced{newCache("pods")}
			w.change("a")
			w.run()
			w.stop()
			w.workerSaw()
			assert.Equal(t, PhaseStopped, w.c.Snapshot().Phase)
		})
	}
}
