// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
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
)

// watchesThat returns a server of LISTs that work and watches that each play f. It counts the
// requests.
type watchesThat struct {
	f              func(w *watch.RaceFreeFakeWatcher)
	lists, watches int
}

func (s *watchesThat) list(context.Context, metav1.ListOptions) (runtime.Object, error) {
	s.lists++
	return podList("5", ""), nil
}

func (s *watchesThat) watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	s.watches++
	w := watch.NewRaceFreeFake()
	go func() {
		s.f(w)
		w.Stop()
	}()
	return w, nil
}

// evenly returns options with waits that are not random.
func evenly(streaming bool) Options {
	waits := defaultBackoff()
	waits.Jitter = 0
	return Options{Backoff: &waits, UseWatchList: &streaming}
}

// hour runs a reflector on s for an hour.
func (s *watchesThat) hour(t *testing.T, impl string, target Store) {
	reported = func(error, string) {}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		runOf(impl, &ListWatch{s.list, s.watch}, target, evenly(false))(ctx)
	})
}

// A server of watches that always fail soon is not listed more often than by client-go, whatever
// makes a single failure cheap: the short wait after a 410, and the resumption of a lost
// connection.
func TestStorm_ListsAreNotMoreThanClientGos(t *testing.T) {
	fails := func(name string) func(w *watch.RaceFreeFakeWatcher) {
		return func(w *watch.RaceFreeFakeWatcher) { w.Error(statusOf(apiErrors[name])) }
	}
	changesAndFails := func(name string) func(w *watch.RaceFreeFakeWatcher) {
		return func(w *watch.RaceFreeFakeWatcher) {
			w.Modify(pod("a@6"))
			fails(name)(w)
		}
	}
	for name, f := range map[string]func(w *watch.RaceFreeFakeWatcher){
		"410 at once": fails("expired"),
		"410 after a bookmark": func(w *watch.RaceFreeFakeWatcher) {
			w.Action(watch.Bookmark, pod("@6"))
			w.Error(statusOf(apiErrors["expired"]))
		},
		"410 after a change":                              changesAndFails("expired"),
		"500 after a change":                              changesAndFails("500"),
		"an event that cannot be decoded":                 fails("lost"),
		"an event that cannot be decoded, after a change": changesAndFails("lost"),
		"nothing": func(w *watch.RaceFreeFakeWatcher) {},
		"500 after half a second": func(w *watch.RaceFreeFakeWatcher) {
			time.Sleep(time.Second / 2)
			w.Error(statusOf(apiErrors["500"]))
		},
		"500 after a second": func(w *watch.RaceFreeFakeWatcher) {
			time.Sleep(time.Second)
			w.Error(statusOf(apiErrors["500"]))
		},
	} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := &watchesThat{f: f}, &watchesThat{f: f}
			ours.hour(t, "ours", &mapStore{})
			theirs.hour(t, "client-go", &mapStore{})
			t.Logf("an hour: ours %d LISTs, %d WATCHes, client-go %d, %d",
				ours.lists, ours.watches, theirs.lists, theirs.watches)
			require.LessOrEqual(t, ours.lists, theirs.lists+2)
			require.Greater(t, ours.lists, 100)
		})
	}
}

// A store that fails on a change is not filled again and again, although changes it takes arrive in
// between.
func TestStorm_FailedChanges(t *testing.T) {
	s := &watchesThat{f: func(w *watch.RaceFreeFakeWatcher) {
		w.Add(pod("good@6"))
		w.Modify(pod("bad@7"))
	}}
	s.hour(t, "ours", brokenUpdate{&mapStore{}})
	require.Less(t, s.lists, 250)
	require.Greater(t, s.lists, 100)
}

type brokenUpdate struct{ *mapStore }

func (brokenUpdate) Update(any) error { return errors.New("store failed") }

// Watches that bring nothing new and end are opened again with a wait, and nothing is listed.
func TestStorm_ShortWatches(t *testing.T) {
	for name, event := range map[string]watch.Event{
		"a bookmark":                 bookmark("6", ""),
		"a change":                   {Type: watch.Modified, Object: pod("a@6")},
		"a change without a version": {Type: watch.Modified, Object: pod("a@")},
	} {
		t.Run(name, func(t *testing.T) {
			s := &watchesThat{f: func(w *watch.RaceFreeFakeWatcher) {
				w.Action(event.Type, event.Object)
			}}
			s.hour(t, "ours", &mapStore{})
			require.Equal(t, 1, s.lists)
			require.Less(t, s.watches, 250)
		})
	}
}

// A lost connection resumes, also the second time, if a watch lived for a minute in between.
func TestLostConnection_ResumesOnce(t *testing.T) {
	for name, test := range map[string]struct {
		between func(s *script)
		want    string
	}{
		"nothing":  {func(s *script) {}, "800ms later: LIST rv=5"},
		"a change": {func(s *script) { s.added("a@6") }, "800ms later: LIST rv=6"},
		"a watch that ended soon": {func(s *script) {
			s.added("a@6")
			close(s.open.events)
			s.answerWatch(nil)
		}, "800ms later: LIST rv=6"},
		"a minute": {func(s *script) { s.after(time.Minute) }, "WATCH rv=5 bookmarks"},
		"a watch that ended": {func(s *script) {
			s.after(time.Minute)
			close(s.open.events)
			s.answerWatch(nil)
		}, "WATCH rv=5 bookmarks"},
	} {
		t.Run(name, func(t *testing.T) {
			on(t, "ours", func(t *testing.T, s *script) {
				s.watching()
				s.event(errorEvent("lost"))
				s.answerWatch(nil)
				test.between(s)
				s.event(errorEvent("lost"))
				require.Equal(t, test.want, s.lastAfter(time.Second))
			})
		})
	}
}

// sickServer answers LISTs and WATCHes with its answers in turn, without end. It counts the
// requests.
type sickServer struct {
	lists     []string // names of errors, or ""
	watches   []sickWatch
	streaming bool

	version, listCount, watchCount, streamCount int
	giveUp                                      func() // called after many requests
}

// sickWatch is an answer to a WATCH: an error, or a watch that sends an event and ends.
type sickWatch struct {
	refusal string // an error, or ""
	event   string // "", or a change or bookmark at a new, the same or a lower version
	lives   time.Duration
	end     string // the error at its end, or ""
}

func anySickServer(random *rand.Rand) *sickServer {
	one := func(of ...string) string { return of[random.IntN(len(of))] }
	s := &sickServer{lists: []string{""}, streaming: random.IntN(4) == 0}
	for range random.IntN(3) {
		s.lists = append(s.lists, one("", "", "500", "expired", "toolarge", "429", "refused"))
	}
	for range 1 + random.IntN(3) {
		w := sickWatch{
			event: one("", "", "new", "new", "same", "lower", "new bookmark", "lower bookmark"),
			lives: []time.Duration{
				0, 0, 500 * time.Millisecond, 900 * time.Millisecond, 1500 * time.Millisecond,
				5 * time.Second, 20 * time.Second, 40 * time.Second, 150 * time.Second,
			}[random.IntN(9)],
			end: one("", "", "expired", "429", "500", "lost", "toolarge"),
		}
		if random.IntN(3) == 0 {
			w = sickWatch{refusal: one("expired", "429", "refused", "500", "forbidden", "toolarge")}
		}
		s.watches = append(s.watches, w)
	}
	return s
}

func (s *sickServer) await() {
	time.Sleep(50 * time.Millisecond)
	if s.listCount+s.watchCount > 2000 {
		s.giveUp()
	}
}

func (s *sickServer) list(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	s.await()
	answer := s.lists[s.listCount%len(s.lists)]
	s.listCount++
	if ctx.Err() != nil || answer == "" {
		return podList(strconv.Itoa(s.version), ""), ctx.Err()
	}
	return nil, apiErrors[answer]
}

func (s *sickServer) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	s.await()
	answer := s.watches[s.watchCount%len(s.watches)]
	s.watchCount++
	if o.SendInitialEvents != nil {
		s.streamCount++
	}
	if answer.refusal != "" || ctx.Err() != nil {
		return nil, cmp.Or(ctx.Err(), apiErrors[answer.refusal])
	}
	events := make(chan watch.Event, 3)
	if o.SendInitialEvents != nil {
		events <- bookmark(strconv.Itoa(s.version), "true")
	}
	if strings.HasPrefix(answer.event, "new") {
		s.version++
	}
	version := strconv.Itoa(s.version)
	switch answer.event {
	case "new", "same":
		events <- watch.Event{Type: watch.Modified, Object: pod("a@" + version)}
	case "lower":
		events <- watch.Event{Type: watch.Added, Object: pod("a@3")}
	case "new bookmark":
		events <- bookmark(version, "")
	case "lower bookmark":
		events <- bookmark("3", "")
	}
	time.AfterFunc(answer.lives, func() {
		if answer.end != "" {
			events <- errorEvent(answer.end)
		}
		close(events)
	})
	return watch.NewProxyWatcher(events), nil
}

// serve runs a reflector on s for an hour.
func (s *sickServer) serve(t *testing.T, impl string) {
	reported = func(error, string) {}
	s.version = 5
	synctest.Test(t, func(t *testing.T) {
		var ctx context.Context
		ctx, s.giveUp = context.WithTimeout(t.Context(), time.Hour)
		defer s.giveUp()
		runOf(impl, &ListWatch{s.list, s.watch}, &mapStore{}, evenly(s.streaming))(ctx)
		time.Sleep(time.Hour) // the last watch ends
	})
}

// Whatever a server answers in turn, it gets hardly more LISTs and streaming lists than from
// client-go. It may get two WATCHes for each, because a lost connection is resumed once.
func TestStorm_NoSequenceOfFaultsIsWorseThanClientGos(t *testing.T) {
	for seed := range uint64(80) {
		ours := anySickServer(rand.New(rand.NewPCG(seed, 1)))
		theirs := anySickServer(rand.New(rand.NewPCG(seed, 1)))
		ours.serve(t, "ours")
		theirs.serve(t, "client-go")
		text := fmt.Sprintf("seed %d: lists %q, watches %+v, streaming %v: "+
			"ours %d LISTs, %d WATCHes, client-go %d, %d", seed,
			ours.lists, ours.watches, ours.streaming,
			ours.listCount, ours.watchCount, theirs.listCount, theirs.watchCount)
		assert.LessOrEqual(t, ours.listCount+ours.streamCount,
			(theirs.listCount+theirs.streamCount)*4/3+10, text)
		assert.LessOrEqual(t, ours.listCount+ours.watchCount,
			(theirs.listCount+theirs.watchCount)*2+20, text)
	}
}

// A consumer that loses the same change of each list, some seconds after it arrived, does not make
// the reflector list every few seconds: a watch proves nothing about it.
func TestStorm_LostSomeSecondsAfterEachList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var r *Reflector
		s := &watchesThat{f: func(w *watch.RaceFreeFakeWatcher) {
			time.Sleep(3 * time.Second)
			r.Relist(errors.New("refused"))
		}}
		r = New(&ListWatch{s.list, s.watch}, &v1.Pod{}, &mapStore{}, evenly(false))
		r.Run(ctx)
		time.Sleep(time.Minute) // the last watch ends
		require.Less(t, s.lists, 250)
	})
}

// A store that is slow to take the backlog of a watch is no pause of the server.
func TestCurrentAsOf_SlowStoreIsNoPause(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		s.watching()
		current := s.ours.Status().CurrentAsOf
		s.after(time.Minute)
		close(s.open.events)
		s.answerWatch(nil)
		s.onCall = func() { time.Sleep(150 * time.Millisecond) }
		go func(events chan<- watch.Event) {
			for range 100 {
				events <- watch.Event{Type: watch.Modified, Object: pod("a@7")}
			}
		}(s.open.events)
		time.Sleep(15 * time.Second)
		require.Equal(t, current, s.ours.Status().CurrentAsOf)
		opened := time.Now().Add(-15 * time.Second)
		time.Sleep(2*time.Second + foreignPause)
		require.WithinDuration(t, opened, s.ours.Status().CurrentAsOf, time.Second)
	})
}
