// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"slices"
	"time"

	"example.com/informerstack/observe/trace"
)

// Limits of the measurement.
const (
	latencySamples = 200    // the newest durations of each hop
	latencyKeys    = 20_000 // the keys that are on their way
)

// latency measures how long the changes stay in each hop. The zero value is ready to use.
//
//	hop        from                        to
//	deltafifo  the first change of a key   Pop
//	store      Pop                         the write to the store
//	handler    the write                   the call of the handler
//	workqueue  Add                         Get
//	worker     reconcile                   reconciled
type latency struct {
	since   map[stay]time.Time
	samples map[trace.Hop][]float64 // in milliseconds
}

// stay is a key in a hop.
type stay struct {
	hop trace.Hop
	key string
}

// observe measures the hop that an event ends, and notes the hop that it begins.
func (l *latency) observe(hop trace.Hop, what, key string, at time.Time) {
	if key == "" {
		return
	}
	switch hop {
	case trace.Queue:
		if what == "Pop" {
			l.end(trace.Queue, key, at)
			l.begin(trace.Store, key, at)
		} else {
			l.begin(trace.Queue, key, at)
		}
	case trace.Store:
		l.end(trace.Store, key, at)
		l.begin(trace.Handler, key, at)
	case trace.Handler:
		l.end(trace.Handler, key, at)
	case trace.Workqueue:
		switch what {
		case "Add":
			l.begin(trace.Workqueue, key, at)
		case "Get":
			l.end(trace.Workqueue, key, at)
		}
	case trace.Worker:
		if what == "reconcile" {
			l.begin(trace.Worker, key, at)
		} else {
			l.end(trace.Worker, key, at)
		}
	}
}

// begin notes the arrival, unless an earlier change of the key is waiting in the hop.
func (l *latency) begin(hop trace.Hop, key string, at time.Time) {
	if l.since == nil || len(l.since) >= latencyKeys {
		l.since = map[stay]time.Time{}
	}
	if _, waits := l.since[stay{hop, key}]; !waits {
		l.since[stay{hop, key}] = at
	}
}

func (l *latency) end(hop trace.Hop, key string, at time.Time) {
	since, ok := l.since[stay{hop, key}]
	if !ok {
		return
	}
	delete(l.since, stay{hop, key})
	if l.samples == nil {
		l.samples = map[trace.Hop][]float64{}
	}
	samples := append(l.samples[hop], milliseconds(at.Sub(since)))
	if len(samples) > latencySamples {
		samples = slices.Delete(samples, 0, len(samples)-latencySamples)
	}
	l.samples[hop] = samples
}

// quantiles returns the median and the 99th percentile of each hop.
func (l *latency) quantiles() map[string][2]float64 {
	hops := map[string][2]float64{}
	for hop, samples := range l.samples {
		sorted := slices.Sorted(slices.Values(samples))
		hops[string(hop)] = [2]float64{sorted[len(sorted)/2], sorted[len(sorted)*99/100]}
	}
	return hops
}

func milliseconds(d time.Duration) float64 {
	return float64(d.Round(time.Microsecond)) / float64(time.Millisecond)
}
