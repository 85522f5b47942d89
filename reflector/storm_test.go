// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// watchesThat returns a server whose LISTs work and whose watches each play f. It counts the
// requests.
type watchesThat struct {
	f              func(w *watch.RaceFreeFakeWatcher)
	lists, watches int
}

func (s *watchesThat) List(metav1.ListOptions) (runtime.Object, error) {
	s.lists++
	return podList("5", ""), nil
}

func (s *watchesThat) Watch(metav1.ListOptions) (watch.Interface, error) {
	s.watches++
	w := watch.NewRaceFreeFake()
	go func() {
		s.f(w)
		w.Stop()
	}()
	return w, nil
}

func (s *watchesThat) ListWithContext(
	_ context.Context, o metav1.ListOptions,
) (runtime.Object, error) {
	return s.List(o)
}

func (s *watchesThat) WatchWithContext(
	_ context.Context, o metav1.ListOptions,
) (watch.Interface, error) {
	return s.Watch(o)
}

func (s *watchesThat) IsWatchListSemanticsUnSupported() bool { return true }

// hour runs a reflector on s for an hour.
func (s *watchesThat) hour(t *testing.T, impl string, target Store) {
	reported = func(error, string) {}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		waits := defaultBackoff()
		waits.Jitter = 0
		if impl == "ours" {
			New(s, &v1.Pod{}, target, Options{Backoff: &waits}).Run(ctx)
			return
		}
		options := cache.ReflectorOptions{Backoff: &waits}
		cache.NewReflectorWithOptions(s, &v1.Pod{}, target, options).RunWithContext(ctx)
	})
}

// A server whose watches always fail soon is not listed more often than by client-go, whatever
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
