// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/controller"
	"example.com/informerstack/informer"
	"example.com/informerstack/reflector"
	"example.com/informerstack/store"
)

// collection is a server's collection of pods, which the test sets, and an informer of it.
type collection struct {
	list   *corev1.PodList
	watch  *watch.FakeWatcher
	pods   informer.SharedIndexInformer
	stored func() // is called after each change of the store, if set
	writes controller.Writes[string]
}

func newCollection() *collection {
	c := &collection{}
	c.set("100", "60", "20")
	return c
}

func (c *collection) set(resourceVersion string, podVersions ...string) {
	c.list = &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: resourceVersion}}
	for _, version := range podVersions {
		c.list.Items = append(c.list.Items, *podAt(version))
	}
}

// seen reports whether the cache has seen the writes of the owner.
func (c *collection) seen() bool {
	return c.writes.Seen("owner", c.pods.GetStore().LastStoreSyncResourceVersion())
}

// podAt returns a pod that was created at resourceVersion.
func podAt(resourceVersion string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "created-at-" + resourceVersion, ResourceVersion: resourceVersion,
	}}
}

func (c *collection) listerWatcher() reflector.ListerWatcher {
	return &reflector.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return c.list.DeepCopy(), nil
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			c.watch = watch.NewFake()
			return c.watch, nil
		},
	}
}

// noisyStore calls changed after each change.
type noisyStore struct {
	store.Indexer
	c *collection
}

func (s noisyStore) changed() {
	if s.c.stored != nil {
		s.c.stored()
	}
}

func (s noisyStore) Add(obj any) error    { defer s.changed(); return s.Indexer.Add(obj) }
func (s noisyStore) Update(obj any) error { defer s.changed(); return s.Indexer.Update(obj) }
func (s noisyStore) Delete(obj any) error { defer s.changed(); return s.Indexer.Delete(obj) }

// eachInformer runs test with an informer of c on each queue.
func eachInformer(t *testing.T, c *collection, test func(t *testing.T)) {
	for name, inOrder := range map[string]bool{"DeltaFIFO": false, "RealFIFO": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				never := false
				noisy := func(i store.Indexer) store.Indexer { return noisyStore{i, c} }
				c.pods = informer.NewSharedIndexInformer(c.listerWatcher(), &corev1.Pod{},
					informer.Options{
						InOrder:     inOrder,
						Reflector:   reflector.Options{UseWatchList: &never},
						WrapIndexer: noisy,
					})
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan struct{})
				go func() { defer close(ended); c.pods.Run(ctx) }()
				defer func() { cancel(); <-ended }()
				synctest.Wait()
				require.True(t, c.pods.HasSynced())
				test(t)
			})
		})
	}
}

// The cache has listed at 100: a write at 90 has been seen, although the newest object is at 60.
func TestWrites_SeenAfterAListOfOldObjects(t *testing.T) {
	c := newCollection()
	eachInformer(t, c, func(t *testing.T) {
		c.writes.Wrote("owner", "90")
		assert.True(t, c.seen())

		c.writes.Wrote("owner", "101") // of an object that this informer does not select
		assert.False(t, c.seen())
		newest := metav1.ObjectMeta{ResourceVersion: "102"}
		c.watch.Action(watch.Bookmark, &corev1.Pod{ObjectMeta: newest})
		synctest.Wait()
		assert.True(t, c.seen())
	})
}

// During a relist, objects newer than the child are stored before it: the write has been seen only
// when the child is in the store.
func TestWrites_NotSeenBeforeTheChildIsStored(t *testing.T) {
	c := newCollection()
	c.writes.Wrote("owner", "105")
	c.stored = func() {
		if !c.seen() {
			return
		}
		c.writes.Wrote("owner", "105")
		_, exists, err := c.pods.GetStore().GetByKey("ns/created-at-105")
		require.NoError(t, err)
		require.True(t, exists, "seen at %s", c.pods.GetStore().LastStoreSyncResourceVersion())
	}
	eachInformer(t, c, func(t *testing.T) {
		c.set("120", "60", "110", "105", "115")
		gone := apierrors.NewResourceExpired("too old resource version").Status()
		c.watch.Error(&gone)
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, "120", c.pods.GetStore().LastStoreSyncResourceVersion())
		assert.True(t, c.seen())
		c.writes.Wrote("owner", "105")
		c.set("100", "60", "20")
	})
}

// kubernetes-sigs/kueue#8258: while the cache is stale, each write of its copy is refused. With
// Conflicted and Stale the next write waits for a newer copy, whatever else changes meanwhile.
func TestRegress8258_AConflictWaitsForTheCache(t *testing.T) {
	for patient, wantConflicts := range map[bool]int{true: 1, false: 5} {
		c := newCollection()
		eachInformer(t, c, func(t *testing.T) {
			const server = "110" // another client has written the pod that was created at 60
			var writes controller.Writes[string]
			conflicts, written := 0, 0
			reconcile := func(_ context.Context, key string) (controller.Result, error) {
				obj, _, err := c.pods.GetStore().GetByKey(key)
				require.NoError(t, err)
				switch pod := obj.(*corev1.Pod); {
				case patient && writes.Stale(pod):
				case pod.ResourceVersion != server:
					conflicts++
					writes.Conflicted(pod)
				default:
					written++
					return controller.Result{}, nil
				}
				return controller.Result{RequeueAfter: time.Second}, nil
			}
			r := controller.New("pods", reconcile, controller.Options[string]{})
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- r.Run(ctx) }()
			r.Enqueue("ns/created-at-60")
			for i, other := range []string{"105", "106", "107", "108"} {
				time.Sleep(time.Second)
				c.watch.Add(podAt(other)) // the cache moves, the copy does not
				synctest.Wait()
				assert.Zero(t, written, "after %d seconds", i)
			}
			newer := podAt("60")
			newer.ResourceVersion = server
			c.watch.Modify(newer)
			time.Sleep(time.Second)
			synctest.Wait()
			cancel()
			require.NoError(t, <-ended)
			assert.Equal(t, 1, written)
			assert.Equal(t, wantConflicts, conflicts, "patient: %v", patient)
		})
	}
}
