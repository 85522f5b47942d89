// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"testing"
)

// The list without pages replaces the pages that went round in a circle. A server that sends those
// in its place too has failed, and the error names the token.
func TestPages_InACircle(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		s.start()
		s.answerList(podList("5", "same", "a@1"), nil)
		s.answerList(podList("5", "same", "b@2"), nil)
		s.answerList(podList("6", "", "a@1", "b@2", "c@3"), nil)
		s.saw("LIST rv=0 limit=500", "LIST rv= limit=500 continue=same", "LIST rv=0",
			"replace a@1 b@2 c@3 rv=6", "WATCH rv=6 bookmarks")
	})
	on(t, "ours", func(t *testing.T, s *script) {
		s.start()
		for range 4 {
			s.answerList(podList("5", "same", "a@1"), nil)
		}
		s.saw("LIST rv=0 limit=500", "LIST rv= limit=500 continue=same",
			"LIST rv=0", "LIST rv= continue=same",
			"reported: failed to list *v1.Pod: pages of the list are incomplete: "+
				`server repeated the continue token "same"`)
	})
}

// A list without pages that a server sends in pages after all is read to its end.
func TestPages_AfterA410(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		s.start()
		s.answerList(podList("5", "1", "a@1"), nil)
		s.answerList(nil, apiErrors["expired"])
		s.answerList(podList("6", "2", "a@1"), nil)
		s.answerList(podList("6", "", "b@2"), nil)
		s.saw("LIST rv=0 limit=500", "LIST rv= limit=500 continue=1",
			"LIST rv=0", "LIST rv= continue=2",
			"replace a@1 b@2 rv=6", "WATCH rv=6 bookmarks")
	})
}
