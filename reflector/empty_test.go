// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
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
)

// closer is a server behind a proxy that ends each watch after some time, without an event. Its
// newest version moves each second, although its only object changes rarely.
type closer struct {
	server
	lives     time.Duration // of each watch
	bookmarks bool          // each watch has one
	silent    bool          // watches stay open
	still     bool          // the version moves with the object only
	err       error         // of questions
	ignores   bool          // LISTs have no limit

	began   time.Time
	changed int // the version of the object
	others  int // objects that never change
}

// begin makes s a server, with its object at version 1.
func (s *closer) begin() {
	s.takes = 20 * time.Millisecond
	s.serve(s.list, s.watch)
	s.began, s.changed = time.Now(), 1
}

func (s *closer) newestLocked() int {
	if s.still {
		return s.changed
	}
	return 1 + int(time.Since(s.began)/time.Second)
}

func (s *closer) change() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed = max(s.changed+1, s.newestLocked())
	return s.changed
}

func (s *closer) list(_ context.Context, o metav1.ListOptions) (runtime.Object, error) {
	list := podList(strconv.Itoa(s.newestLocked()), "", "a@"+strconv.Itoa(s.changed))
	if o.Limit != 1 {
		for i := range s.others {
			list.Items = append(list.Items, *pod("b" + strconv.Itoa(i) + "@1"))
		}
		return list, nil
	}
	if s.ignores {
		list.Items = append(list.Items, *pod("b@1"))
	}
	return list, s.err
}

func (s *closer) watch(metav1.ListOptions) (func(*playedWatch), error) {
	newest := strconv.Itoa(s.newestLocked())
	return func(w *playedWatch) {
		if s.bookmarks {
			w.send(bookmark(newest, ""))
		}
		if s.silent {
			untilStopped(w)
		}
		w.lives(s.lives)
	}, nil
}

// closing runs a reflector on s while test runs.
func closing(t *testing.T, s *closer, test func(t *testing.T, r *Reflector)) {
	synctest.Test(t, func(t *testing.T) {
		s.begin()
		r := New(s, &v1.Pod{}, &mapStore{}, Options{UseWatchList: new(bool)})
		stop := background(r.Run)
		time.Sleep(10 * time.Minute)
		test(t, r)
		stop()
		time.Sleep(time.Minute) // requests that were given up return
	})
}

// counts returns how many requests of each kind there were.
func (s *closer) counts() (lists, questions, watches int) {
	s.set(func() { lists, questions, watches = s.lists, s.questions, s.watches })
	return lists, questions, watches
}

// stored returns the version of the object that the store has.
func stored(r *Reflector) int {
	version, _ := strconv.Atoi(strings.TrimPrefix(r.store.(*mapStore).state(), "a@"))
	return version
}

// A proxy that passes nothing on leaves the store old for some minutes at first, and for an hour
// and the time of five watches at most.
func TestEmptyWatches_ListIfTheServerIsAhead(t *testing.T) {
	for name, s := range map[string]*closer{
		"1.5 s":       {lives: 1500 * time.Millisecond},
		"7 s":         {lives: 7 * time.Second},
		"a minute":    {lives: time.Minute},
		"eight":       {lives: 8 * time.Minute},
		"silent":      {lives: 10 * time.Minute, silent: true},
		"one version": {lives: 1500 * time.Millisecond, still: true},
		"no limit":    {lives: time.Minute, ignores: true},
	} {
		t.Run(name, func(t *testing.T) {
			closing(t, s, func(t *testing.T, r *Reflector) {
				bound := 5*(s.lives+time.Minute) + time.Minute
				switch {
				case s.silent:
					bound = 5 * 12 * time.Minute
				case s.ignores:
					bound += time.Hour
				}
				for round := range 12 {
					began, want := time.Now(), s.change()
					for stored(r) != want {
						time.Sleep(time.Second)
						require.Less(t, time.Since(began), bound+time.Hour)
					}
					took := time.Since(began)
					lists, questions, watches := s.counts()
					t.Logf("round %d: old for %v; %d lists, %d questions, %d watches",
						round, took, lists, questions, watches)
					if round > 0 {
						require.LessOrEqual(t, took, bound, "news makes the wait a minute again")
					}
				}
			})
		})
	}
}

// A list that lacks an object is news, like one that has another.
func TestEmptyWatches_DeletesAreNews(t *testing.T) {
	s := &closer{lives: time.Minute, others: 20}
	closing(t, s, func(t *testing.T, r *Reflector) {
		for round := range 8 {
			s.set(func() { s.others-- })
			began, want := time.Now(), 1+s.others
			for len(strings.Fields(r.store.(*mapStore).state())) != want {
				time.Sleep(time.Second)
				require.Less(t, time.Since(began), 2*time.Hour)
			}
			t.Logf("round %d: old for %v", round, time.Since(began))
			if round > 0 {
				require.LessOrEqual(t, time.Since(began), 5*(s.lives+time.Minute)+time.Minute)
			}
		}
	})
}

// A server that was restored from a backup is at an older version than the store. Its watches bring
// nothing, and the store is not current: it is listed.
func TestEmptyWatches_RestoredServer(t *testing.T) {
	s := &closer{lives: time.Minute}
	closing(t, s, func(t *testing.T, r *Reflector) {
		for want := s.change(); stored(r) != want; {
			time.Sleep(time.Second)
		}
		restored := time.Now()
		s.set(func() { s.began, s.changed = restored, 1 })
		for stored(r) != 1 {
			time.Sleep(time.Second)
			require.Less(t, time.Since(restored), 8*time.Minute)
			if stored(r) != 1 {
				require.False(t, r.Status().CurrentAsOf.After(restored), time.Since(restored))
			}
		}
		t.Log("old for", time.Since(restored))
	})
}

// Behind a server without bookmarks, the newest version of an idle collection is always ahead, and
// nothing is missing. It is listed again once an hour at most.
func TestEmptyWatches_IdleCollection(t *testing.T) {
	for name, test := range map[string]struct {
		*closer
		lists, questions int // in a day
	}{
		"other collections change": {&closer{lives: time.Minute}, 31, 80},
		"and watches are long":     {&closer{lives: 8 * time.Minute}, 30, 60},
		"and watches are short":    {&closer{lives: 1500 * time.Millisecond}, 31, 40},
		"nothing changes":          {&closer{lives: time.Minute, still: true}, 1, 500},
		"bookmarks":                {&closer{lives: time.Minute, bookmarks: true}, 1, 0},
		"bookmarks, short watches": {&closer{lives: 2 * time.Second, bookmarks: true}, 1, 0},
		"questions fail":           {&closer{lives: time.Minute, err: apiErrors["500"]}, 1, 1500},
		"no limit":                 {&closer{lives: time.Minute, ignores: true}, 26, 25},
	} {
		t.Run(name, func(t *testing.T) {
			s := test.closer
			closing(t, s, func(t *testing.T, r *Reflector) {
				time.Sleep(24 * time.Hour)
				lists, questions, watches := s.counts()
				t.Logf("%d lists, %d questions, %d watches", lists, questions, watches)
				assert.LessOrEqual(t, lists, test.lists)
				assert.LessOrEqual(t, questions, test.questions)
			})
		})
	}
}

// Watches that end after 1.5 s without an event wait for each other. client-go opens 2,400 in an
// hour.
func TestEmptyWatches_BackOff(t *testing.T) {
	count := func(impl string) (watches int) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			s := &closer{lives: 1500 * time.Millisecond}
			s.begin()
			runOf(impl, s, &mapStore{}, Options{UseWatchList: new(bool)})(ctx)
			_, _, watches = s.counts()
			time.Sleep(time.Minute)
		})
		return watches
	}
	ours, theirs := count("ours"), count("client-go")
	t.Logf("ours %d, client-go %d", ours, theirs)
	require.Less(t, ours, theirs/2)
	require.Greater(t, ours, int(time.Hour/shortWatch)*3/4) // a change that waits is not late
}
