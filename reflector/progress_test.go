// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/watch"
)

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
		s.event(watch.Event{Type: watch.Modified, Object: pod("a@6")})
		require.Equal(t, start.Add(time.Second), status().LastEvent)
		require.Zero(t, status().LastBookmark)

		s.after(time.Minute)
		s.event(bookmark("9", ""))
		require.Equal(t, start.Add(time.Second), status().LastEvent)
		require.Equal(t, start.Add(time.Second+time.Minute), status().LastBookmark)
		require.Equal(t, status().LastBookmark, status().LastContact)
	})
}

// Progress is called with what Status shows already: after the list, each change and each bookmark.
func TestProgress_FollowsTheResourceVersion(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		var versions []string
		s.opts.Progress = func(resourceVersion string, _ time.Time) {
			require.Equal(t, resourceVersion, s.ours.Status().ResourceVersion)
			versions = append(versions, resourceVersion)
		}
		s.start()
		s.answerList(podList("5", "", "a@1"), nil)
		s.answerWatch(nil)
		s.event(watch.Event{Type: watch.Modified, Object: pod("a@6")})
		s.event(bookmark("9", ""))
		synctest.Wait()
		require.Equal(t, []string{"5", "6", "9"}, versions)
	})
}
