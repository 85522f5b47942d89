// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"net/http"
	goruntime "runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/internal/tools/transcript"
)

// onBoth runs f on this package and on client-go, each in a bubble of its own.
func onBoth(t *testing.T, f func(t *testing.T, s *script)) {
	for _, impl := range []string{transcript.Ours, "client-go"} {
		t.Run("impl="+impl, func(t *testing.T) { on(t, impl, f) })
	}
}

func on(t *testing.T, impl string, f func(t *testing.T, s *script)) {
	synctest.Test(t, func(t *testing.T) { f(t, newScript(t, impl)) })
}

// saw checks everything that happened since it was last called.
func (s *script) saw(want ...string) {
	s.t.Helper()
	require.Equal(s.t, strings.Join(want, "\n"), strings.Join(s.take(), "\n"))
}

func (s *script) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// watching brings a started reflector to a watch from 5, with a@1 in the store.
func (s *script) watching() {
	s.start()
	s.answerList(podList("5", "", "a@1"), nil)
	s.answerWatch(nil)
	s.take()
}

// streaming brings a reflector to an open streaming list.
func (s *script) streaming() {
	s.streams()
	s.start()
	s.answerWatch(nil)
	s.take()
}

// kubernetes/kubernetes#83520: a relist must not go back in time, and must not insist on what the
// server has forgotten.
func TestRegress83520_RelistResourceVersion(t *testing.T) {
	onBoth(t, func(t *testing.T, s *script) {
		s.watching()
		s.modified("a@8")
		s.event(errorEvent("expired"))
		s.after(time.Second)
		s.saw("update a@8", "watch stopped", "800ms later: LIST rv=8")
		s.answerList(nil, apiErrors["expired"])
		s.saw("LIST rv=")
		s.answerList(podList("20", ""), nil)
		s.answerWatch(apiErrors["broken"])
		s.after(2 * time.Second)
		s.saw(
			"replace rv=20",
			"WATCH rv=20 bookmarks",
			"reported: broken",
			"1.6s later: LIST rv=20",
		)
	})
}

// kubernetes/kubernetes#92537, #94316, #115093: "too large", in each form a server ever gave it,
// once looped for ever.
func TestRegress92537_TooLargeResourceVersion(t *testing.T) {
	for _, form := range []string{"toolarge", "toolarge-1.17", "toolarge-1.16"} {
		t.Run(form, func(t *testing.T) {
			onBoth(t, func(t *testing.T, s *script) {
				s.watching()
				s.event(errorEvent("expired"))
				s.after(800 * time.Millisecond)
				s.answerList(nil, apiErrors[form])
				s.saw("watch stopped", "800ms later: LIST rv=5", "LIST rv=")
			})
		})
	}
}

// kubernetes/kubernetes#85272: a page after the first named a resourceVersion too, which servers
// refuse.
func TestRegress85272_ContinueWithoutResourceVersion(t *testing.T) {
	onBoth(t, func(t *testing.T, s *script) {
		s.start()
		s.answerList(podList("5", "token", "a@1"), nil)
		s.saw("LIST rv=0 limit=500", "LIST rv= limit=500 continue=token")
	})
}

// kubernetes/kubernetes#86430: a relist without limit can be served from the server's cache; one
// with a limit reads etcd.
func TestRegress86430_RelistWithoutLimit(t *testing.T) {
	onBoth(t, func(t *testing.T, s *script) {
		s.watching()
		s.event(errorEvent("expired"))
		s.after(time.Second)
		s.saw("watch stopped", "800ms later: LIST rv=5")
	})
}

// kubernetes/kubernetes#100878: a watch that gets 429 is asked for again, not turned into a LIST.
func TestRegress100878_TooManyRequestsDoesNotRelist(t *testing.T) {
	onBoth(t, func(t *testing.T, s *script) {
		s.start()
		s.answerList(podList("5", ""), nil)
		s.answerWatch(apiErrors["429"])
		s.after(800 * time.Millisecond)
		s.answerWatch(apiErrors["429"])
		s.after(1600 * time.Millisecond)
		s.answerWatch(nil)
		s.saw("LIST rv=0 limit=500", "replace rv=5", "WATCH rv=5 bookmarks",
			"800ms later: WATCH rv=5 bookmarks", "1.6s later: WATCH rv=5 bookmarks")
		require.Equal(t, 1, s.listCount())
	})
}

// kubernetes/kubernetes#118132: LIST and WATCH share one backoff, so that a dead server is not
// asked twice as often.
func TestRegress118132_SharedBackoff(t *testing.T) {
	onBoth(t, func(t *testing.T, s *script) {
		s.start()
		s.answerList(nil, apiErrors["refused"])
		s.after(800 * time.Millisecond)
		s.answerList(podList("5", ""), nil)
		s.answerWatch(apiErrors["refused"])
		require.Equal(t, "1.6s later: WATCH rv=5 bookmarks", s.lastAfter(time.Minute))
	})
}

// kubernetes/kubernetes#116435: stopping did not interrupt a wait of half a minute.
func TestRegress116435_StopInterruptsBackoff(t *testing.T) {
	onBoth(t, func(t *testing.T, s *script) {
		s.opts.Backoff.Duration = 30 * time.Second
		s.start()
		s.answerList(nil, apiErrors["refused"])
		start := time.Now()
		s.stop()
		require.Zero(t, time.Since(start))
	})
}

// kubernetes/kubernetes#55242: stopping between two refused watches did not end the loop.
func TestRegress55242_StopBetweenRefusedWatches(t *testing.T) {
	onBoth(t, func(t *testing.T, s *script) {
		s.start()
		s.answerList(podList("5", ""), nil)
		for range 3 {
			s.answerWatch(apiErrors["refused"])
			s.after(time.Minute)
		}
		s.answerWatch(apiErrors["refused"])
		start := time.Now()
		s.stop()
		require.Zero(t, time.Since(start))
	})
}

// kubernetes/kubernetes#73137: stopping waited for a LIST without an answer.
func TestRegress73137_StopWhileListIsBlocked(t *testing.T) {
	onBoth(t, func(t *testing.T, s *script) {
		s.deafen()
		s.start()
		start := time.Now()
		s.stop()
		require.Zero(t, time.Since(start))
		s.saw("LIST rv=0 limit=500", "returned")
	})
}

// kubernetes/kubernetes#131266: a watch that is not stopped keeps its producer blocked.
func TestRegress131266_EveryWatchIsStopped(t *testing.T) {
	ways := map[string]func(s *script){
		"closed":      func(s *script) { close(s.open.events) },
		"error event": func(s *script) { s.event(errorEvent("500")) },
		"cancelled":   func(s *script) { s.stop() },
		"resync error": func(s *script) {
			s.fail("resync", assert.AnError)
			s.after(time.Minute)
		},
		"closed at once": func(s *script) { s.after(time.Second); close(s.open.events) },
	}
	for name, end := range ways {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, s *script) {
				s.opts.ResyncPeriod = 30 * time.Second
				s.watching()
				w := s.open
				end(s)
				synctest.Wait()
				require.Positive(t, w.stopCount.Load())
			})
			t.Run("streamed", func(t *testing.T) {
				onBoth(t, func(t *testing.T, s *script) {
					s.opts.ResyncPeriod = 30 * time.Second
					s.streaming()
					s.event(bookmark("5", "true")) // the stream becomes the watch
					w := s.open
					require.Zero(t, w.stopCount.Load())
					end(s)
					synctest.Wait()
					require.Positive(t, w.stopCount.Load())
				})
			})
		})
	}
}

// kubernetes/kubernetes#131266: likewise where the context was done before the first event could be
// read.
func TestRegress131266_CancelledBeforeTheWatchIsRead(t *testing.T) {
	onBoth(t, func(t *testing.T, s *script) {
		s.deafen() // else the request may notice the stop before it is answered
		s.start()
		s.answerList(podList("5", ""), nil)
		w := newScriptWatch(s)
		go s.stop()
		s.watches <- watchAnswer{w: w}
		synctest.Wait()
		require.Positive(t, w.stopCount.Load())
	})
}

// kubernetes/kubernetes#89652: a watch that timed out was taken for a very short one, since its
// time was measured from the answer. Some proxies answer only when the first event comes.
func TestRegress89652_WatchTimeIsMeasuredFromTheRequest(t *testing.T) {
	onBoth(t, func(t *testing.T, s *script) {
		s.start()
		s.answerList(podList("5", ""), nil)
		s.after(2 * time.Minute) // the proxy waits
		s.answerWatch(nil)
		s.take()
		close(s.open.events)
		s.saw("watch stopped", "WATCH rv=5 bookmarks")
		require.Equal(t, 1, s.listCount())
	})
}

// kubernetes/kubernetes commit d0ea06d59: a bookmark that says "false" ended the initial events.
func TestRegress_OnlyTrueEndsTheInitialEvents(t *testing.T) {
	onBoth(t, func(t *testing.T, s *script) {
		s.streaming()
		s.event(bookmark("5", "false"))
		s.saw()
		s.event(bookmark("6", "true"))
		s.saw("replace rv=6")
	})
}

// kubernetes/kubernetes#136583: initial events come in no order, so that their resourceVersions
// mean nothing.
func TestRegress136583_InitialEventsDoNotMoveTheResourceVersion(t *testing.T) {
	onBoth(t, func(t *testing.T, s *script) {
		s.start()
		s.answerList(
			podList("", ""),
			nil,
		) // a list without resourceVersion: the watch begins with initial events
		s.answerWatch(nil)
		for _, p := range []string{"a@5", "b@3", "c@9"} {
			s.added(p)
		}
		s.after(time.Second)
		close(s.open.events)
		require.Equal(t, "WATCH rv= bookmarks", s.lastAfter(0))
		s.answerWatch(nil)
		s.added("c@9")
		s.event(bookmark("10", ""))
		s.after(time.Second)
		close(s.open.events)
		require.Equal(t, "WATCH rv=10 bookmarks", s.lastAfter(0))
	})
	onBoth(t, func(t *testing.T, s *script) {
		s.streaming()
		for _, p := range []string{"a@5", "b@3", "c@9"} {
			s.added(p)
		}
		s.event(bookmark("7", "true"))
		s.saw("replace a@5 b@3 c@9 rv=7")
	})
}

// kubernetes/kubernetes#111387: an internal error is tried again at once, but not for ever.
func TestRegress111387_InternalErrorsAreRetriedForSomeTime(t *testing.T) {
	onBoth(t, func(t *testing.T, s *script) {
		s.opts.MaxInternalErrorRetryDuration = time.Minute
		s.watching()
		for range 3 {
			s.after(20 * time.Second)
			s.event(errorEvent("500"))
			s.answerWatch(nil)
		}
		require.Equal(t, 1, s.listCount())
		s.after(21 * time.Second)
		s.event(errorEvent("500"))
		s.after(time.Second)
		require.Equal(t, 2, s.listCount())
	})
}

// kubernetes/kubernetes#131799: objects must be transformed before they are buffered, not after the
// whole stream.
func TestRegress131799_TransformBeforeTheBuffer(t *testing.T) {
	onBoth(t, func(t *testing.T, s *script) {
		s.opts.Transform = func(obj any) (any, error) {
			s.print("transform")
			return obj, nil
		}
		s.streaming()
		s.added("a@1")
		s.saw("transform")
	})
}

// kubernetes/kubernetes#107133: a reflector of objects that never change looped on "too large", for
// its resourceVersion never moved. A bookmark moves it.
func TestRegress107133_BookmarkMovesTheResourceVersion(t *testing.T) {
	onBoth(t, func(t *testing.T, s *script) {
		s.watching()
		s.event(bookmark("50", ""))
		s.after(time.Second)
		close(s.open.events)
		s.saw("bookmark 50", "1s later: watch stopped", "WATCH rv=50 bookmarks")
	})
}

// kubernetes/kubernetes#77434: nothing may be left running after a stop, whatever the reflector was
// doing. (A bubble does not end while a goroutine is left in it.)
func TestRegress77434_NothingRunsAfterStop(t *testing.T) {
	moments := map[string]func(s *script){
		"listing":     func(s *script) { s.start() },
		"backing off": func(s *script) { s.start(); s.answerList(nil, apiErrors["500"]) },
		"opening":     func(s *script) { s.start(); s.answerList(podList("5", ""), nil) },
		"watching":    func(s *script) { s.watching() },
		"streaming":   func(s *script) { s.streaming() },
	}
	for name, reach := range moments {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, s *script) {
				s.opts.ResyncPeriod = time.Second
				reach(s)
				s.stop()
			})
		})
	}
}

func errorEvent(name string) watch.Event {
	return watch.Event{Type: watch.Error, Object: statusOf(apiErrors[name])}
}

// kubernetes/enhancements#3926: the deletion of an object that the server cannot decode ends every
// watch with a StoreReadError, and no client receives the delete. The relist finds it, without the
// retries that internal errors get.
func TestRegress_CorruptObjectIsGoneAfterTheRelist(t *testing.T) {
	onBoth(t, func(t *testing.T, s *script) {
		s.opts.MaxInternalErrorRetryDuration = 30 * time.Second
		s.watching()
		s.added("corrupt@6")
		s.event(watch.Event{Type: watch.Error, Object: &metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusInternalServerError,
			Reason: metav1.StatusReasonStoreReadError,
		}})
		s.after(time.Second)
		s.saw("add corrupt@6", "watch stopped", "800ms later: LIST rv=6")
		s.answerList(podList("7", "", "a@1"), nil)
		s.saw("replace a@1 rv=7", "WATCH rv=7 bookmarks")
	})
}

// kubernetes/kubernetes#113362: an object that lived on kept the array of the whole LIST in memory.
func TestRegress113362_OneObjectDoesNotKeepItsList(t *testing.T) {
	list := &v1.PodList{
		ListMeta: metav1.ListMeta{ResourceVersion: "1"},
		Items:    make([]v1.Pod, 1000),
	}
	array := weak.Make(&list.Items[0])
	lw := &ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			answer := list
			list = nil
			return answer, nil
		},
	}
	got, err := New(lw, &v1.Pod{}, nil, Options{}).fetch(t.Context(), "0", 0)
	require.NoError(t, err)
	require.Len(t, got.items, 1000)
	survivor := got.items[999]
	got = listed{}
	goruntime.GC()
	goruntime.GC()
	assert.True(t, array.Value() == nil, "the array of the list is reachable")
	goruntime.KeepAlive(survivor)
}
