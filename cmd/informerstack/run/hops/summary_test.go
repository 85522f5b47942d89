// SPDX-License-Identifier: Apache-2.0

package hops

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"example.com/informerstack/observe/trace"
)

// A request may report after the stack has ended: it is neither counted nor written.
func TestSummary_IsTheLastWord(t *testing.T) {
	s := newSummary()
	written := 0
	write := func(trace.Event) { written++ }
	event := trace.Event{Hop: trace.Server, What: "LIST"}
	s.record(event, write)
	taken := s.report(0, 0)
	s.record(event, write)
	assert.Equal(t, 1, taken.Counts[trace.Server]["LIST"])
	assert.Equal(t, 1, written)
}

// The memory of a summary depends on the number of live objects and of queued keys, not on the
// number of changes.
func TestSummary_MemoryIsBounded(t *testing.T) {
	s := newSummary()
	now := time.Now()
	send := func(hop trace.Hop, what, key string) {
		now = now.Add(time.Millisecond)
		s.record(trace.Event{Hop: hop, What: what, Key: key, Time: now}, func(trace.Event) {})
	}
	for i := range 2 * travelsLen {
		key := fmt.Sprintf("default/%d", i)
		send(trace.Queue, "Add", key)
		send(trace.Handler, "OnAdd", key)
		if i%4 != 0 { // the handler's filter drops the others
			send(trace.Workqueue, "Add", key)
			send(trace.Worker, "reconciled", key)
		}
		send(trace.Queue, "Delete", key)
		send(trace.Handler, "OnDelete", key)
		if i%4 != 0 {
			send(trace.Workqueue, "Add", key)
			send(trace.Worker, "reconciled", key)
		}
	}
	assert.Empty(t, s.arrived)
	assert.Empty(t, s.waiting)
	assert.Equal(t, 3*travelsLen, s.travelCount)
	assert.Len(t, s.travels, travelsLen)
	assert.Equal(t, 3*time.Millisecond, slices.Max(s.travels), "a delete is measured too")
}

// A tombstone ends the journey of its key: the object may be another replica's until it is back.
func TestSummary_TombstoneEndsTheJourney(t *testing.T) {
	s := newSummary()
	now := time.Now()
	send := func(hop trace.Hop, what, detail string) {
		now = now.Add(time.Second)
		s.record(trace.Event{Hop: hop, What: what, Key: "default/a", Detail: detail, Time: now},
			func(trace.Event) {})
	}
	queued := func(what, on, detail string) {
		send(trace.Queue, what, "")
		send(trace.Handler, on, detail)
		send(trace.Workqueue, "Add", "")
	}
	queued("Add", "OnAdd", "")
	queued("Delete", "OnDelete", trace.Tombstone)
	now = now.Add(time.Minute)
	send(trace.Worker, "reconciled", "")
	assert.Zero(t, s.travelCount)

	queued("Add", "OnAdd", "")
	send(trace.Worker, "reconciled", "")
	assert.Equal(t, []time.Duration{3 * time.Second}, s.travels)
}

// The counts fit 80 columns, and there is a median only if something was reconciled.
func TestSummary_Lines(t *testing.T) {
	var out strings.Builder
	printCounts(&out, trace.Store, nil)
	printCounts(&out, trace.Reflector, map[string]int{"backing off": 2, "listing -> opening": 1,
		"opening -> watching": 3, "starting -> streaming": 1})
	assert.Equal(t, ""+
		"  reflector  opening -> watching 3  backing off 2  listing -> opening 1\n"+
		"             starting -> streaming 1\n", out.String())

	out.Reset()
	s := newSummary()
	s.record(trace.Event{Hop: trace.Worker, What: "failed", Error: "no"}, func(trace.Event) {})
	s.print(&out, false, 0, 0)
	assert.NotContains(t, out.String(), "median")
	assert.Contains(t, out.String(), "  worker     failed 1\nErrors on the way: 1. Dead ")
}

// The median is that of the newest travels, the maximum that of all.
func TestSummary_Travels(t *testing.T) {
	s := newSummary()
	s.addTravelLocked(time.Hour)
	for range travelsLen {
		s.addTravelLocked(time.Minute)
	}
	for range travelsLen/2 + 1 {
		s.addTravelLocked(time.Second)
	}
	assert.Equal(t, time.Second, s.medianLocked(), "of %d seconds and %d minutes", travelsLen/2+1,
		travelsLen/2-1)
	assert.Equal(t, time.Hour, s.longest)
}
