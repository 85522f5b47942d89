// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"example.com/informerstack/informer"
	"example.com/informerstack/observe/sizes"
	"example.com/informerstack/reflector"
)

// informerDescs is what is computed from an informer's Status at each scrape.
type informerDescs struct {
	synced, objects, objectBytes                 *prometheus.Desc
	phase, failures, consecutive, fallbacks      *prometheus.Desc
	contactAge, eventAge, bookmarkAge            *prometheus.Desc
	pending, oldestPending, handlerCalls, panics *prometheus.Desc
}

func (d *informerDescs) init(f *family) {
	d.synced = f.computed("informer_synced", "1 once the store has held a complete list")
	d.objects = f.computed("informer_objects", "Objects in the store")
	d.objectBytes = f.computed("informer_object_bytes",
		"Estimated memory of the objects in the store, if MeasureObjects was called", "field")
	d.phase = f.computed("reflector_phase",
		"1 for the phase that the reflector is in, 0 for the others", "phase")
	d.failures = f.computed("reflector_failures_total", "Lists, watches and changes that failed")
	d.consecutive = f.computed("reflector_consecutive_failures",
		"Failures since a watch was last open")
	d.fallbacks = f.computed("reflector_watch_list_fallbacks_total",
		"Streaming lists that were given up for a LIST")
	d.contactAge = f.computed("reflector_last_contact_age_seconds",
		"Time since the server last sent anything")
	d.eventAge = f.computed("reflector_last_event_age_seconds",
		"Time since the last change arrived by a watch")
	d.bookmarkAge = f.computed("reflector_last_bookmark_age_seconds",
		"Time since the last bookmark")
	d.pending = f.computed("informer_handler_pending",
		"Changes that wait for a call of a handler, or whose call has not ended", "handler")
	d.oldestPending = f.computed("informer_handler_oldest_pending_seconds",
		"How long the oldest of them has been waiting", "handler")
	d.handlerCalls = f.computed("informer_handler_calls_total",
		"Calls of a handler that have ended", "handler")
	d.panics = f.computed("informer_handler_panics_total", "Calls that ended by a panic", "handler")
}

var phases = []reflector.Phase{
	reflector.Idle, reflector.Starting, reflector.Streaming, reflector.Listing,
	reflector.Opening, reflector.Watching, reflector.BackingOff, reflector.AwaitingTurn,
}

func (d *informerDescs) send(s sample, status informer.Status, now time.Time) {
	s.gauge(d.synced, boolean(status.HasSynced))
	s.gauge(d.objects, float64(status.Objects))
	for _, phase := range phases {
		s.gauge(d.phase, boolean(status.Reflector.Phase == phase), string(phase))
	}
	s.counter(d.failures, float64(status.Reflector.Failures))
	s.gauge(d.consecutive, float64(status.Reflector.ConsecutiveFailures))
	s.counter(d.fallbacks, float64(status.Reflector.Fallbacks))
	for _, last := range []struct {
		desc *prometheus.Desc
		at   time.Time
	}{
		{d.contactAge, status.Reflector.LastContact},
		{d.eventAge, status.Reflector.LastEvent},
		{d.bookmarkAge, status.Reflector.LastBookmark},
	} {
		if !last.at.IsZero() {
			s.gauge(last.desc, now.Sub(last.at).Seconds())
		}
	}
	handlers := byName(status.Handlers)
	for _, name := range slices.Sorted(maps.Keys(handlers)) {
		h := handlers[name]
		s.gauge(d.pending, float64(h.Pending), name)
		s.gauge(d.oldestPending, h.OldestPending.Seconds(), name)
		s.counter(d.handlerCalls, float64(h.Calls), name)
		s.counter(d.panics, float64(h.Panics), name)
	}
}

// maxSizes is the number of fields that have a series of their own.
const maxSizes = 10

// sendSizes sends the largest fields, and the sum of the others as the field "other".
func (d *informerDescs) sendSizes(s sample, sizes sizes.Sizes) {
	other := sizes.Bytes
	for _, field := range sizes.Fields[:min(maxSizes, len(sizes.Fields))] {
		if utf8.ValidString(field.Path) {
			s.gauge(d.objectBytes, float64(field.Bytes), field.Path)
			other -= field.Bytes
		}
	}
	if sizes.Objects > 0 {
		s.gauge(d.objectBytes, float64(max(0, other)), "other")
	}
}

// byName joins handlers of one name, which is that of a type or a function: they make one series.
func byName(handlers []informer.HandlerStatus) map[string]informer.HandlerStatus {
	joined := make(map[string]informer.HandlerStatus, len(handlers))
	for _, h := range handlers {
		sum := joined[h.Name]
		sum.Pending += h.Pending
		sum.OldestPending = max(sum.OldestPending, h.OldestPending)
		sum.Calls += h.Calls
		sum.Panics += h.Panics
		joined[h.Name] = sum
	}
	return joined
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
