// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// differ runs f on this package and on client-go, and checks what each came to.
func differ[T any](t *testing.T, f func(t *testing.T, s *script) T, ours, clientGo T) {
	t.Helper()
	for impl, want := range map[string]T{"ours": ours, "client-go": clientGo} {
		t.Run("impl="+impl, func(t *testing.T) {
			on(t, impl, func(t *testing.T, s *script) { require.Equal(t, want, f(t, s)) })
		})
	}
}

// A change that the store does not take is lost in client-go, since the resourceVersion moves past
// it.
func TestDifference_FailedChangeIsNotLost(t *testing.T) {
	differ(t, func(t *testing.T, s *script) string {
		s.watching()
		s.fail("update", errors.New("store failed"))
		s.modified("a@6")
		s.after(time.Second)
		if s.listCount() == 1 {
			close(s.open.events)
		}
		return s.lastAfter(0)
	},
		"800ms later: LIST rv=5",
		"WATCH rv=6 bookmarks",
	)
}

// An object that arrives in a streaming list is transformed twice in client-go: in the buffer and
// in the queue.
func TestDifference_TransformOnce(t *testing.T) {
	differ(t, func(t *testing.T, s *script) int {
		count := 0
		s.opts.Transform = func(obj any) (any, error) {
			count++
			return obj, nil
		}
		s.streaming()
		s.added("a@1")
		s.event(bookmark("5", "true"))
		return count
	}, 1, 2)
}

// client-go does not notice that it is stopped while it backs off from a busy server before a
// streaming list.
func TestDifference_StreamingBackoffIsCancelled(t *testing.T) {
	differ(t, func(t *testing.T, s *script) time.Duration {
		s.streams()
		s.start()
		s.answerWatch(apiErrors["429"])
		start := time.Now()
		s.stop()
		return time.Since(start)
	}, 0, 800*time.Millisecond)
}

// client-go opens a streaming list again as fast as the server can close it.
func TestDifference_ClosedStreamBacksOff(t *testing.T) {
	differ(t, func(t *testing.T, s *script) time.Duration {
		s.streaming()
		s.added("a@1")
		start := time.Now()
		close(s.open.events)
		s.answerWatchEventually()
		return time.Since(start)
	}, 800*time.Millisecond, 0)
}

// client-go leaves the stream open when the store does not take the list.
func TestDifference_RefusedListClosesTheStream(t *testing.T) {
	differ(t, func(t *testing.T, s *script) bool {
		s.streaming()
		s.fail("replace", errors.New("store failed"))
		s.event(bookmark("5", "true"))
		return s.opened[0].stopCount.Load() > 0
	}, true, false)
}

// A server that refuses streaming lists is asked once; client-go asks it at every relist.
func TestDifference_RefusalIsRemembered(t *testing.T) {
	differ(t, func(t *testing.T, s *script) string {
		s.streams()
		s.start()
		s.answerWatch(apiErrors["invalid"])
		s.answerList(podList("5", ""), nil)
		s.answerWatch(nil)
		s.take()
		s.event(errorEvent("expired"))
		return s.lastAfter(time.Second)
	},
		"800ms later: LIST rv=5",
		"800ms later: WATCH rv=5 match=NotOlderThan initial-events bookmarks",
	)
}

// Two streams that end before they are complete are as good as a refusal. client-go streams for
// ever and never lists.
func TestDifference_UnfinishedStreamsAreRemembered(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		s.streaming()
		s.added("a@1")
		close(s.open.events)
		s.answerWatchEventually()
		s.added("a@1")
		close(s.open.events)
		s.answerList(podList("5", ""), nil)
		s.answerWatch(nil)
		s.event(errorEvent("expired"))
		s.after(time.Minute)
		log := s.take()
		require.Contains(t, log[len(log)-1], "LIST rv=5")
		require.Equal(t, 1, s.ours.Status().Fallbacks)
	})
}

// A streaming list without an end blocks client-go until the server closes it, and then
// again.
func TestDifference_MissingEndBookmarkFallsBack(t *testing.T) {
	differ(t, func(t *testing.T, s *script) int {
		s.streaming()
		s.added("a@1")
		s.after(2 * time.Minute)
		return s.listCount()
	}, 1, 0)
}

// A watch on a dead connection is given up half a minute after its timeout. client-go waits for
// ever.
func TestDifference_SilentWatchIsAbandoned(t *testing.T) {
	differ(t, func(t *testing.T, s *script) bool {
		s.watching()
		s.after(11 * time.Minute)
		return s.open.stopCount.Load() > 0
	}, true, false)
}

// The same where the server never answers the request, and the request does not notice that it is
// given up.
func TestDifference_UnansweredWatchIsAbandoned(t *testing.T) {
	differ(t, func(t *testing.T, s *script) int {
		s.start()
		s.answerList(podList("5", ""), nil)
		s.deafen()
		s.take()
		s.after(11 * time.Minute)
		requests := len(s.take())
		s.hear()
		return requests
	}, 1, 0)
}

// A server that forgot the past while it was away is there: the LIST that must follow does not wait
// for long.
func TestDifference_ExpiredAfterAnOutageListsSoon(t *testing.T) {
	differ(t, func(t *testing.T, s *script) string {
		s.start()
		s.answerList(podList("5", ""), nil)
		for range 3 {
			s.answerWatchErrorEventually("refused")
		}
		s.answerWatchErrorEventually("expired")
		return s.lastAfter(time.Minute)
	},
		"800ms later: LIST rv=5",
		"6.4s later: LIST rv=5",
	)
}

// The connection of a watch is lost: ours resumes it. client-go lists, since the client makes an
// InternalError of it.
func TestDifference_LostConnectionResumes(t *testing.T) {
	differ(t, func(t *testing.T, s *script) string {
		s.watching()
		s.event(errorEvent("lost"))
		return s.lastAfter(time.Second)
	},
		"WATCH rv=5 bookmarks",
		"800ms later: LIST rv=5",
	)
}

// A watch that ends within a second, and brings nothing new, is opened again after a wait.
// client-go does not wait.
func TestDifference_ShortWatchesWait(t *testing.T) {
	differ(t, func(t *testing.T, s *script) time.Duration {
		s.watching()
		start := time.Now()
		for range 5 {
			s.event(bookmark("5", ""))
			close(s.open.events)
			s.answerWatchEventually()
		}
		require.Equal(t, 1, s.listCount())
		return time.Since(start)
	}, (1+2+4+8+16)*800*time.Millisecond, 0)
}

// A streaming list that is not answered, as by a proxy that withholds the headers, is given up like
// one that brings nothing. client-go waits until the server ends it.
func TestDifference_UnansweredStreamFallsBack(t *testing.T) {
	differ(t, func(t *testing.T, s *script) string {
		s.streams()
		s.start()
		return s.lastAfter(2 * time.Minute)
	},
		"1m0s later: LIST rv=0 limit=500",
		"WATCH rv= match=NotOlderThan initial-events bookmarks",
	)
}

// A server that sends the same pages again and again is asked for a list without pages. client-go
// collects pages until its memory is full.
func TestDifference_RepeatedContinueToken(t *testing.T) {
	differ(t, func(t *testing.T, s *script) string {
		s.start()
		for _, token := range []string{"1", "2", "3", "2"} { // 1, then 2 and 3 for ever
			s.answerList(podList("5", token, "a@"+token), nil)
		}
		return s.lastAfter(0)
	},
		"LIST rv=0",
		"LIST rv= limit=500 continue=2",
	)
}

// A WATCH that fails because of the stop is no failure. client-go reports it to the error handler.
func TestDifference_StopIsNoFailure(t *testing.T) {
	differ(t, func(t *testing.T, s *script) int {
		reports := 0
		s.start()
		s.answerList(podList("5", ""), nil)
		reported = func(error, string) { reports++ }
		s.stop()
		return reports
	}, 0, 1)
}

// Whether a server pages a LIST at "0" is learned from a LIST at "0" alone. client-go learns it
// also from the LIST for the newest state that follows if the one at "0" has expired or is too
// large.
func TestDifference_ExpiredListAtZeroTeachesNothing(t *testing.T) {
	for _, name := range []string{"expired", "toolarge"} {
		differ(t, func(t *testing.T, s *script) string {
			s.start()
			s.answerList(nil, apiErrors[name])
			s.answerList(podList("5", "next", "a@1"), nil)
			s.answerList(podList("5", "", "b@2"), nil)
			s.answerWatch(nil)
			s.event(errorEvent("expired"))
			return s.lastAfter(time.Second)
		},
			"800ms later: LIST rv=5",
			"800ms later: LIST rv=5 limit=500",
		)
	}
}

// A LIST for the newest state that the server cannot serve either is not repeated at once.
func TestDifference_ListForTheNewestWaits(t *testing.T) {
	for _, name := range []string{"expired", "toolarge"} {
		differ(t, func(t *testing.T, s *script) string {
			s.start()
			s.answerList(nil, apiErrors[name])
			s.answerList(nil, apiErrors[name])
			s.after(800 * time.Millisecond)
			s.answerList(nil, apiErrors[name])
			return s.lastAfter(2 * time.Second)
		},
			"1.6s later: LIST rv= limit=500",
			"LIST rv= limit=500",
		)
	}
}

// A LIST of another type than was asked for fails. client-go stores it, and handlers meet it.
func TestDifference_ListOfAnotherTypeFails(t *testing.T) {
	differ(t, func(t *testing.T, s *script) string {
		s.start()
		s.take()
		s.answerList(nodeList("5", "n@1"), nil)
		return s.take()[0]
	},
		"reported: failed to list *v1.Pod: expected a list of *v1.Pod, got one of *v1.Node",
		"replace n@1 rv=5",
	)
}

// client-go panics when a ListerWatcher returns neither a watch nor an error.
func TestDifference_NilWatchIsAnError(t *testing.T) {
	differ(t, func(t *testing.T, s *script) string {
		s.start()
		s.answerList(podList("5", ""), nil)
		s.take()
		send(t, s.watches, watchAnswer{})
		return s.take()[0]
	},
		"reported: failed to watch *v1.Pod: ListerWatcher returned no watch: result is nil",
		"panic: runtime error: invalid memory address or nil pointer dereference",
	)
}

// An object of another type in a streaming list: client-go skips it, so a collection of another
// type is an empty one. Ours asks with a LIST, which has the type of the collection.
func TestDifference_ForeignEventInAStream(t *testing.T) {
	differ(t, func(t *testing.T, s *script) string {
		s.streaming()
		s.take()
		s.event(watch.Event{Type: watch.Added, Object: &v1.Node{}})
		if s.listCount() == 0 {
			s.added("a@1")
			s.event(bookmark("5", "true"))
		}
		return strings.Join(s.take(), "; ")
	},
		"reported: expected *v1.Pod, got *v1.Node; watch stopped; LIST rv=0 limit=500",
		"reported: Unexpected watch event object type; replace a@1 rv=5",
	)
}
