// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var errLost = errors.New("a delta was lost")

// Relist ends the watch; the error handler learns why; after a wait everything is listed. Several
// calls are one.
func TestRelist(t *testing.T) {
	for name, reach := range map[string]func(s *script){
		"watching": func(s *script) { s.watching() },
		"streamed": func(s *script) { s.streaming(); s.event(bookmark("5", "true")) },
		"opening":  func(s *script) { s.start(); s.answerList(podList("5", ""), nil) },
		"backing off": func(s *script) {
			s.opts.Backoff.Factor = 1
			s.start()
			s.answerList(podList("5", ""), nil)
			s.answerWatch(apiErrors["refused"])
			s.after(time.Second / 2)
		},
	} {
		t.Run(name, func(t *testing.T) {
			on(t, "ours", func(t *testing.T, s *script) {
				reach(s)
				s.take()
				s.ours.Relist(errLost)
				s.ours.Relist(errors.New("another"))
				s.after(time.Second)
				log := s.take()
				require.Contains(t, log, "reported: process: a delta was lost")
				want := "^800ms later: (LIST rv=5|WATCH rv=5 .*initial-events)"
				require.Regexp(t, want, log[len(log)-1])
				var applyErr *ApplyError
				require.ErrorAs(t, s.ours.Status().LastError, &applyErr)
				require.Equal(t, ApplyError{Verb: "process", Err: errLost}, *applyErr)
			})
		})
	}
}

// A call after the request for everything was sent leads to another one, whatever that request
// brings.
func TestRelist_DuringAListIsNotSatisfiedByIt(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		s.start()
		s.ours.Relist(errLost)
		s.answerList(podList("5", ""), nil)
		s.after(time.Second)
		require.Equal(t, 2, s.listCount())
		require.True(t, s.ours.Status().CurrentAsOf.IsZero())
		s.answerList(podList("6", ""), nil)
		require.False(t, s.ours.Status().CurrentAsOf.IsZero())
		s.answerWatch(nil)
		s.after(time.Minute)
		require.Equal(t, 2, s.listCount())
	})
	on(t, "ours", func(t *testing.T, s *script) {
		s.streaming()
		s.ours.Relist(errLost)
		s.added("a@1")
		s.event(bookmark("5", "true"))
		s.answerWatchEventually()
		require.True(t, s.ours.Status().CurrentAsOf.IsZero())
		s.event(bookmark("6", "true"))
		require.False(t, s.ours.Status().CurrentAsOf.IsZero())
		s.saw("replace a@1 rv=5", "watch stopped",
			"reported: process: a delta was lost",
			"800ms later: WATCH rv=5 match=NotOlderThan initial-events bookmarks",
			"replace rv=6")
	})
}

// A call before a request for everything is satisfied by that request.
func TestRelist_BeforeAListIsSatisfiedByIt(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		s.start()
		s.answerList(nil, apiErrors["500"])
		s.ours.Relist(errLost)
		s.answerListEventually(podList("5", ""), nil)
		s.answerWatch(nil)
		s.after(time.Minute)
		require.Equal(t, 2, s.listCount())
		require.False(t, s.ours.Status().CurrentAsOf.IsZero())
	})
}

// Changes that arrive between the call and the end of the watch do not make the store current
// again.
func TestRelist_EventsDoNotHideIt(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		s.watching()
		s.onCall = func() { s.ours.Relist(errLost) }
		s.added("a@6")
		require.Equal(t, "6", s.ours.LastSyncResourceVersion())
		require.True(t, s.ours.Status().CurrentAsOf.IsZero())
	})
}

// Relist may be called before Run, and from within the Store.
func TestRelist_NeverBlocks(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		r := New(s, nil, scriptStore{s}, s.opts)
		r.Relist(errLost)
		r.Relist(errLost)
		s.onCall = func() { r.Relist(errLost); r.Relist(errLost) }
		go r.Run(s.hearing)
		s.answerList(podList("5", ""), nil) // its Replace asks for another list
		s.onCall = nil
		s.after(time.Second)
		require.Equal(t, 2, s.listCount())
		s.answerList(podList("5", ""), nil)
		require.False(t, r.Status().CurrentAsOf.IsZero())
	})
}
