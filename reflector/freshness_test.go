// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/watch"
)

// Contact is what the server sent, and nothing else.
func TestLastContact_IsWhatTheServerSent(t *testing.T) {
	type does = func(s *script)
	start := func(s *script) { s.start() }
	opening := func(s *script) { s.start(); s.answerList(podList("5", ""), nil) }
	watching := func(s *script) { s.watching() }
	streaming := func(s *script) { s.streaming() }
	page := func(token string) does {
		return func(s *script) { s.answerList(podList("5", token), nil) }
	}
	listFails := func(name string) does {
		return func(s *script) { s.answerList(nil, apiErrors[name]) }
	}
	watchFails := func(name string) does {
		return func(s *script) { s.answerWatch(apiErrors[name]) }
	}
	event := func(e watch.Event) does { return func(s *script) { s.event(e) } }
	added := watch.Event{Type: watch.Added, Object: pod("a@6")}
	ends := func(s *script) { close(s.open.events) }
	empty := func(s *script) { send(s.t, s.watches, watchAnswer{w: watch.NewEmptyWatch()}) }
	for name, test := range map[string]struct {
		reach, act does
		want       bool
	}{
		"a list":                     {start, page(""), true},
		"a page":                     {start, page("next"), true},
		"an API error to a LIST":     {start, listFails("429"), true},
		"a refused LIST":             {start, listFails("refused"), false},
		"a watch":                    {opening, func(s *script) { s.answerWatch(nil) }, true},
		"an API error to a WATCH":    {opening, watchFails("forbidden"), true},
		"a refused WATCH":            {opening, watchFails("refused"), false},
		"a watch that rest made":     {opening, empty, false},
		"a change":                   {watching, event(added), true},
		"a bookmark":                 {watching, event(bookmark("6", "")), true},
		"an ERROR event":             {watching, event(errorEvent("500")), true},
		"a lost connection":          {watching, event(errorEvent("lost")), false},
		"the end of a watch":         {watching, ends, false},
		"an initial event":           {streaming, event(added), true},
		"the end of a stream":        {streaming, ends, false},
		"a connection lost likewise": {streaming, event(errorEvent("lost")), false},
	} {
		t.Run(name, func(t *testing.T) {
			on(t, "ours", func(t *testing.T, s *script) {
				test.reach(s)
				before := s.ours.Status().LastContact
				s.after(3 * time.Second)
				now := time.Now()
				test.act(s)
				synctest.Wait()
				if got := s.ours.Status().LastContact; test.want {
					require.Equal(t, now, got)
				} else {
					require.Equal(t, before, got)
				}
			})
		})
	}
}

// freshness follows Status.CurrentAsOf: now names the present moment, and at checks which named
// moment it is.
type freshness struct {
	*script
	moments map[string]time.Time
}

func follow(s *script) *freshness { return &freshness{s, map[string]time.Time{"never": {}}} }

func (f *freshness) now(name string) { f.moments[name] = time.Now(); f.after(3 * time.Second) }

func (f *freshness) at(want string) {
	f.t.Helper()
	synctest.Wait()
	require.Equal(f.t, f.moments[want], f.ours.Status().CurrentAsOf, want)
}

// The store is as current as the request for the list, not as its answer, however many pages that
// has; then as the last change or bookmark. Nothing else moves it.
func TestCurrentAsOf_ListAndWatch(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		f := follow(s)
		s.start()
		f.now("sent")
		f.at("never")
		s.answerList(podList("5", "next"), nil)
		f.now("page")
		f.at("never")
		s.answerList(podList("5", ""), nil)
		f.at("sent")
		f.now("listed")
		s.answerWatch(nil)
		s.after(time.Second) // nothing was waiting to be sent
		f.at("sent")
		s.added("a@6")
		f.now("change")
		f.at("change")
		s.event(watch.Event{Type: watch.Modified, Object: node("n@7")})
		f.at("change")
		s.event(bookmark("8", ""))
		f.now("bookmark")
		f.at("bookmark")
		s.after(time.Minute)
		close(s.open.events)
		f.at("bookmark")
		s.answerWatch(apiErrors["429"])
		f.at("bookmark")
		s.answerWatchEventually()
		f.at("bookmark")
		s.event(errorEvent("forbidden"))
		s.after(time.Minute)
		f.at("bookmark")
		s.answerList(nil, apiErrors["toolarge"])
		f.at("bookmark")
		s.stop()
		f.at("bookmark")
	})
}

// A streaming list is as current as the end of its initial events. One of a watch that begins with
// initial events is only as current as the list before, until they are over.
func TestCurrentAsOf_InitialEvents(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		f := follow(s)
		s.streaming()
		s.added("a@6")
		f.at("never")
		s.after(time.Second)
		s.event(bookmark("9", "true"))
		f.now("end")
		f.at("end")
	})
	on(t, "ours", func(t *testing.T, s *script) {
		f := follow(s)
		s.start()
		f.now("sent")
		s.answerList(podList("", ""), nil)
		s.answerWatch(nil)
		s.after(time.Second)
		s.added("a@6")
		f.at("sent")
		s.event(bookmark("9", ""))
		f.now("bookmark")
		f.at("bookmark")
	})
}

// Once the store is known to be old it is as current as no time at all, until the next list was
// taken.
func TestCurrentAsOf_KnownToBeOld(t *testing.T) {
	for name, act := range map[string]func(s *script){
		"410 in the watch":     func(s *script) { s.event(errorEvent("expired")) },
		"old 410 in the watch": func(s *script) { s.event(errorEvent("gone")) },
		"410 to the watch": func(s *script) {
			s.after(time.Minute)
			close(s.open.events)
			s.answerWatch(apiErrors["expired"])
		},
		"a change that the store refuses": func(s *script) {
			s.fail("add", errors.New("store failed"))
			s.added("a@6")
		},
		"a change that the consumer lost": func(s *script) { s.ours.Relist(errors.New("lost")) },
	} {
		t.Run(name, func(t *testing.T) {
			on(t, "ours", func(t *testing.T, s *script) {
				f := follow(s)
				s.watching()
				s.event(bookmark("5", ""))
				f.now("watched")
				f.at("watched")
				act(s)
				f.at("never")
				f.answerListEventually(nil, apiErrors["500"])
				f.at("never")
				for s.listCount() < 3 {
					s.after(100 * time.Millisecond)
				}
				f.now("sent")
				f.answerList(podList("9", ""), nil)
				f.at("sent")
			})
		})
	}
}

// A server answers a LIST in pages at a resourceVersion with exactly that state: the store is as
// current as when it reached this version, not as the request.
func TestCurrentAsOf_PagesAtAVersionAreOld(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		f := follow(s)
		s.opts.WatchListPageSize = 2
		s.watching()
		s.event(bookmark("6", ""))
		f.now("watched")
		s.ours.Relist(errors.New("lost"))
		f.at("never")
		for s.listCount() < 2 {
			s.after(100 * time.Millisecond)
		}
		f.now("sent")
		s.answerList(podList("6", ""), nil)
		f.at("watched")
	})
}

// A watch that is opened again after an outage first sends what happened meanwhile. Those events
// are old: until a bookmark, or a pause of a second, the store does not count as current.
func TestCurrentAsOf_BacklogIsOld(t *testing.T) {
	for name, catchUp := range map[string]func(s *script){
		"bookmark": func(s *script) { s.event(bookmark("20", "")) },
		"pause": func(s *script) {
			s.after(900 * time.Millisecond) // a lost packet
			s.event(watch.Event{Type: watch.Modified, Object: pod("a@20")})
			synctest.Wait()
			require.Less(s.t, s.ours.Status().CurrentAsOf, time.Now().Add(-30*time.Second))
			s.after(time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			on(t, "ours", func(t *testing.T, s *script) {
				s.watching()
				s.after(2 * time.Second)
				s.event(watch.Event{Type: watch.Added, Object: pod("a@6")})
				before := time.Now()
				s.after(time.Second)
				require.Equal(t, before, s.ours.Status().CurrentAsOf)

				s.after(time.Minute)
				close(s.open.events)
				s.answerWatch(nil)
				for version := range 5 {
					s.after(20 * time.Millisecond)
					object := pod(fmt.Sprintf("a@%d", 7+version))
					s.event(watch.Event{Type: watch.Modified, Object: object})
				}
				synctest.Wait()
				require.WithinDuration(t, before, s.ours.Status().CurrentAsOf, time.Second)
				catchUp(s)
				synctest.Wait()
				status := s.ours.Status()
				newest := status.LastEvent
				if status.LastBookmark.After(newest) {
					newest = status.LastBookmark
				}
				require.Equal(t, newest, status.CurrentAsOf)
			})
		})
	}
}
