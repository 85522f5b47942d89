// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"example.com/informerstack/store"
)

// waitFor works for our informers only.
func (w *world) waitFor(ctx context.Context, resourceVersion string) error {
	w.narrate.Event("worker", "waits for resourceVersion %s; the store holds %v", resourceVersion,
		w.stored())
	err := w.ours().WaitForResourceVersion(ctx, resourceVersion)
	w.narrate.Event("worker", "the wait ends; the store holds %v; error: %v", w.stored(), err)
	return err
}

// waits starts a wait and returns the channel of its result.
func (w *world) waits(ctx context.Context, resourceVersion string) <-chan error {
	result := make(chan error, 1)
	go func() { result <- w.waitFor(ctx, resourceVersion) }()
	w.settle()
	return result
}

func stillWaits(t *testing.T, result <-chan error) {
	t.Helper()
	synctest.Wait()
	select {
	case err := <-result:
		t.Fatalf("the waiting ended: %v", err)
	default:
	}
}

// onTheWay delays each event of the watch.
func onTheWay(delay time.Duration) func(*worldOptions) {
	return withOptions(func(o *Options) {
		o.Reflector.Transform = func(obj any) (any, error) {
			time.Sleep(delay)
			return obj, nil
		}
	})
}

// After a write the store still has the old object. WaitForResourceVersion waits for the new one.
func TestStory_ReadYourOwnWrite(t *testing.T) {
	story(t, func(w *world) {
		w.create("a")
		w.start()
		w.after(time.Minute)
		assert.Equal(t, []string{"a@1"}, w.stored())

		w.server.update("a") // to resourceVersion 2
		assert.Equal(t, []string{"a@1"}, w.stored(), "old")
		before := time.Now()
		require.NoError(t, w.waitFor(w.t.Context(), "2"))
		assert.Equal(t, []string{"a@2"}, w.stored(), "new")
		assert.Equal(t, 3*time.Second, time.Since(before), "no longer than it took to arrive")
		require.NoError(t, w.waitFor(w.t.Context(), "2"), "at once")
		require.NoError(t, w.waitFor(w.t.Context(), "1"), "at once")
	}, bothQueues, onTheWay(3*time.Second))
}

// If the informer does not select the written object, a bookmark ends the wait.
func TestStory_WaitEndsWithABookmark(t *testing.T) {
	story(t, func(w *world) {
		w.create("a")
		w.start()
		w.server.elsewhere()
		result := w.waits(w.t.Context(), "2")
		w.after(time.Minute)
		stillWaits(t, result)
		w.server.bookmark()
		require.NoError(t, <-result)
	}, bothQueues)
}

// A relist ends the wait if a broken watch has missed the write.
func TestStory_WaitEndsWithARelist(t *testing.T) {
	story(t, func(w *world) {
		w.create("a")
		w.create("b")
		w.start()
		w.server.fail(errors.New("down"))
		w.loseDelete("b")
		result := w.waits(w.t.Context(), "3")
		w.expireWatch()
		w.after(time.Second)
		stillWaits(t, result)
		w.server.fail(nil)
		require.NoError(t, <-result)
		assert.Equal(t, []string{"a@1"}, w.stored())
	}, bothQueues)
}

// A wait may begin before the informer runs.
func TestStory_WaitSpansTheStart(t *testing.T) {
	for _, stream := range []bool{false, true} {
		options := []func(*worldOptions){bothQueues}
		if stream {
			options = append(options, streaming)
		}
		story(t, func(w *world) {
			w.create("a")
			result := w.waits(w.t.Context(), "1")
			stillWaits(t, result)
			w.start()
			require.NoError(t, <-result)
			assert.Equal(t, []string{"a@1"}, w.stored())
		}, options...)
	}
}

// A received change is not yet in the store: a slow consumer delays the wait. (This test uses a
// RealFIFO: a DeltaFIFO is locked while its consumer works, and the time of a bubble does not
// advance while a goroutine waits for a mutex.)
func TestStory_WaitIsForTheStoreNotTheQueue(t *testing.T) {
	delay := time.Duration(0)
	story(t, func(w *world) {
		w.create("a")
		w.start()
		delay = time.Second
		before := time.Now()
		w.server.update("a")
		require.NoError(t, w.waitFor(w.t.Context(), "2"))
		assert.Equal(t, []string{"a@2"}, w.stored())
		assert.Equal(t, time.Second, time.Since(before))
	}, only(oursRealFIFO), withOptions(beforeWrites(func() error {
		time.Sleep(delay)
		return nil
	})))
}

func TestWaitForResourceVersion_NamesWantAndHave(t *testing.T) {
	story(t, func(w *world) {
		w.create("a")
		w.start()
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
		defer cancel()
		err := w.waitFor(ctx, "5")
		behind, ok := errors.AsType[*BehindError](err)
		require.True(t, ok, "%v", err)
		assert.Equal(t, &BehindError{
			Informer: behind.Informer, Want: "5", Have: "1", Cause: context.DeadlineExceeded,
		}, behind)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.EqualError(t, err, `wait for resourceVersion "5" in SharedIndexInformer`+
			` *v1.ConfigMap, which holds everything up to "1": context deadline exceeded`)

		down := errors.New("down")
		w.server.fail(down)
		w.expireWatch()
		ctx, cancel = context.WithTimeout(w.t.Context(), time.Minute)
		defer cancel()
		err = w.waitFor(ctx, "5")
		assert.ErrorIs(t, err, down)
		assert.ErrorContains(t, err, "(the informer: failed to list *v1.ConfigMap: down)")

		result := w.waits(w.t.Context(), "5")
		w.stop()
		assert.ErrorIs(t, <-result, ErrStopped)
		assert.ErrorIs(t, w.waitFor(w.t.Context(), "5"), ErrStopped)
		assert.NoError(t, w.waitFor(w.t.Context(), "1"),
			"a stopped informer keeps its store")
	}, bothQueues)
}

// A wait for a version that the store has succeeds even if the context is done.
func TestWaitForResourceVersion_ReachedWinsOverDone(t *testing.T) {
	story(t, func(w *world) {
		w.create("a")
		w.start()
		ctx, cancel := context.WithCancel(w.t.Context())
		cancel()
		for range 100 {
			require.NoError(t, w.waitFor(ctx, "1"))
		}
	}, bothQueues)
}

func TestWaitForResourceVersion_RefusesWhatIsNoNumber(t *testing.T) {
	w := newWorld(t, ours, worldOptions{})
	for _, bad := range []string{"", "0", "-1", "007", "12a", "latest", " 1", "１"} {
		err := w.waitFor(w.t.Context(), bad)
		_, ok := errors.AsType[resourceversion.InvalidResourceVersion](err)
		assert.True(t, ok, "%q: %v", bad, err)
		assert.ErrorContains(t, err, "SharedIndexInformer *v1.ConfigMap", "%q", bad)
	}
}

// Versions are compared as numbers of any length. A version that is not a number is an error, not
// an endless wait.
func TestWaitForResourceVersion_ComparesNumbersOfAnyLength(t *testing.T) {
	for _, c := range []struct{ has, want, err string }{
		{"10", "9", ""},
		{"9", "10", "deadline exceeded"},
		{"123456789012345678901234567890", "123456789012345678901234567889", ""},
		{"99999999999999999999", "100000000000000000000", "deadline exceeded"},
		{"opaque", "5", "opaque"},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			i := NewSharedIndexInformer(staying(c.has), &corev1.Pod{}, Options{})
			go i.Run(t.Context()) // not ctx: its end is the wait's alone
			err := i.WaitForResourceVersion(ctx, c.want)
			if c.err == "" {
				assert.NoError(t, err, c.has)
				return
			}
			_, ok := errors.AsType[*BehindError](err)
			assert.True(t, ok, "%+v: %v", c, err)
			assert.ErrorContains(t, err, c.err)
			assert.Equal(t, c.has == "opaque", time.Since(began) == 0, c.has)
		})
	}
}

// With random writes and slow stores, a caller that waits for the resourceVersion of its write
// finds it.
func TestModel_WaitersReadTheirOwnWrites(t *testing.T) {
	for _, slow := range []bool{false, true} {
		impls := bothQueues
		if slow {
			impls = only(oursRealFIFO)
		}
		random, delayMillis := rand.New(rand.NewPCG(9, 9)), 1
		story(t, func(w *world) {
			const objects, writers, writes = 5, 4, 30
			for i := range objects {
				w.create(fmt.Sprint("o", i))
			}
			w.start()
			delayMillis = 3
			var running sync.WaitGroup
			for writer := range writers {
				random := rand.New(rand.NewPCG(uint64(writer), 1))
				running.Go(func() {
					for range writes {
						name := fmt.Sprint("o", random.IntN(objects))
						written := w.server.write(name)
						if !assert.NoError(t, w.waitFor(w.t.Context(), strconv.Itoa(written))) {
							return
						}
						obj, _, _ := w.ours().GetStore().GetByKey(testNamespace + "/" + name)
						has, _ := strconv.Atoi(obj.(*corev1.ConfigMap).ResourceVersion)
						assert.GreaterOrEqual(t, has, written)
						time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond)
					}
				})
			}
			running.Go(func() { // breaks the watch now and then
				for i := range 10 {
					time.Sleep(20 * time.Millisecond)
					if i%2 == 0 {
						w.server.expire()
					} else {
						w.server.cut()
					}
				}
			})
			running.Wait()
		}, impls, withOptions(func(o *Options) {
			if slow {
				beforeWrites(func() error {
					time.Sleep(time.Duration(random.IntN(delayMillis)) * time.Millisecond)
					return nil
				})(o)
			}
		}))
	}
}

// A change that the store refuses is not lost: the informer lists again. Until then no later
// resourceVersion is reported, and the store is known to be old.
func TestStory_RefusedChangeIsListedAgain(t *testing.T) {
	for name, fail := range map[string]func() error{
		"error": func() error { return errors.New("refused") },
		"panic": func() error { panic("broken") },
	} {
		t.Run(name, func(t *testing.T) {
			utilruntime.ReallyCrash = false
			defer func() { utilruntime.ReallyCrash = true }()
			refuse := false
			story(t, func(w *world) {
				w.create("a")
				w.start()
				w.handlerSaw("initial a")
				assert.Equal(t, "1", w.version())
				refuse = true
				w.update("a") // to resourceVersion 2
				assert.Equal(t, "1", w.version())
				assert.ErrorContains(t, w.fresh(time.Hour), "its store is known to be old")
				w.server.bookmark()
				assert.Equal(t, "1", w.version())
				w.after(3 * time.Second)
				assert.Equal(t, []string{"a@2"}, w.stored())
				w.handlerSaw("update a")
				assert.Equal(t, w.informer.LastSyncResourceVersion(), w.version())
				require.NoError(t, w.fresh(time.Minute))
			}, bothQueues, withOptions(beforeWrites(once(&refuse, fail))))
		})
	}
}

// Changes and bookmarks that are queued behind a change that the store refuses do not move the
// store's version past it, whatever kind of change it is; a list that follows does.
func TestStory_VersionStaysBeforeARefusedChange(t *testing.T) {
	refuse := false
	slowly := once(&refuse, func() error {
		time.Sleep(time.Second)
		return errors.New("refused")
	})
	for name, change := range map[string]func(w *world){
		"update":            func(w *world) { w.server.update("a") },
		"add":               func(w *world) { w.server.create("c") },
		"delete":            func(w *world) { w.server.delete("a", false) },
		"batch":             func(w *world) { w.server.update("a"); w.server.update("b") },
		"two of one object": func(w *world) { w.server.update("a"); w.server.update("a") },
	} {
		for wrapper, wrap := range map[string]func(x hooked) store.Indexer{
			"one by one": func(x hooked) store.Indexer { return x },
			"batches":    func(x hooked) store.Indexer { return hookedBatches{x} },
		} {
			t.Run(name+", "+wrapper, func(t *testing.T) {
				story(t, func(w *world) {
					w.create("a")
					w.create("b")
					w.start()
					w.after(time.Minute)
					require.Equal(w.t, "2", w.version())
					refuse = true
					change(w)
					time.Sleep(10 * time.Millisecond) // the store is busy with it
					w.server.elsewhere()
					w.server.bookmark()
					w.server.update("b")
					w.server.elsewhere()
					w.server.bookmark()
					w.server.fail(errors.New("down")) // no list follows
					for range 100 {
						time.Sleep(200 * time.Millisecond)
						require.Equal(w.t, "2", w.version())
						require.Equal(w.t, "2", w.health().ResourceVersion)
					}
					w.server.fail(nil)
					w.after(2 * time.Minute)
					require.Equal(w.t, w.informer.LastSyncResourceVersion(), w.version())
					w.server.elsewhere()
					w.server.bookmark()
					w.after(10 * time.Second)
					require.Equal(w.t, w.informer.LastSyncResourceVersion(), w.version())
				}, only(oursRealFIFO), withOptions(func(o *Options) {
					o.WrapIndexer = func(inner store.Indexer) store.Indexer {
						return wrap(hooked{inner, slowly})
					}
				}))
			})
		}
	}
}

// If the store refuses a part of the first list, the informer syncs with the next list.
func TestStory_NotSyncedBeforeAllIsStored(t *testing.T) {
	refuse := true
	story(t, func(w *world) {
		refuse = true
		w.create("a")
		w.create("b")
		w.start()
		assert.False(t, w.informer.HasSynced())
		assert.False(t, w.handler.HasSynced())
		w.after(3 * time.Second)
		assert.Equal(t, []string{"a@1", "b@2"}, w.stored())
		assert.True(t, w.informer.HasSynced())
		assert.True(t, w.handler.HasSynced())
	}, bothQueues, withOptions(beforeWrites(once(&refuse, func() error {
		return errors.New("refused")
	}))))
}

// A reported version means at any time that every change up to it is in the store: after a list of
// old objects, during a relist, after bookmarks, and when a handler reacts to the change.
func TestStory_StoreVersionMeansEveryChange(t *testing.T) {
	story(t, func(w *world) {
		w.create("a") // 1
		w.create("b") // 2
		w.server.elsewhere()
		w.server.elsewhere()
		w.start()
		assert.Equal(t, "4", w.version(), "the list's, not its newest object's")
		w.server.elsewhere()
		w.server.bookmark()
		w.settle()
		assert.Equal(t, "5", w.version(), "the bookmark's")

		seen := ""
		w.handler.onCall = func(string) { seen = w.version() }
		w.update("a")
		assert.Equal(t, "6", seen, "in the handler")
		w.handler.onCall = nil
		w.expireWatch() // 7
		w.update("b")
		w.after(time.Minute)
		assert.Equal(t, "8", w.version())
	}, bothQueues)
}

// The version of the store does not depend on the resourceVersions of the objects: a transform may
// remove them.
func TestStory_StoreVersionSurvivesTheTransform(t *testing.T) {
	story(t, func(w *world) {
		w.create("a")
		w.start()
		assert.Equal(t, "1", w.version())
		w.update("a")
		assert.Equal(t, "2", w.version())
	}, bothQueues, withOptions(func(o *Options) {
		o.Reflector.Transform = func(obj any) (any, error) {
			stripped := obj.(*corev1.ConfigMap).DeepCopy()
			stripped.ResourceVersion = ""
			return stripped, nil
		}
	}))
}
