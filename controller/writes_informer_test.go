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

// collection is a server's collection of pods, which the test sets.
type collection struct {
	list  *corev1.PodList
	watch *watch.FakeWatcher
}

func (c *collection) set(resourceVersion string, podVersions ...string) {
	c.list = &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: resourceVersion}}
	for _, version := range podVersions {
		c.list.Items = append(c.list.Items, *podAt(version))
	}
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

// onStore calls check after each object that is stored, and after each that is removed.
type onStore struct {
	store.Indexer
	check func()
}

func (s onStore) Add(obj any) error    { defer s.check(); return s.Indexer.Add(obj) }
func (s onStore) Update(obj any) error { defer s.check(); return s.Indexer.Update(obj) }
func (s onStore) Delete(obj any) error { defer s.check(); return s.Indexer.Delete(obj) }

// eachInformer runs test with an informer of c on each queue. check runs after each change of the
// store.
func eachInformer(
	t *testing.T, c *collection, check func(informer.SharedIndexInformer),
	test func(t *testing.T, pods informer.SharedIndexInformer),
) {
	for name, inOrder := range map[string]bool{"DeltaFIFO": false, "RealFIFO": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var pods informer.SharedIndexInformer
				never := false
				pods = informer.NewSharedIndexInformer(
					c.listerWatcher(),
					&corev1.Pod{},
					informer.Options{
						InOrder:   inOrder,
						Reflector: reflector.Options{UseWatchList: &never},
						WrapIndexer: func(inner store.Indexer) store.Indexer {
							return onStore{inner, func() { check(pods) }}
						},
					},
				)
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan struct{})
				go func() { defer close(ended); pods.Run(ctx) }()
				defer func() { cancel(); <-ended }()
				synctest.Wait()
				require.True(t, pods.HasSynced())
				test(t, pods)
			})
		})
	}
}

// The cache has listed at 100: a write at 90 has been seen, although the newest object is at 60.
func TestWrites_SeenAfterAListOfOldObjects(t *testing.T) {
	c := &collection{}
	c.set("100", "60", "20")
	eachInformer(
		t,
		c,
		func(informer.SharedIndexInformer) {},
		func(t *testing.T, pods informer.SharedIndexInformer) {
			var writes controller.Writes[string]
			writes.Wrote("owner", "90")
			assert.True(t, writes.Seen("owner", pods.GetStore().LastStoreSyncResourceVersion()))

			writes.Wrote("owner", "101") // of an object that this informer does not select
			assert.False(t, writes.Seen("owner", pods.GetStore().LastStoreSyncResourceVersion()))
			c.watch.Action(
				watch.Bookmark,
				&corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "102"}},
			)
			synctest.Wait()
			assert.True(t, writes.Seen("owner", pods.GetStore().LastStoreSyncResourceVersion()))
		},
	)
}

// During a relist, objects newer than the child are stored before it: the write has been seen only
// when the child is in the store.
func TestWrites_NotSeenBeforeTheChildIsStored(t *testing.T) {
	var writes controller.Writes[string]
	writes.Wrote("owner", "105")
	check := func(pods informer.SharedIndexInformer) {
		if !writes.Seen("owner", pods.GetStore().LastStoreSyncResourceVersion()) {
			return
		}
		writes.Wrote("owner", "105")
		_, exists, err := pods.GetStore().GetByKey("ns/created-at-105")
		require.NoError(t, err)
		require.True(t, exists, "seen at %s", pods.GetStore().LastStoreSyncResourceVersion())
	}
	c := &collection{}
	c.set("100", "60", "20")
	eachInformer(t, c, check, func(t *testing.T, pods informer.SharedIndexInformer) {
		c.set("120", "60", "110", "105", "115")
		gone := apierrors.NewResourceExpired("too old resource version").Status()
		c.watch.Error(&gone)
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, "120", pods.GetStore().LastStoreSyncResourceVersion())
		assert.True(t, writes.Seen("owner", "120"))
		writes.Wrote("owner", "105")
		c.set("100", "60", "20")
	})
}

// kubernetes-sigs/kueue#8258: while the cache is stale, each write of its copy is refused. With
// Conflicted and Stale the next write waits for a newer copy, whatever else changes meanwhile.
func TestRegress8258_AConflictWaitsForTheCache(t *testing.T) {
	for patient, wantConflicts := range map[bool]int{true: 1, false: 5} {
		c := &collection{}
		c.set("100", "60", "20")
		test := func(t *testing.T, pods informer.SharedIndexInformer) {
			const server = "110" // another client has written the pod that was created at 60
			var writes controller.Writes[string]
			conflicts, written := 0, 0
			reconcile := func(_ context.Context, key string) (controller.Result, error) {
				obj, _, err := pods.GetStore().GetByKey(key)
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
		}
		eachInformer(t, c, func(informer.SharedIndexInformer) {}, test)
	}
}
