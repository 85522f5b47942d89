// SPDX-License-Identifier: Apache-2.0

package hops

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"example.com/informerstack/cmd/informerstack/cli"
	"example.com/informerstack/internal/helpers/printable"
	"example.com/informerstack/observe/trace"
)

// hops is the order of the lines of a summary.
var hops = []trace.Hop{
	trace.Server, trace.Reflector, trace.Queue, trace.RealFIFO, trace.Store, trace.Handler,
	trace.Workqueue, trace.Worker,
}

// travelsLen is the number of travel times that the median is computed from.
const travelsLen = 10_000

// summary counts the events of each hop, and measures how long changes travel.
type summary struct {
	start time.Time

	mu      sync.Mutex
	closed  bool // report was called: the counts are final
	counts  map[trace.Hop]map[string]int
	errors  int
	arrived map[string]time.Time // key of a live object -> arrival of its newest change
	deleted struct {             // the handler's last deletion: its key is not in arrived
		key     string
		arrived time.Time
	}
	waiting map[string]time.Time // queued key -> arrival of the change that queued it

	travels     []time.Duration // the newest travelsLen ones, a ring
	travelCount int
	longest     time.Duration
}

func newSummary() *summary {
	return &summary{
		start:   time.Now(),
		counts:  map[trace.Hop]map[string]int{},
		arrived: map[string]time.Time{},
		waiting: map[string]time.Time{},
	}
}

// record counts and writes one event. After report it does nothing: a request that was abandoned at
// the end may still send an event.
func (s *summary) record(event trace.Event, write trace.Sink) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	write(event)
	counts := s.counts[event.Hop]
	if counts == nil {
		counts = map[string]int{}
		s.counts[event.Hop] = counts
	}
	counts[event.What]++
	if event.Error != "" {
		s.errors++
	}
	s.followLocked(event)
}

// followLocked measures the time from the arrival of a change, over the Add that queues its key, to
// the end of the reconcile. A handler that adds a deleted key does so before its next event. With a
// tombstone it is not known when the object was deleted, so nothing is measured.
func (s *summary) followLocked(event trace.Event) {
	key := event.Key
	switch {
	case (event.Hop == trace.Queue || event.Hop == trace.RealFIFO) &&
		slices.Contains([]string{"Add", "Update", "Delete"}, event.What):
		s.arrived[key] = event.Time
	case event.Hop == trace.Handler && event.What == "OnDelete":
		s.deleted.key, s.deleted.arrived = key, s.arrived[key]
		delete(s.arrived, key)
		if event.Detail == trace.Tombstone { // the object may be another replica's now
			delete(s.waiting, key)
			s.deleted.key = ""
		}
	case event.Hop == trace.Handler:
		s.deleted.key = ""
	case event.Hop == trace.Workqueue && event.What == "Add":
		arrived := s.arrived[key]
		if s.deleted.key == key && arrived.IsZero() {
			arrived = s.deleted.arrived
		}
		if _, waiting := s.waiting[key]; !arrived.IsZero() && !waiting {
			s.waiting[key] = arrived
		}
	case event.Hop == trace.Worker && event.What == "reconciled":
		if since, waiting := s.waiting[key]; waiting {
			s.addTravelLocked(event.Time.Sub(since))
			delete(s.waiting, key)
		}
	}
}

// addTravelLocked adds a travel time. It replaces the oldest if there are travelsLen.
func (s *summary) addTravelLocked(travel time.Duration) {
	if len(s.travels) < travelsLen {
		s.travels = append(s.travels, travel)
	} else {
		s.travels[s.travelCount%travelsLen] = travel
	}
	s.travelCount++
	s.longest = max(s.longest, travel)
}

// medianLocked returns the median of the newest travel times, or 0 before the first.
func (s *summary) medianLocked() time.Duration {
	if len(s.travels) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(s.travels))[len(s.travels)/2]
}

// report is the summary as JSON.
type report struct {
	Seconds     float64                      `json:"seconds"`
	Objects     int                          `json:"objects"`
	Counts      map[trace.Hop]map[string]int `json:"counts"`
	Errors      int                          `json:"errors"`
	DeadLetters int                          `json:"deadLetters"`
	// Travel is the time from the arrival of a change to the end of its successful reconcile. The
	// median is that of the newest travelsLen changes.
	TravelMedian time.Duration `json:"travelMedianNanoseconds,omitempty"`
	TravelMax    time.Duration `json:"travelMaxNanoseconds,omitempty"`
}

// report ends the counting and returns the result.
func (s *summary) report(objects, deadLetters int) report {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return report{
		Seconds:     time.Since(s.start).Seconds(),
		Objects:     objects,
		Counts:      s.counts,
		Errors:      s.errors,
		DeadLetters: deadLetters,

		TravelMedian: s.medianLocked(),
		TravelMax:    s.longest,
	}
}

// print writes the summary in the output format of the events.
func (s *summary) print(out io.Writer, asJSON bool, objects, deadLetters int) {
	r := s.report(objects, deadLetters)
	if asJSON {
		_ = json.NewEncoder(out).Encode(map[string]report{"summary": r})
		return
	}
	fmt.Fprintf(out, "\nStopped after %.1f s with %s in the store.\n", r.Seconds,
		cli.Count(r.Objects, "object"))
	for _, hop := range hops {
		printCounts(out, hop, r.Counts[hop])
	}
	if r.TravelMax > 0 {
		fmt.Fprintf(out, "From arrival to reconciled: median %v, longest %v.\n",
			r.TravelMedian.Round(time.Microsecond), r.TravelMax.Round(time.Microsecond))
	}
	fmt.Fprintf(out, "Errors on the way: %d. Dead letters: %d.\n", r.Errors, r.DeadLetters)
}

// summaryWidth is the number of columns of the counts.
const summaryWidth = 80

// printCounts writes the operations of a hop, the most frequent first.
func printCounts(out io.Writer, hop trace.Hop, counts map[string]int) {
	if len(counts) == 0 {
		return
	}
	line := fmt.Sprintf("  %-10s", hop)
	whats := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	for _, what := range whats {
		item := fmt.Sprintf(" %s %d ", printable.Text(what), counts[what])
		if len(line)+len(item) > summaryWidth {
			fmt.Fprintln(out, strings.TrimRight(line, " "))
			line = strings.Repeat(" ", len("  ")+10)
		}
		line += item
	}
	fmt.Fprintln(out, strings.TrimRight(line, " "))
}
