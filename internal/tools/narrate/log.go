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

// places are the pieces, in the order that a change passes them. A line is indented by the index of
// its place: the further right, the closer to the worker. Other places are not indented.
var places = []string{"server", "client candidate", "reflector", "queue deltafifo realfifo",
	"store", "informer", "handler", "workqueue", "worker"}

func depth(place string) int {
	return max(0, slices.IndexFunc(places, func(names string) bool {
		return slices.Contains(strings.Fields(names), place)
	}))
}

// maxLines limits what one test prints. Tests with thousands of events show the first.
const maxLines = 40

// Log prints the events of one test. It may be nil, which prints nothing.
//
// The tests of one story on several implementations, TestX/impl=A and TestX/impl=B, are compared,
// and those that repeat it, TestX/0 and TestX/1: if B has the events of A, one line reports that.
type Log struct {
	t     testing.TB
	start time.Time

	mu      sync.Mutex
	lines   []line // at most maxLines
	dropped int    // events after them
	ended   bool
}

// line is an event that occurred one or more times in a row.
type line struct {
	event       string // the indented place and the text
	begin, last time.Duration
	count       int
}

func (l line) String() string {
	s := fmt.Sprintf("%8v %s", l.begin, l.event)
	switch {
	case l.count == 1:
		return s
	case l.begin == l.last:
		return fmt.Sprintf("%s  (%d times)", s, l.count)
	}
	return fmt.Sprintf("%s  (%d times, until %v)", s, l.count, l.last)
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
	return &Log{t: t, start: time.Now()}
}

// Event records what happened at a place. It is printed at the end of the test.
func (l *Log) Event(place, format string, args ...any) {
	if l == nil {
		return
	}
	indented := strings.Repeat(" ", depth(place)) + place
	event := fmt.Sprintf("%-16s %s", indented, fmt.Sprintf(format, args...))
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	now := time.Since(l.start).Round(time.Millisecond)
	if n := len(l.lines); n > 0 && l.lines[n-1].event == event && l.dropped == 0 {
		l.lines[n-1].count++
		l.lines[n-1].last = now
	} else if n < maxLines {
		l.lines = append(l.lines, line{event, now, now, 1})
	} else {
		l.dropped++
	}
}

// End ends the story: later events, such as those of the cleanup, are not recorded.
func (l *Log) End() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
}

// end prints the events, or the name of a test of the same story that had them.
func (l *Log) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if same := tests.add(l.t.Name(), l.lines); same != "" && !l.t.Failed() {
		fmt.Fprintf(l.t.Output(), "%9s%s\n", "", same)
		return
	}
	for _, line := range l.lines {
		fmt.Fprintln(l.t.Output(), line)
	}
	if l.dropped > 0 {
		fmt.Fprintf(l.t.Output(), "%9sand %d more events\n", "", l.dropped)
	}
}
