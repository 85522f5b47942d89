// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

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

// A watch that the server never answers, and that does not notice that it is given up, is requested
// again. client-go waits for ever.
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
