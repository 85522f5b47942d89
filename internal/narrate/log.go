// SPDX-License-Identifier: Apache-2.0

// Package narrate makes "go test -v" show what a story is about. A Log prints the events of a test,
// in order, and Run prints the output of examples.
//
//	func TestStory_Outcome(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			log := narrate.New(t)
//			log.Event("server", "create %s", "a")
//
// prints, with the time since the test began:
//
//	0s server           create a
//	0s     handler      add a
//
// Without -v, tests print nothing and a Log does nothing.
package narrate

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// places are the pieces in the order in which a change passes them. A line is indented by the index
// of its place: the further right, the closer to the worker. Other places are not indented.
var places = []string{"server", "reflector", "queue", "store", "handler", "workqueue", "worker"}

// maxLines limits what one test prints. Tests with thousands of events show the first.
const maxLines = 40

// Log prints the events of one test. It may be nil, which prints nothing.
//
// Several tests of one story, TestX/impl=A and TestX/impl=B, are compared: where B has the events
// of A, one line reports that.
type Log struct {
	t     testing.TB
	start time.Time

	mu    sync.Mutex
	lines []string // at most maxLines
	more  int      // events after them
	first bool     // no test of this story has run before
}

// New returns the Log of a test, or nil without -v. In a synctest bubble it must be called inside.
// Transcripts have no Log, because they print their own output.
func New(t testing.TB) *Log {
	if !testing.Verbose() || strings.HasPrefix(t.Name(), "TestTranscript") {
		return nil
	}
	l := newLog(t)
	t.Cleanup(l.end)
	return l
}

func newLog(t testing.TB) *Log {
	return &Log{t: t, start: time.Now(), first: firstOfStory(t.Name())}
}

// Event prints what happened at a place.
func (l *Log) Event(place, format string, args ...any) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) == maxLines {
		l.more++
		return
	}
	indent := strings.Repeat(" ", max(0, slices.Index(places, place)))
	since := time.Since(l.start).Round(time.Millisecond)
	line := fmt.Sprintf("%8v %-16s %s", since, indent+place, fmt.Sprintf(format, args...))
	l.lines = append(l.lines, line)
	if l.first {
		fmt.Fprintln(l.t.Output(), line)
	}
}

// end prints what Event did not.
func (l *Log) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.first:
		recorded.Store(story(l.t.Name()), l.lines)
	case len(l.lines) > 0 && l.sameAsFirst():
		fmt.Fprintln(l.t.Output(), "         the same events")
		return
	case l.more > 0:
		fmt.Fprintf(l.t.Output(), "         %d events, in another order\n", maxLines+l.more)
		return
	default:
		for _, line := range l.lines {
			fmt.Fprintln(l.t.Output(), line)
		}
	}
	if l.more > 0 {
		fmt.Fprintf(l.t.Output(), "         and %d more events\n", l.more)
	}
}

func (l *Log) sameAsFirst() bool {
	first, _ := recorded.Load(story(l.t.Name()))
	lines, _ := first.([]string)
	return slices.Equal(lines, l.lines)
}

// recorded holds the lines of the first test of each story.
var recorded, firsts sync.Map

// firstOfStory reports whether the test is the first of its story, also if it runs again.
func firstOfStory(test string) bool {
	first, _ := firsts.LoadOrStore(story(test), test)
	return first == test
}

// story is the name of a test without the implementation that it runs on.
func story(test string) string {
	before, after, _ := strings.Cut(test, "/impl=")
	_, rest, _ := strings.Cut(after, "/")
	return before + "/" + rest
}
