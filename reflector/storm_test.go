// SPDX-License-Identifier: Apache-2.0

package reflector

import (
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

// evenly returns options with waits that are not random.
func evenly(streaming bool) Options {
	waits := defaultBackoff()
	waits.Jitter = 0
	return Options{Backoff: &waits, UseWatchList: &streaming}
}

// hour runs a reflector on s for an hour.
func (s *server) hour(t *testing.T, impl string, target Store) {
	reported = func(error, string) {}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		runOf(impl, s, target, evenly(false))(ctx)
	})
}

// A server of watches that always fail soon is not listed more often than by client-go, whatever
// makes a single failure cheap: the short wait after a 410, and the resumption of a lost
// connection.
func TestStorm_ListsAreNotMoreThanClientGos(t *testing.T) {
	fails := func(name string, before ...watch.Event) func(*playedWatch) {
		return func(w *playedWatch) {
			for _, e := range append(before, errorEvent(name)) {
				w.send(e)
			}
		}
	}
	after := func(d time.Duration, f func(*playedWatch)) func(*playedWatch) {
		return func(w *playedWatch) { w.lives(d); f(w) }
	}
	for name, f := range map[string]func(*playedWatch){
		"410 at once":                                     fails("expired"),
		"410 after a bookmark":                            fails("expired", bookmark("6", "")),
		"410 after a change":                              fails("expired", modified("a@6")),
		"500 after a change":                              fails("500", modified("a@6")),
		"an event that cannot be decoded":                 fails("lost"),
		"an event that cannot be decoded, after a change": fails("lost", modified("a@6")),
		"nothing":                 func(*playedWatch) {},
		"500 after half a second": after(time.Second/2, fails("500")),
		"500 after a second":      after(time.Second, fails("500")),
	} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := watchesThat(f), watchesThat(f)
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
	s := watchesThat(func(w *playedWatch) {
		w.send(added("good@6"))
		w.send(modified("bad@7"))
	})
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
		"a change":                   modified("a@6"),
		"a change without a version": modified("a@"),
	} {
		t.Run(name, func(t *testing.T) {
			s := watchesThat(func(w *playedWatch) { w.send(event) })
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
	server
	toLists   []string // names of errors, or ""
	toWatches []sickWatch
	streaming bool

	version, streams int
	giveUp           func() // called after many requests
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
	s := &sickServer{toLists: []string{""}, streaming: random.IntN(4) == 0}
	for range random.IntN(3) {
		s.toLists = append(s.toLists, one("", "", "500", "expired", "toolarge", "429", "refused"))
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
		s.toWatches = append(s.toWatches, w)
	}
	return s
}

// begin makes s a server. It calls giveUp after many requests.
func (s *sickServer) begin(giveUp func()) *sickServer {
	s.takes, s.giveUp = 50*time.Millisecond, giveUp
	s.serve(s.list, s.watch)
	return s
}

func (s *sickServer) list(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	s.countLocked()
	answer := s.toLists[(s.lists+s.questions-1)%len(s.toLists)]
	if ctx.Err() != nil || answer == "" {
		return podList(strconv.Itoa(s.version), ""), ctx.Err()
	}
	return nil, apiErrors[answer]
}

func (s *sickServer) countLocked() {
	if s.lists+s.questions+s.watches > 2000 {
		s.giveUp()
	}
}

func (s *sickServer) watch(o metav1.ListOptions) (func(*playedWatch), error) {
	s.countLocked()
	answer := s.toWatches[(s.watches-1)%len(s.toWatches)]
	var events []watch.Event
	if o.SendInitialEvents != nil {
		s.streams++
		events = append(events, bookmark(strconv.Itoa(s.version), "true"))
	}
	if answer.refusal != "" {
		return nil, apiErrors[answer.refusal]
	}
	if strings.HasPrefix(answer.event, "new") {
		s.version++
	}
	version := strconv.Itoa(s.version)
	switch answer.event {
	case "new", "same":
		events = append(events, modified("a@"+version))
	case "lower":
		events = append(events, added("a@3"))
	case "new bookmark":
		events = append(events, bookmark(version, ""))
	case "lower bookmark":
		events = append(events, bookmark("3", ""))
	}
	return func(w *playedWatch) {
		for _, e := range events {
			w.send(e)
		}
		if w.lives(answer.lives) && answer.end != "" {
			w.send(errorEvent(answer.end))
		}
	}, nil
}

// hour runs a reflector on s for an hour.
func (s *sickServer) hour(t *testing.T, impl string) {
	reported = func(error, string) {}
	s.version = 5
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		runOf(impl, s.begin(cancel), &mapStore{}, evenly(s.streaming))(ctx)
		time.Sleep(time.Minute) // requests that were given up return
	})
}

// Whatever a server answers in turn, it gets hardly more LISTs and streaming lists than from
// client-go. It may get two WATCHes for each, because a lost connection is resumed once.
func TestStorm_NoSequenceOfFaultsIsWorseThanClientGos(t *testing.T) {
	for seed := range uint64(80) {
		ours := anySickServer(rand.New(rand.NewPCG(seed, 1)))
		theirs := anySickServer(rand.New(rand.NewPCG(seed, 1)))
		ours.hour(t, "ours")
		theirs.hour(t, "client-go")
		text := fmt.Sprintf("seed %d: lists %q, watches %+v, streaming %v: "+
			"ours %d LISTs, %d WATCHes, client-go %d, %d", seed,
			ours.toLists, ours.toWatches, ours.streaming,
			ours.lists, ours.watches, theirs.lists, theirs.watches)
		lists := func(s *sickServer) int { return s.lists + s.questions + s.streams }
		assert.LessOrEqual(t, lists(ours), lists(theirs)*4/3+10, text)
		assert.LessOrEqual(t, ours.count(), theirs.count()*2+20, text)
	}
}

// A consumer that loses the same change of each list, some seconds after it arrived, does not make
// the reflector list every few seconds: a watch proves nothing about it.
func TestStorm_LostSomeSecondsAfterEachList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var r *Reflector
		s := watchesThat(func(w *playedWatch) {
			time.Sleep(3 * time.Second)
			r.Relist(errors.New("refused"))
		})
		r = New(s, &v1.Pod{}, &mapStore{}, evenly(false))
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
				events <- modified("a@7")
			}
		}(s.open.events)
		time.Sleep(15 * time.Second)
		require.Equal(t, current, s.ours.Status().CurrentAsOf)
		opened := time.Now().Add(-15 * time.Second)
		time.Sleep(2*time.Second + foreignPause)
		require.WithinDuration(t, opened, s.ours.Status().CurrentAsOf, time.Second)
	})
}
