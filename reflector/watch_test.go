// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/store"
)

// A watch that always has another event does not delay a resync for ever.
func TestResync_AmongManyEvents(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		s.opts.ResyncPeriod = time.Second
		const count = 4000
		s.start()
		s.answerList(podList("5", ""), nil)
		w := newScriptWatch(s)
		w.events = make(chan watch.Event, count)
		for range count {
			w.events <- watch.Event{Type: "ODD", Object: pod("a@6")}
		}
		report := reported
		reported = func(err error, msg string) { time.Sleep(time.Millisecond); report(err, msg) }
		s.watches <- watchAnswer{w: w}
		s.after(count * time.Millisecond)
		log := strings.Join(s.take(), "\n")
		require.GreaterOrEqual(t, strings.Count(log, "resync"), 2)
	})
}

// A stop does not wait for the store to take all events that have arrived.
func TestStop_AmongManyEvents(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		s.start()
		s.answerList(podList("5", ""), nil)
		w := newScriptWatch(s)
		const count = 64
		w.events = make(chan watch.Event, count)
		for range count {
			w.events <- added("a@6")
		}
		s.onCall = s.cancel
		send(t, s.watches, watchAnswer{w: w})
		// A select takes either the stop or the next event.
		require.Less(t, strings.Count(strings.Join(s.take(), "\n"), "add a"), count/2)
	})
}

// A ResourceVersionUpdater gets each resourceVersion after the change itself.
func TestResourceVersionUpdater(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		go New(s, &v1.Pod{}, updatedStore{scriptStore{s}}, s.opts).Run(s.hearing)
		s.answerList(podList("5", ""), nil)
		s.answerWatch(nil)
		s.added("a@6")
		s.event(bookmark("9", ""))
		s.saw("LIST rv=0 limit=500", "replace rv=5", "WATCH rv=5 bookmarks",
			"add a@6", "at 6", "bookmark 9", "at 9")
	})
}

type updatedStore struct{ scriptStore }

func (s updatedStore) UpdateResourceVersion(resourceVersion string) {
	s.print("at %s", resourceVersion)
}

// Resyncs continue while a watch cannot be opened, and stop while everything must be fetched again.
// (client-go's resyncs run in a goroutine of their own from the end of a list to the end of the
// watches that follow.)
func TestResync_WhileItBacksOff(t *testing.T) {
	resyncs := func(s *script) int { return strings.Count(strings.Join(s.take(), "\n"), "resync") }
	for name, start := range map[string]func(s *script){
		"after a LIST":           func(s *script) { s.watching() },
		"after a streaming list": func(s *script) { s.streaming(); s.event(bookmark("5", "true")) },
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, s *script) {
				s.opts.ResyncPeriod = 5 * time.Second
				s.opts.Backoff = &wait.Backoff{Duration: 30 * time.Second}
				start(s)
				s.after(time.Minute + time.Second/2)
				require.Equal(t, 12, resyncs(s))
				close(s.open.events)
				for range 10 {
					s.answerWatchErrorEventually("refused")
				}
				s.after(30*time.Second - 1)
				require.Equal(t, 60, resyncs(s))
				s.answerWatchEventually()
				s.event(errorEvent("expired"))
				s.take()
				s.after(time.Minute)
				require.Zero(t, resyncs(s))
			})
		})
	}
}

// A resync that fails during a wait ends the round, like any other.
func TestResync_FailsWhileItBacksOff(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		s.opts.ResyncPeriod = 5 * time.Second
		s.opts.Backoff.Duration = 10 * time.Second
		s.start()
		s.answerList(podList("5", ""), nil)
		s.answerWatch(apiErrors["refused"])
		s.take()
		s.fail("resync", apiErrors["429"])
		s.after(time.Minute)
		s.saw("5s later: resync: slow down", "reported: resync: slow down", "20s later: LIST rv=5")
	})
}

// ShouldResync is asked each time, and its no postpones the resync by a period.
func TestShouldResync(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		asked := 0
		s.opts.ResyncPeriod = time.Minute
		s.opts.ShouldResync = func() bool { asked++; return asked%2 == 0 }
		s.watching()
		s.after(4 * time.Minute)
		s.saw("2m0s later: resync", "2m0s later: resync")
		require.Equal(t, 4, asked)
	})
}

// After a stop that a request ignored, a watch that still arrives is stopped.
func TestLateWatchIsStopped(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		late := make(chan watch.Interface)
		lw := &ListWatch{
			ListWithContextFunc: listing(podList("5", "")),
			WatchFuncWithContext: func(
				context.Context, metav1.ListOptions,
			) (watch.Interface, error) {
				return <-late, nil
			},
		}
		stop := background(New(lw, &v1.Pod{}, scriptStore{s}, s.opts).Run)
		synctest.Wait()
		stop()
		w := newScriptWatch(s)
		late <- w
		synctest.Wait()
		require.Equal(t, int64(1), w.stopCount.Load())
	})
}

// A LIST that an earlier Run gave up does not transform at the same time as the next one, and then
// no more.
func TestTransform_OneAtATime(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		transforming, calls := 0, 0
		proceed := make(chan struct{})
		s.opts.Transform = func(obj any) (any, error) {
			calls++
			transforming++
			defer func() { transforming-- }()
			require.Equal(t, 1, transforming)
			if calls == 1 {
				<-proceed
			}
			return obj, nil
		}
		s.start()
		s.answerList(podList("5", "", "a@1", "b@2"), nil) // stays in the transform of a
		s.stop()
		go s.ours.Run(s.hearing)
		s.answerList(podList("6", "", "a@1", "b@2"), nil)
		require.Equal(t, 1, calls)
		close(proceed)
		synctest.Wait()
		require.Equal(t, 3, calls, "b of the first LIST is not transformed any more")
		require.Equal(t, "6", s.ours.LastSyncResourceVersion())
	})
}

// A stream that could not reach the server is no sign of anything: the next round streams again.
func TestStreaming_UnreachableServerIsForgotten(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		s.streams()
		s.start()
		for range 3 {
			s.after(10 * time.Second) // rest tries for some time
			send(t, s.watches, watchAnswer{w: watch.NewEmptyWatch()})
			s.answerList(nil, apiErrors["broken"])
			s.after(5 * time.Second)
		}
		log := s.take()
		require.Regexp(t, "WATCH .*initial-events", log[len(log)-1])
	})
}

// A stream that ended early once is forgotten after one that became complete.
func TestStreaming_OneEarlyEndIsForgotten(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		s.streaming()
		for range 3 {
			s.added("a@1")
			close(s.open.events)
			s.answerWatchEventually()
			s.event(bookmark("5", "true"))
			s.event(errorEvent("expired"))
			s.answerWatchEventually()
		}
		require.Zero(t, s.listCount())
	})
}

// S1 and S2 hold after any events, and the list is what a map of the events would hold.
func TestSnapshot_LawsUnderRandomEvents(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	s := newSnapshot(time.Time{})
	want := map[string]string{}
	for i := range 2000 {
		p := pod(fmt.Sprintf("%c@%d", 'a'+random.IntN(10), i))
		e := event{Event: watch.Event{Type: watch.Added, Object: p}, meta: p, obj: p}
		switch random.IntN(3) {
		case 0:
			e.Type = watch.Deleted
		case 1:
			e.Type = watch.Modified
		}
		_, err := s.handle(&Reflector{}, e)
		require.NoError(t, err)
		if want[p.Name] = p.ResourceVersion; e.Type == watch.Deleted {
			delete(want, p.Name)
		}

		live := 0
		for i, obj := range s.items {
			if obj != nil {
				live++
				require.Equal(t, i, s.index[store.ObjectName{Name: obj.(*v1.Pod).Name}], "S1")
			}
		}
		require.Equal(t, len(s.index), live, "S2")
	}
	got := map[string]string{}
	for _, obj := range s.list() {
		got[obj.(*v1.Pod).Name] = obj.(*v1.Pod).ResourceVersion
	}
	require.Equal(t, want, got)
}

// A server that does not end its watches is left alone as long as it sends something.
func TestWatchdog_EventsKeepAWatchAlive(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		s.watching()
		for range 100 {
			s.after(25 * time.Second)
			s.event(bookmark("6", ""))
		}
		require.Zero(t, s.open.stopCount.Load())
		s.after(29 * time.Second)
		require.Zero(t, s.open.stopCount.Load())
		s.after(2 * time.Second)
		require.Positive(t, s.open.stopCount.Load())
	})
}

func TestWatchdog_Off(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		s.opts.WatchdogSlack = -1
		s.opts.WatchListDeadline = -1
		s.watching()
		s.after(24 * time.Hour)
		require.Zero(t, s.open.stopCount.Load())
		s.stop()
		s.streaming()
		s.after(24 * time.Hour)
		require.Zero(t, s.open.stopCount.Load())
		s.stop()
		s.start()
		s.take()
		s.after(24 * time.Hour)
		s.saw()
	})
}

// A stream that brings nothing new for WatchListDeadline is given up then, and not later.
func TestStreaming_DeadlineIsExact(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		s.opts.WatchListDeadline = 15 * time.Second
		s.streaming()
		s.after(8 * time.Second)
		s.added("a@1")
		s.after(14 * time.Second)
		s.modified("a@2") // after a pause
		s.after(time.Second - 1)
		require.Zero(t, s.open.stopCount.Load())
		s.after(1)
		require.Positive(t, s.open.stopCount.Load())
	})
}

// Events about known objects, however often they arrive, do not keep a stream open: a server that
// ignores the request for initial events sends those without end.
func TestStreaming_EventsOfKnownObjectsAreNoProgress(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		s.streaming()
		s.added("a@1")
		for range 20 * 60 {
			require.Zero(t, s.open.stopCount.Load())
			s.modified("a@2")
			s.after(50 * time.Millisecond)
		}
		require.Positive(t, s.open.stopCount.Load())
	})
}

// A stream is stopped also where the round ends between its last initial event and its first
// change.
func TestStreaming_StoppedWhateverHappens(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		s.streaming()
		s.onCall = s.cancel // as it stores the list
		s.event(bookmark("5", "true"))
		require.Positive(t, s.open.stopCount.Load())
	})
	on(t, "ours", func(t *testing.T, s *script) {
		s.opts.Transform = func(any) (any, error) { panic("transform") }
		s.streaming()
		s.added("a@1")
		s.saw("watch stopped", "panic: transform")
	})
}

// A stream without the end of its initial events is logged every ten seconds while it brings
// nothing new.
func TestStreaming_WarnsWhileItWaits(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		logged := s.bufferLogs(0)
		warnings := func() int { return strings.Count(logged(), "waiting for the bookmark") }
		s.streaming()
		for _, step := range []struct {
			after time.Duration
			want  int
		}{{9 * time.Second, 0}, {2 * time.Second, 1}, {8 * time.Second, 1}, {2 * time.Second, 2}} {
			s.after(step.after)
			require.Equal(t, step.want, warnings())
		}
		s.added("a@1")
		s.after(9 * time.Second)
		require.Equal(t, 2, warnings(), "something came")
		s.after(11 * time.Second)
		require.Equal(t, 3, warnings())
		s.event(bookmark("5", "true"))
		s.after(time.Minute)
		require.Equal(t, 3, warnings(), "all of it came")
	})
}
