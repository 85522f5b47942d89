// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/apitest"
	"example.com/informerstack/informer"
	"example.com/informerstack/reflector"
)

func someKeys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("ns-%d/m-%d", i%5*1000003, i)
	}
	return keys
}

// Shards come and go; the store and the handlers follow.
func TestStory_AcquireAndRelease(t *testing.T) {
	for name, by := range map[string]By{
		"uid": ByUID, "namespace": ByNamespace, "owner": ByOwner(),
	} {
		t.Run(name, func(t *testing.T) {
			cacheStory(t, cacheVariants(by), func(w *cacheWorld) {
				w.create(someKeys(40)...)
				w.start()
				w.settled(time.Second)
				w.own(0, 1, 2)
				w.settled(2 * time.Second)
				w.own(2, 3, 4, 5)
				w.update(someKeys(20)...)
				w.settled(2 * time.Second)
				w.ownAll()
				w.settled(2 * time.Second)
				require.Len(t, w.informer.GetStore().ListKeys(), 40)
				w.own()
				w.settled(2 * time.Second)
				w.own(1)
				w.delete(someKeys(10)...)
				w.settled(2 * time.Second)
			})
		})
	}
}

// A server that selects sends the process its shards only. All of them are listed when some come or
// go, and then watched from there.
func TestStory_ItsShardsAreListed(t *testing.T) {
	half := "shardRange(uid, '0x0', '0x8')"
	cacheStory(t, cacheVariants(ByUID)[:1], func(w *cacheWorld) {
		w.create(someKeys(40)...)
		w.own(0, 1, 2, 3)
		w.start()
		w.settled(time.Second)
		assert.Equal(t, []string{"list 500 " + half, "watch " + half}, w.requests())

		w.own(0, 1, 2, 3, 5)
		w.settled(time.Second)
		more := half + " || shardRange(uid, '0xa', '0xc')"
		assert.Equal(t, []string{"list " + more, "watch " + more}, w.requests())

		w.own(1, 5)
		w.settled(time.Second)
		less := "shardRange(uid, '0x2', '0x4') || shardRange(uid, '0xa', '0xc')"
		assert.Equal(t, []string{"list " + less, "watch " + less}, w.requests())

		w.ownAll()
		w.settled(time.Second)
		assert.Equal(t, []string{"list", "watch"}, w.requests(),
			"a process that owns everything does not select")
	})
}

// skipping starts the informer with shards 1 and 2, and returns a handler that skips updates
// without a change.
func (w *cacheWorld) skipping() *cacheRecorder {
	skips := &cacheRecorder{view: map[string]uint64{}, log: w.event}
	_, err := w.informer.AddEventHandlerWithOptions(skips, informer.HandlerOptions{
		SkipUnchanged: true,
	})
	require.NoError(w.t, err)
	w.startWith(1, 2)
	return skips
}

// The reflector cannot store a list that removes a shard, and the shard comes back before the next
// one. That leaves the shard out all the same, so each of its objects gets an event: C4.
func TestStory_AListIsRefused(t *testing.T) {
	for _, o := range cacheVariants(ByUID) {
		refuses, refused := atomic.Bool{}, atomic.Bool{}
		o.options.Reflector.Transform = func(obj any) (any, error) {
			if refuses.Load() {
				refused.Store(true)
				return nil, errors.New("refused")
			}
			return obj, nil
		}
		cacheStory(t, []cacheOptions{o}, func(w *cacheWorld) {
			skips := w.skipping()
			skips.take()
			refuses.Store(true)
			w.own(2)
			for !refused.Load() {
				w.after(settleCheck)
			}
			w.own(1, 2)
			refuses.Store(false)
			w.settled(time.Minute)
			var want []string
			for _, key := range w.in(sets.New[Shard](1)) {
				want = append(want, "add "+key, "tombstone "+key)
			}
			require.NotEmpty(t, want)
			assert.ElementsMatch(t, want, skips.take())
		})
	}
}

// A shard that is given up and taken back at once is removed, and listed again: the guard has
// dropped keys in between, so every object needs an event, even for a handler that skips updates
// without a change. The objects of other shards get such an update with each list.
func TestStory_ShardComesBackAtOnce(t *testing.T) {
	cacheStory(t, cacheVariants(ByUID), func(w *cacheWorld) {
		skips := w.skipping()
		w.handler.take()
		skips.take()
		w.own(2)
		w.own(1, 2)
		assert.False(t, w.shards.caches.status().stored.Has(1))
		w.settled(2 * time.Second)
		var want, updates []string
		for _, key := range w.in(sets.New[Shard](1)) {
			want = append(want, "add "+key, "tombstone "+key)
		}
		for _, key := range w.in(sets.New[Shard](2)) {
			updates = append(updates, "update "+key, "update "+key)
		}
		require.NotEmpty(t, want)
		require.NotEmpty(t, updates)
		assert.ElementsMatch(t, want, skips.take())
		assert.ElementsMatch(t, append(want, updates...), w.handler.take())
	})
}

// While the new shards cannot be listed, the others are kept up to date: the server refuses the
// list, or does not answer it.
func TestStory_NewShardsCannotBeListed(t *testing.T) {
	for name, fault := range map[string]apitest.Fault{
		"refused": {Err: apierrors.NewTooManyRequests("busy", 1)},
		"silent":  {Delay: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			fault.Match = apitest.Match{Verb: "list"}
			cacheStory(t, cacheVariants(ByUID), func(w *cacheWorld) { newShardsWait(w, fault) })
		})
	}
}

func newShardsWait(w *cacheWorld, fault apitest.Fault) {
	w.startWith(1, 2)
	heal := w.server.Faults().Add(fault)
	w.own(2, 3)
	for range 10 {
		w.update(w.in(sets.New[Shard](2, 3))...)
		w.after(2 * time.Second)
		for _, key := range w.in(sets.New[Shard](2)) {
			writes := w.history[key]
			assert.Equal(w.t, writes[len(writes)-1].version, w.stored(key))
		}
	}
	assert.Equal(w.t, sets.New[Shard](2), w.shards.caches.status().stored)
	assert.Zero(w.t, w.informer.Status().Reflector.Failures, "the reflector is well")
	heal()
	w.settled(15 * time.Minute)
}

// Objects change while the list of new shards is under way: the list shows the state before the
// changes, or the one after.
func TestStory_ChangesWhileNewShardsAreListed(t *testing.T) {
	for name, by := range map[string]By{"uid": ByUID, "namespace": ByNamespace, "label": byLabel} {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/late=%v", name, late), func(t *testing.T) {
				cacheStory(t, cacheVariants(by), func(w *cacheWorld) { changeWhileListed(w, late) })
			})
		}
	}
}

func changeWhileListed(w *cacheWorld, late bool) {
	w.startWith(1, 2)
	if late {
		w.lateLists(1, 5*time.Second)
	} else {
		w.server.Faults().Add(apitest.Fault{
			Match: apitest.Match{Verb: "list"}, Delay: 5 * time.Second, Times: 1,
		})
	}
	all := allShards(w.shards.config.Count)
	away := shardOf("away", w.shards.config.Count)
	all.Delete(away)
	w.own(sets.List(all)...)
	w.after(2 * time.Second)
	keys := someKeys(60)
	w.update(keys[:30]...)
	w.delete(keys[10:40]...)
	w.create(keys[20:60]...) // 20 to 40 have other uids, so they are in other shards
	w.after(time.Second)
	w.updateWith(keys[50], func(m *corev1.ConfigMap) {
		m.Labels = map[string]string{"part": "other"}
	})
	for _, key := range keys[5:10] { // they leave shards that are listed
		w.updateWith(key, func(m *corev1.ConfigMap) {
			m.Labels = map[string]string{"part": "away"}
		})
	}
	w.delete(keys[:5]...)
	w.settled(10 * time.Second)
}

// The process stops while new shards are listed, or while it waits for them.
func TestStory_StopWhileNewShardsAreListed(t *testing.T) {
	cacheStory(t, cacheVariants(ByUID), func(w *cacheWorld) {
		w.startWith(1, 2)
		w.server.Faults().Add(apitest.Fault{
			Match: apitest.Match{Verb: "list"}, Delay: 5 * time.Second,
		})
		w.ownAll()
		w.after(2 * time.Second)
		w.stop()
		<-w.stopped
	})
}

// A watch that has expired is followed by one list of everything owned. The ownership changes
// meanwhile.
func TestStory_ExpiredWhileShardsMove(t *testing.T) {
	cacheStory(t, cacheVariants(ByUID), func(w *cacheWorld) {
		w.startWith(1, 2)
		w.server.Faults().Break(apitest.Match{Resource: "configmaps"}, apitest.CloseStream)
		w.update(someKeys(40)...)
		w.server.Faults().Compact()
		w.own(2, 3)
		w.server.Faults().Break(apitest.Match{Resource: "configmaps"}, apitest.ErrorStream)
		w.own(2, 3, 4)
		w.settled(10 * time.Second)
	})
}

// Handlers that are slow get every event of a shard that is released meanwhile.
func TestStory_SlowHandlers(t *testing.T) {
	cacheStory(t, cacheVariants(ByUID), func(w *cacheWorld) {
		w.create(someKeys(40)...)
		w.handler.slow.Store(int64(time.Second))
		w.ownAll()
		w.start()
		w.after(2 * time.Second)
		w.own(1)
		w.after(2 * time.Second)
		assert.Equal(t, len(w.in(sets.New[Shard](1))), len(w.informer.GetStore().ListKeys()))
		w.update(someKeys(40)...)
		w.own(1, 2)
		w.settled(5 * time.Minute)
	})
}

// A transform may drop the value by which objects are sharded, or change the type. Tombstones have
// the stored objects.
func TestStory_Transforms(t *testing.T) {
	for name, transform := range map[string]func(m *corev1.ConfigMap) any{
		"drops the uid": func(m *corev1.ConfigMap) any { m.UID = ""; return m },
		"changes the type": func(m *corev1.ConfigMap) any {
			return &corev1.Secret{ObjectMeta: m.ObjectMeta}
		},
	} {
		variants := cacheVariants(ByUID)
		for i := range variants {
			variants[i].options.Reflector.Transform = func(obj any) (any, error) {
				m, ok := obj.(*corev1.ConfigMap)
				if !ok {
					return nil, errors.New("transformed twice")
				}
				return transform(m), nil
			}
		}
		t.Run(name, func(t *testing.T) {
			cacheStory(t, variants, func(w *cacheWorld) {
				w.startWith(1, 2)
				w.own(2, 3, 4)
				w.settled(2 * time.Second)
				w.update(someKeys(20)...)
				w.delete(someKeys(5)...)
				w.settled(2 * time.Second)
			})
		})
	}
}

// A process that owns nothing asks for the version once a minute, or a bit earlier. So it is
// current.
func TestStory_NothingOwned(t *testing.T) {
	cacheStory(t, cacheVariants(ByUID), func(w *cacheWorld) {
		w.create(someKeys(40)...)
		w.start()
		require.True(t, w.informer.HasSynced())
		assert.Equal(t, []string{"list 2"}, w.requests())
		for range 30 {
			w.update(someKeys(2)...)
			w.after(time.Minute)
			require.NoError(t, w.informer.Health().Fresh(time.Now(), 2*time.Minute))
		}
		lists := w.requests()
		assert.Equal(t, slices.Repeat([]string{"list 2"}, len(lists)), lists)
		assert.LessOrEqual(t, len(lists), 41)
		w.own(1)
		w.settled(2 * time.Second)
		for _, request := range w.requests() {
			assert.NotContains(t, request, "500", "the reflector is well")
		}
		w.own()
		w.settled(2 * time.Second)
	})
}

// The list of other shards shows everything that is owned, at one version. The watch may be older,
// and the informer says the version when everything is stored.
func TestStory_TheListIsNewerThanTheWatch(t *testing.T) {
	cacheStory(t, cacheVariants(ByUID), func(w *cacheWorld) {
		w.startWith(1)
		w.server.Faults().Break(apitest.Match{Resource: "configmaps"}, apitest.StallStream)
		w.server.Faults().Add(apitest.Fault{
			Match: apitest.Match{Verb: "watch"}, Stream: apitest.StallStream, Times: 1,
		})
		before := w.informer.Status().ResourceVersion
		w.update(someKeys(40)...)
		newest := w.server.ResourceVersion()
		w.after(3 * time.Second)
		assert.Equal(t, before, w.informer.Status().ResourceVersion, "the watch brings nothing")
		w.own(1, 2)
		w.settled(3 * time.Second)
		assert.Equal(t, newest, w.informer.Status().ResourceVersion)
		assert.NoError(t, w.informer.WaitForResourceVersion(t.Context(), newest))
		w.server.Faults().Break(apitest.Match{Resource: "configmaps"}, apitest.CloseStream)
		w.settled(15 * time.Minute)
	})
}

// The list may be older than what the watch has brought meanwhile: nothing goes back, and nothing
// is passed on twice.
func TestStory_TheListIsOlderThanTheWatch(t *testing.T) {
	cacheStory(t, cacheVariants(ByUID), func(w *cacheWorld) {
		w.startWith(1)
		kept := w.in(sets.New[Shard](1))
		require.Greater(t, len(kept), 3)
		w.lateLists(1, 5*time.Second)
		w.own(1, 2)
		w.after(time.Second)
		w.handler.take()
		w.update(kept[0], kept[1])
		w.update(kept[1])
		w.delete(kept[2])
		w.after(time.Second)
		assert.ElementsMatch(t, []string{
			"update " + kept[0], "update " + kept[1], "update " + kept[1], "delete " + kept[2],
		}, w.handler.take(), "while the list is under way")
		w.settled(10 * time.Second)
		var want []string
		for _, key := range w.in(sets.New[Shard](1)) {
			want = append(want, "update "+key) // without a change
		}
		for _, key := range w.in(sets.New[Shard](2)) {
			want = append(want, "add "+key)
		}
		assert.ElementsMatch(t, want, w.handler.take())
		assert.Equal(t, w.server.ResourceVersion(), w.informer.Status().ResourceVersion)
	})
}

// A server that does not select is noticed. No server selects by an owner: that is known at once.
func TestStory_ServerDoesNotSelect(t *testing.T) {
	for _, by := range []By{ByUID, ByNamespace, ByOwner()} {
		cacheStory(t, cacheVariants(by), func(w *cacheWorld) {
			filtering := map[bool]int{true: 0, false: 1}
			w.start()
			assert.Equal(t, filtering[by.selectable()], w.shards.Status().Filtering)
			w.create(someKeys(40)...)
			w.own(1, 2)
			w.settled(2 * time.Second)
			selects := by.selectable() && !strings.Contains(w.t.Name(), "client_drops")
			assert.Equal(t, filtering[selects], w.shards.Status().Filtering)
		})
	}
}

// forgetful is a ListerWatcher that asks for all objects instead of some shards.
type forgetful struct {
	reflector.ListerWatcher
	forgets *atomic.Bool
}

func (f forgetful) ListWithContext(
	ctx context.Context, o metav1.ListOptions,
) (runtime.Object, error) {
	if f.forgets.Load() {
		o.ShardSelector = ""
	}
	return f.ListerWatcher.ListWithContext(ctx, o)
}

func (f forgetful) WatchWithContext(
	ctx context.Context, o metav1.ListOptions,
) (watch.Interface, error) {
	if f.forgets.Load() {
		o.ShardSelector = ""
	}
	return f.ListerWatcher.WatchWithContext(ctx, o)
}

// A server that did not select may do so later, and stop again.
func TestStory_ServerSelectsLater(t *testing.T) {
	for _, variant := range cacheVariants(ByUID) {
		if variant.noShards {
			continue
		}
		var forgets atomic.Bool
		forgets.Store(true)
		variant.options.WrapListerWatcher = func(
			_ context.Context, inner reflector.ListerWatcher, _ runtime.Object,
		) reflector.ListerWatcher {
			return forgetful{inner, &forgets}
		}
		cacheStory(t, []cacheOptions{variant}, func(w *cacheWorld) {
			w.startWith(1, 2)
			for _, filtering := range []int{1, 0, 1} {
				forgets.Store(filtering == 1)
				w.server.Faults().Compact()
				w.server.Faults().Break(apitest.Match{Resource: "configmaps"}, apitest.ErrorStream)
				w.settled(time.Minute)
				assert.Equal(t, filtering, w.shards.Status().Filtering)
			}
		})
	}
}

func TestOptions_Misused(t *testing.T) {
	shards := newShards(t, 1)
	assert.PanicsWithValue(t, zeroBy, func() { shards.Options(By{}, informer.Options{}) })
	options := shards.Options(ByUID, informer.Options{})
	informer.NewSharedIndexInformer(nil, &corev1.ConfigMap{}, options)
	assert.Panics(t, func() { informer.NewSharedIndexInformer(nil, &corev1.ConfigMap{}, options) },
		"they are for one informer")
}
