// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clientgo "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/consistencydetector"

	"example.com/informerstack/compat/cache"
)

// streamServer is a server with streaming lists and a collection that never changes.
type streamServer struct {
	pods  []v1.Pod
	lost  string // the name of a pod that is missing in streams
	asked log
	fails int // LISTs to refuse
	open  *watch.FakeWatcher
}

// newStreamServer has pods of these names; their UIDs have another order.
func newStreamServer(names ...string) *streamServer {
	s := &streamServer{}
	for i, name := range names {
		uid := types.UID("uid-" + strconv.Itoa(9-i))
		s.pods = append(s.pods, *podOnNode(name, i+1, "node", uid))
	}
	return s
}

func (s *streamServer) lw() *cache.ListWatch {
	return &cache.ListWatch{ListFunc: s.list, WatchFunc: s.watch}
}

func (s *streamServer) list(options metav1.ListOptions) (runtime.Object, error) {
	what := "list at " + strconv.Quote(options.ResourceVersion)
	if options.ResourceVersionMatch != "" {
		what += " " + string(options.ResourceVersionMatch)
	}
	s.asked.note("%s", what)
	if s.fails > 0 {
		s.fails--
		return nil, context.DeadlineExceeded
	}
	list := &v1.PodList{
		ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(len(s.pods))},
		Items:    s.pods,
	}
	return list.DeepCopy(), nil
}

func (s *streamServer) watch(options metav1.ListOptions) (watch.Interface, error) {
	if options.SendInitialEvents == nil {
		s.asked.note("watch")
		return watch.NewFake(), nil
	}
	s.asked.note("stream")
	w := watch.NewFakeWithChanSize(len(s.pods)+1, false)
	for i := range s.pods {
		if s.pods[i].Name != s.lost {
			w.Add(s.pods[i].DeepCopy())
		}
	}
	end := pod("", len(s.pods))
	end.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	w.Action(watch.Bookmark, end)
	s.open = w
	return w, nil
}

// A streaming list is compared with a LIST of the same moment, which is asked for until it
// succeeds. If they differ, the reflector panics.
func TestConsistency_OfReflector(t *testing.T) {
	defer consistencydetector.SetDataConsistencyDetectionForWatchListEnabledForTest(true)()
	for _, lost := range []string{"", "b"} {
		for _, impl := range []string{"ours", "client-go"} {
			t.Run("lost="+lost+"/impl="+impl, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					server := newStreamServer("a", "b")
					server.lost, server.fails = lost, 1
					replaced := false
					store := &cache.FakeCustomStore{
						ReplaceFunc: func([]any, string) error { replaced = true; return nil },
					}
					var r interface{ ListAndWatchWithContext(context.Context) error }
					r = cache.NewNamedReflector("pods", server.lw(), &v1.Pod{}, store, 0)
					if impl == "client-go" {
						r = clientgo.NewNamedReflector("pods", server.lw(), &v1.Pod{}, store, 0)
					}
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					if lost == "" {
						require.NoError(t, r.ListAndWatchWithContext(ctx))
					} else {
						require.PanicsWithValue(t,
							"data inconsistency detected for pods, panicking!",
							func() { _ = r.ListAndWatchWithContext(ctx) })
					}
					require.Equal(t, lost == "", replaced)
					require.Equal(t, []string{"stream", `list at "2" Exact`, `list at "2" Exact`},
						server.asked.take())
				})
			})
		}
	}
}

// An informer's objects are compared after its transform (kubernetes/kubernetes#135580).
func TestConsistency_OfInformer(t *testing.T) {
	defer consistencydetector.SetDataConsistencyDetectionForWatchListEnabledForTest(true)()
	defer func(crash bool, handlers []func(context.Context, any)) {
		utilruntime.ReallyCrash, utilruntime.PanicHandlers = crash, handlers
	}(utilruntime.ReallyCrash, utilruntime.PanicHandlers)
	utilruntime.ReallyCrash = false
	for _, lost := range []string{"", "b"} {
		synctest.Test(t, func(t *testing.T) {
			var panics log
			utilruntime.PanicHandlers = []func(context.Context, any){
				func(_ context.Context, r any) { panics.note("%v", r) },
			}
			server := newStreamServer("a", "b")
			server.lost = lost
			i := cache.NewSharedInformer(server.lw(), &v1.Pod{}, 0)
			require.NoError(t, i.SetTransform(func(obj any) (any, error) {
				obj.(*v1.Pod).Spec = v1.PodSpec{}
				return obj, nil
			}))
			defer run(i)()
			synctest.Wait()
			require.Equal(t, []string{"stream", `list at "2" Exact`}, server.asked.take())
			require.Equal(t, lost == "", i.HasSynced())
			require.Len(t, panics.take(), len(lost))
		})
	}
}

// A list that is no stream is not compared, and neither is a stream that was given up. Without the
// variable in the environment, nothing is.
func TestConsistency_OfStreamsOnly(t *testing.T) {
	for name, test := range map[string]struct {
		source func(s *streamServer) cache.ListerWatcher
		off    bool
		want   []string
	}{
		"no streams": {source: func(s *streamServer) cache.ListerWatcher {
			return cache.ToListWatcherWithWatchListSemantics(s.lw(), refuser{})
		}, want: []string{`list at "0"`, "watch"}},
		"given up": {source: func(s *streamServer) cache.ListerWatcher {
			lw := s.lw()
			lw.WatchFunc = func(o metav1.ListOptions) (watch.Interface, error) {
				w, err := s.watch(o)
				if o.SendInitialEvents != nil {
					w = watch.NewFake()
					w.Stop()
				}
				return w, err
			}
			return lw
		}, want: []string{"stream", `list at "0"`, "watch"}},
		"off": {source: func(s *streamServer) cache.ListerWatcher {
			s.lost = "a"
			return s.lw()
		}, off: true, want: []string{"stream"}},
	} {
		t.Run(name, func(t *testing.T) {
			defer consistencydetector.
				SetDataConsistencyDetectionForWatchListEnabledForTest(!test.off)()
			synctest.Test(t, func(t *testing.T) {
				server := newStreamServer("a")
				i := cache.NewSharedInformer(test.source(server), &v1.Pod{}, 0)
				defer run(i)()
				synctest.Wait()
				require.True(t, i.HasSynced())
				require.Equal(t, test.want, server.asked.take())
			})
		})
	}
}

// A checked stream is the watch that follows it, too, and its objects are transformed once.
func TestConsistency_StreamIsFollowed(t *testing.T) {
	defer consistencydetector.SetDataConsistencyDetectionForWatchListEnabledForTest(true)()
	synctest.Test(t, func(t *testing.T) {
		server := newStreamServer("a")
		i := cache.NewSharedInformer(server.lw(), &v1.Pod{}, 0)
		var transformed log
		require.NoError(t, i.SetTransform(func(obj any) (any, error) {
			transformed.note("%s", obj.(*v1.Pod).Name)
			return obj, nil
		}))
		stop := run(i)
		synctest.Wait()
		server.open.Add(pod("b", 5))
		synctest.Wait()
		require.Equal(t, []string{"a", "b"}, transformed.take())
		require.Len(t, i.GetStore().ListKeys(), 2)
		require.Equal(t, "5", i.LastSyncResourceVersion())
		stop()
		synctest.Wait()
		require.True(t, server.open.IsStopped())
		require.Equal(t, []string{"stream", `list at "1" Exact`}, server.asked.take())
	})
}
