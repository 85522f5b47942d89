// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Status follows the reflector through its phases, and keeps the last failure.
func TestStatus(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		s.streams()
		status := func() Status { synctest.Wait(); return s.ours.Status() }
		s.start()
		require.Equal(t, Status{Phase: Streaming}, status())
		s.answerWatch(apiErrors["forbidden"])
		start := time.Now()
		require.Equal(t, Status{
			Phase: Listing, LastContact: start,
			LastError: apiErrors["forbidden"], LastErrorTime: start,
			ConsecutiveFailures: 1, Failures: 1, Fallbacks: 1,
		}, status())
		s.answerList(nil, apiErrors["500"])
		require.Equal(t, BackingOff, status().Phase)
		require.Equal(t, 2, status().ConsecutiveFailures)
		require.ErrorIs(t, status().LastError, apiErrors["500"])
		s.after(time.Second)
		s.answerWatch(nil)
		require.Equal(t, Streaming, status().Phase)
		s.event(bookmark("7", "true"))
		require.Equal(t, Watching, status().Phase)
		require.Zero(t, status().ConsecutiveFailures)
		require.Equal(t, 2, status().Failures)
		require.Equal(t, "7", s.ours.LastSyncResourceVersion())
		s.after(time.Second)
		s.event(bookmark("9", ""))
		require.Equal(t, time.Now(), status().LastContact)
		require.Equal(t, "9", status().ResourceVersion)
		close(s.open.events)
		require.Equal(t, Opening, status().Phase)
		s.stop()
		require.Equal(t, Idle, status().Phase)
	})
}

// The log says, in client-go's words, each time that everything is fetched.
func TestLog_SaysWhenEverythingIsFetched(t *testing.T) {
	onBoth(t, func(t *testing.T, s *script) {
		text := s.bufferLogs(3)
		logged := func(begun, done int) {
			t.Helper()
			synctest.Wait()
			require.Equal(t, begun, strings.Count(text(), "Listing and watching"))
			require.Equal(t, done, strings.Count(text(), "Caches populated"))
		}
		s.start()
		logged(1, 0)
		s.answerList(podList("3", "", "a@1"), nil)
		logged(1, 1)
		s.answerWatch(nil)
		s.added("b@4")
		close(s.open.events)
		s.answerWatchEventually()
		logged(1, 1)
		s.event(errorEvent("expired"))
		time.Sleep(time.Minute)
		logged(2, 1)
		s.answerList(podList("9", "", "a@1"), nil)
		logged(2, 2)
	})
}

// An observer gets each decision, with its cause.
func TestObserve(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		s.streams()
		s.opts.Observe = func(x Transition) {
			s.print("%s -> %s pause=%v err=%v", x.From, x.To, x.Pause, x.Err)
		}
		s.start()
		s.answerWatch(apiErrors["invalid"])
		s.answerList(podList("5", ""), nil)
		s.answerWatch(nil)
		s.event(bookmark("6", ""))
		s.after(time.Second)
		close(s.open.events)
		s.answerWatch(apiErrors["429"])
		s.after(800 * time.Millisecond)
		s.answerWatch(nil)
		s.event(errorEvent("expired"))
		var got []string
		for _, line := range s.take() {
			if strings.Contains(line, "->") {
				got = append(got, line)
			}
		}
		require.Equal(t, []string{
			"starting -> streaming pause=false err=<nil>",
			`streaming -> listing pause=false err=ListOptions "" is invalid`,
			"listing -> opening pause=false err=<nil>",
			"opening -> watching pause=false err=<nil>",
			"watching -> opening pause=false err=<nil>",
			"opening -> opening pause=true err=slow down",
			"opening -> watching pause=false err=<nil>",
			"watching -> starting pause=true err=too old resource version",
		}, got)
	})
}

// Each metric gets its values, in its unit.
func TestMetrics(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		got := map[string][]any{}
		note := func(name string, value any) { got[name] = append(got[name], value) }
		s.opts.Metrics = Metrics{
			Lists:               func() { note("lists", 1) },
			ListDuration:        func(d time.Duration) { note("list duration", d) },
			ItemsInList:         func(n int) { note("items in list", n) },
			Watches:             func() { note("watches", 1) },
			ShortWatches:        func() { note("short watches", 1) },
			WatchDuration:       func(d time.Duration) { note("watch duration", d) },
			ItemsInWatch:        func(n int) { note("items in watch", n) },
			LastResourceVersion: func(digits float64) { note("last resource version", digits) },
		}
		s.start()
		s.after(3 * time.Second)
		s.answerList(podList("5", "", "a@1", "b@2"), nil)
		s.answerWatch(nil)
		s.event(bookmark("1e5", "")) // not a number
		s.event(bookmark("1234567890123456789", ""))
		s.after(2 * time.Second)
		close(s.open.events)
		s.answerWatch(nil)
		close(s.open.events)
		synctest.Wait()
		require.Equal(t, map[string][]any{
			"lists": {1}, "list duration": {3 * time.Second}, "items in list": {2},
			"watches": {1, 1}, "short watches": {1},
			"watch duration": {2 * time.Second, time.Duration(0)}, "items in watch": {2, 0},
			"last resource version": {5.0, 567890123456789.0},
		}, got)
	})
}

// A change and a bookmark have times of their own. Both are contact.
func TestStatus_TellsChangesFromBookmarks(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		s.start()
		start := time.Now()
		status := func() Status { synctest.Wait(); return s.ours.Status() }
		s.answerList(podList("5", "", "a@1"), nil)
		s.answerWatch(nil)
		require.Zero(t, status().LastEvent, "a list is no event")
		require.Zero(t, status().LastBookmark)

		s.after(time.Second)
		s.modified("a@6")
		require.Equal(t, start.Add(time.Second), status().LastEvent)
		require.Zero(t, status().LastBookmark)

		s.after(time.Minute)
		s.event(bookmark("9", ""))
		require.Equal(t, start.Add(time.Second), status().LastEvent)
		require.Equal(t, start.Add(time.Second+time.Minute), status().LastBookmark)
		require.Equal(t, status().LastBookmark, status().LastContact)
	})
}
