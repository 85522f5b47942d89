// SPDX-License-Identifier: Apache-2.0

package narrate

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// tests are the tests of this process that have ended.
var tests = ended{stories: map[string][]record{}}

// ended holds what the tests of each story have logged, by the story's name.
type ended struct {
	mu      sync.Mutex
	stories map[string][]record
}

type record struct {
	test  string
	lines []line
}

// add records the lines of a test. It returns a sentence that names an earlier test of the story
// with the same events, or "".
func (e *ended) add(test string, lines []line) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	story := variant.ReplaceAllString(test, "")
	earlier := e.stories[story]
	if len(earlier) > 0 && earlier[0].test == test {
		earlier = nil // the story runs again
	}
	e.stories[story] = append(earlier, record{test, lines})
	if len(lines) == 0 {
		return ""
	}
	for _, r := range earlier {
		name := strings.TrimPrefix(r.test, story+"/")
		switch {
		case slices.Equal(r.lines, lines):
			return "the same events as " + name
		case slices.EqualFunc(r.lines, lines, line.sameEvent):
			return "the same events as " + name + ", at other times"
		case len(lines) == maxLines && len(r.lines) == maxLines:
			return "the events of " + name + ", in another order"
		}
	}
	return ""
}

func (l line) sameEvent(other line) bool { return l.event == other.event && l.count == other.count }

// variant is what distinguishes the tests of one story.
var variant = regexp.MustCompile(`/(impl=[^/]*|\d+)`)
