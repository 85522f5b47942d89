// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clientfeatures "k8s.io/client-go/features"
	featurestesting "k8s.io/client-go/features/testing"
	clientgo "k8s.io/client-go/tools/cache"

	"example.com/informerstack/compat/cache"
	framework "example.com/informerstack/compat/cache/testing"
)

// sortedSource lists in the order of names.
type sortedSource struct {
	*framework.FakeControllerSource
}

func (s sortedSource) List(options metav1.ListOptions) (runtime.Object, error) {
	list, err := s.FakeControllerSource.List(options)
	if err == nil {
		slices.SortFunc(list.(*v1.List).Items, func(a, b runtime.RawExtension) int {
			return strings.Compare(a.Object.(*v1.Pod).Name, b.Object.(*v1.Pod).Name)
		})
	}
	return list, err
}

// subject is an informer, ours or client-go's.
type subject struct {
	store interface {
		ListKeys() []string
		LastStoreSyncResourceVersion() string
	}
	controller interface{ LastSyncResourceVersion() string }
	queue      string // its name, if the informer reports it
	run        func(context.Context)
}

// start runs an informer until the returned function was called.
func (s subject) start(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.run(ctx)
	}()
	return func() {
		cancel()
		<-ended
	}
}

const resyncPeriod = 10 * time.Minute

// subjects makes informers of both kinds on both sides: the simple one resyncs its handler, the
// shared one does not.
var subjects = map[string][2]func(cache.ListerWatcher, cache.ResourceEventHandler) subject{
	"simple": {
		func(lw cache.ListerWatcher, handler cache.ResourceEventHandler) subject {
			s, c := cache.NewInformerWithOptions(cache.InformerOptions{
				ListerWatcher: lw, ObjectType: &v1.Pod{}, Handler: handler,
				ResyncPeriod: resyncPeriod,
			})
			return subject{s, c, c.HasSyncedChecker().Name(), c.RunWithContext}
		},
		func(lw cache.ListerWatcher, handler cache.ResourceEventHandler) subject {
			s, c := clientgo.NewInformerWithOptions(clientgo.InformerOptions{
				ListerWatcher: lw, ObjectType: &v1.Pod{}, Handler: handler,
				ResyncPeriod: resyncPeriod,
			})
			return subject{s, c, c.HasSyncedChecker().Name(), c.RunWithContext}
		},
	},
	"shared": {
		func(lw cache.ListerWatcher, handler cache.ResourceEventHandler) subject {
			i := cache.NewSharedIndexInformer(lw, &v1.Pod{}, resyncPeriod, nil)
			_, _ = i.AddEventHandlerWithResyncPeriod(handler, 0)
			return subject{i.GetStore(), i.GetController(), "", i.RunWithContext}
		},
		func(lw cache.ListerWatcher, handler cache.ResourceEventHandler) subject {
			i := clientgo.NewSharedIndexInformer(lw, &v1.Pod{}, resyncPeriod, nil)
			_, _ = i.AddEventHandlerWithResyncPeriod(handler, 0)
			return subject{i.GetStore(), i.GetController(), "", i.RunWithContext}
		},
	},
}

// describe is name for objects of both implementations.
func describe(obj any) string {
	if tombstone, ok := obj.(clientgo.DeletedFinalStateUnknown); ok {
		return "tombstone of " + name(tombstone.Obj)
	}
	return name(obj)
}

// gatedStory returns the calls of a handler for a list, changes, a relist, a bookmark, a resync and
// another relist, each with the content of the store at that moment.
func gatedStory(t *testing.T, kind string, side int, set func()) []string {
	source := newSource(t, "a", "b")
	var seen log
	var s subject
	note := func(what string, obj any) {
		if kind == "shared" { // its handlers run on their own
			seen.note("%s %s", what, describe(obj))
			return
		}
		seen.note(
			"%s %s, stored are %v, at %q",
			what,
			describe(obj),
			slices.Sorted(slices.Values(s.store.ListKeys())),
			s.store.LastStoreSyncResourceVersion(),
		)
	}
	handler := cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			note(fmt.Sprintf("add initial=%v", initial), obj)
		},
		UpdateFunc: func(_, obj any) { note("update", obj) },
		DeleteFunc: func(obj any) { note("delete", obj) },
	}
	if kind == "simple" { // its queue is made with it
		set()
	}
	s = subjects[kind][side](sortedSource{source}, handler)
	if kind == "shared" {
		set()
	}
	seen.note("-- %s", s.queue)
	stop := s.start(t)
	settle := func() {
		synctest.Wait()
		seen.note("-- store at %q, reflector at %q", s.store.LastStoreSyncResourceVersion(),
			s.controller.LastSyncResourceVersion())
	}
	settle()
	source.Modify(pod("a", 0))
	settle()
	source.DeleteDropWatch(pod("a", 0))
	source.AddDropWatch(pod("c", 0))
	source.ModifyDropWatch(pod("b", 0))
	source.ResetWatch()
	time.Sleep(2 * time.Minute)
	settle()
	source.Change(watch.Event{Type: watch.Bookmark, Object: pod("", 0)}, 1)
	settle()
	source.Delete(pod("b", 0))
	settle()
	time.Sleep(resyncPeriod)
	settle()
	source.ModifyDropWatch(pod("c", 0))
	source.ResetWatch()
	time.Sleep(2 * time.Minute)
	settle()
	stop()
	return seen.take()
}

var gates = []clientfeatures.Feature{
	clientfeatures.InOrderInformers, clientfeatures.AtomicFIFO,
	clientfeatures.UnlockWhileProcessingFIFO,
	clientfeatures.InOrderInformersBatchProcess, clientfeatures.InformerResourceVersion,
}

var storeVersion = regexp.MustCompile(`(store|,) at "\d*"`)

// With a DeltaFIFO, objects are stored in another order than they changed. client-go's store then
// reports the version of the object stored last; ours reports a version only when every change up
// to it is stored, and bookmarks count.
func TestDifference_DeltaFIFOReportsWhatIsComplete(t *testing.T) {
	for side, want := range [][]string{{"2", "3", "6", "7", "8", "9"}, {"2", "3", "5", "8", "9"}} {
		synctest.Test(t, func(t *testing.T) {
			lines := gatedStory(t, "shared", side, func() {
				featurestesting.SetFeatureDuringTest(t, clientfeatures.InOrderInformers, false)
			})
			var got []string
			for _, version := range storeVersion.FindAllString(strings.Join(lines, "\n"), -1) {
				got = append(got, strings.Trim(version[strings.IndexByte(version, '"'):], `"`))
			}
			require.Equal(t, want, slices.Compact(got))
		})
	}
}

// With any gates, an informer makes the same calls as client-go's, in the same order, with the
// store in the same state.
func TestGates_AsInClientGo(t *testing.T) {
	distinct := map[string]bool{}
	for settings := range 1 << len(gates) {
		for kind := range subjects {
			var off []string
			for i, gate := range gates {
				if settings&(1<<i) != 0 {
					off = append(off, string(gate))
				}
			}
			t.Run(kind+"/off="+strings.Join(off, ","), func(t *testing.T) {
				var stories [2][]string
				for side := range stories {
					synctest.Test(t, func(t *testing.T) {
						stories[side] = gatedStory(t, kind, side, func() {
							for _, gate := range off {
								featurestesting.SetFeatureDuringTest(t,
									clientfeatures.Feature(gate), false)
							}
						})
					})
				}
				ours, theirs := strings.Join(stories[0], "\n"), strings.Join(stories[1], "\n")
				distinct[ours] = true
				if slices.Contains(off, string(clientfeatures.InOrderInformers)) {
					// TestDifference_DeltaFIFOReportsWhatIsComplete has this difference.
					ours, theirs = storeVersion.ReplaceAllString(
						ours,
						"",
					), storeVersion.ReplaceAllString(theirs, "")
				}
				require.Equal(t, theirs, ours)
			})
		}
	}
	assert.Len(t, distinct, 13, "all gates have an effect, except UnlockWhileProcessingFIFO")
}

// The reflector continues during a handler's call only if three gates are on. Otherwise it waits
// for a lock. A bubble's time does not advance while a goroutine waits for a lock, so this test
// runs in real time.
func TestGates_UnlockWhileProcessing(t *testing.T) {
	for _, off := range []clientfeatures.Feature{
		"", clientfeatures.UnlockWhileProcessingFIFO, clientfeatures.AtomicFIFO,
		clientfeatures.InOrderInformers,
	} {
		for side, impl := range []string{"ours", "client-go"} {
			t.Run(fmt.Sprintf("off=%s/impl=%s", off, impl), func(t *testing.T) {
				if off != "" {
					featurestesting.SetFeatureDuringTest(t, off, false)
				}
				source := newSource(t, "a")
				var s subject
				wentOn := make(chan bool, 1)
				hasSecond := func() bool { return s.controller.LastSyncResourceVersion() == "2" }
				s = subjects["simple"][side](
					source,
					cache.ResourceEventHandlerDetailedFuncs{AddFunc: func(obj any, initial bool) {
						if !initial {
							return
						}
						source.Add(pod("b", 0))
						if off == "" {
							wentOn <- assert.Eventually(t, hasSecond, time.Minute, time.Millisecond)
						} else {
							wentOn <- !assert.Never(
								t, hasSecond, 20*time.Millisecond, time.Millisecond)
						}
					}},
				)
				defer s.start(t)()
				require.Equal(t, off == "", <-wentOn)
			})
		}
	}
}

// A controller without an informer reads its gate when it runs.
func TestGates_ProcessBatch(t *testing.T) {
	for _, on := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			source := newSource(t, "a", "b")
			var seen log
			controller := cache.New(&cache.Config{
				Queue: cache.NewRealFIFO(cache.MetaNamespaceKeyFunc,
					cache.NewStore(cache.MetaNamespaceKeyFunc), nil),
				ListerWatcher: source,
				Process:       func(any, bool) error { seen.note("one"); return nil },
				ProcessBatch: func(deltas []cache.Delta, _ bool) error {
					seen.note("batch of %d", len(deltas))
					return nil
				},
			})
			featurestesting.SetFeatureDuringTest(t, clientfeatures.InOrderInformersBatchProcess, on)
			defer run(controller)()
			synctest.Wait()
			if on {
				require.Equal(t, []string{"batch of 2"}, seen.take())
			} else {
				require.Equal(t, []string{"one", "one"}, seen.take())
			}
		})
	}
}

// The stores of NewStore and NewThreadSafeStore have no resourceVersion either while the gate is
// off.
func TestGates_StoreResourceVersion(t *testing.T) {
	threadSafe := cache.NewThreadSafeStore(nil, nil)
	theirs := clientgo.NewThreadSafeStore(nil, nil)
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	for _, s := range []interface{ Bookmark(string) }{threadSafe, theirs, store} {
		s.Bookmark("7")
	}
	at := func() []string {
		return []string{
			threadSafe.LastStoreSyncResourceVersion(),
			theirs.LastStoreSyncResourceVersion(),
			store.LastStoreSyncResourceVersion(),
		}
	}
	require.Equal(t, []string{"7", "7", "7"}, at())
	featurestesting.SetFeatureDuringTest(t, clientfeatures.AtomicFIFO, false)
	require.Equal(t, []string{"", "", ""}, at())
}

// Whether the first list may be a stream is asked when an informer runs, and when a reflector is
// made.
func TestGates_WatchListClient(t *testing.T) {
	for _, on := range []bool{true, false} {
		for _, kind := range []string{"shared", "simple", "reflector"} {
			synctest.Test(t, func(t *testing.T) {
				server := newStreamServer("a")
				var run func(context.Context)
				if kind != "reflector" {
					run = subjects[kind][0](server.lw(), cache.ResourceEventHandlerFuncs{}).run
				}
				featurestesting.SetFeatureDuringTest(t, clientfeatures.WatchListClient, on)
				if kind == "reflector" {
					store := &cache.FakeCustomStore{}
					run = cache.NewReflector(server.lw(), &v1.Pod{}, store, 0).RunWithContext
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				run(ctx)
				if on {
					require.Equal(t, []string{"stream"}, server.asked.take(), kind)
				} else {
					require.Equal(t, []string{`list at "0"`, "watch"}, server.asked.take(), kind)
				}
			})
		}
	}
}
