// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/informerstack/reflector"
)

// reflectorVectors are the metrics of reflectors. Most of the names are those that Kubernetes had
// until it dropped them; there the only label was name.
type reflectorVectors struct {
	lists, watches, shortWatches              *prometheus.CounterVec
	listDuration                              *prometheus.HistogramVec
	itemsPerList, watchDuration, itemsInWatch *prometheus.SummaryVec
	resourceVersion                           *prometheus.GaugeVec
	relists                                   *prometheus.CounterVec
}

func (v *reflectorVectors) init(f *family) {
	v.lists = f.counter("reflector_lists_total", "LISTs, pages not counted")
	v.listDuration = f.histogram("reflector_list_duration_seconds",
		"How long a LIST took, all pages together",
		[]float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60})
	v.itemsPerList = f.summary("reflector_items_per_list", "Objects that a LIST returned")
	v.watches = f.counter("reflector_watches_total",
		"Watches that were opened, streaming lists included")
	v.shortWatches = f.counter("reflector_short_watches_total",
		"Watches that were over within a second, without an event")
	v.watchDuration = f.summary("reflector_watch_duration_seconds", "How long a watch stayed open")
	v.itemsInWatch = f.summary("reflector_items_per_watch", "Events that a watch brought")
	v.resourceVersion = f.gauge("reflector_last_resource_version",
		"The last 15 digits of the resourceVersion up to which everything was received")
	v.relists = f.counter("reflector_relists_total",
		"How often everything had to be fetched again, and why", "reason")
}

// metrics makes the metrics of the reflector of the informer with these label values.
func (v *reflectorVectors) metrics(values []string) reflector.Metrics {
	listDuration := v.listDuration.WithLabelValues(values...)
	itemsPerList := v.itemsPerList.WithLabelValues(values...)
	watchDuration := v.watchDuration.WithLabelValues(values...)
	itemsInWatch := v.itemsInWatch.WithLabelValues(values...)
	return reflector.Metrics{
		Lists:               v.lists.WithLabelValues(values...).Inc,
		ListDuration:        func(d time.Duration) { listDuration.Observe(d.Seconds()) },
		ItemsInList:         func(n int) { itemsPerList.Observe(float64(n)) },
		Watches:             v.watches.WithLabelValues(values...).Inc,
		ShortWatches:        v.shortWatches.WithLabelValues(values...).Inc,
		WatchDuration:       func(d time.Duration) { watchDuration.Observe(d.Seconds()) },
		ItemsInWatch:        func(n int) { itemsInWatch.Observe(float64(n)) },
		LastResourceVersion: v.resourceVersion.WithLabelValues(values...).Set,
	}
}

// The reasons to fetch everything again.
const (
	reasonExpired = "expired"       // 410: the server has forgotten where the last watch ended
	reasonApply   = "apply_error"   // a change could not be transformed or stored
	reasonRefused = "watch_refused" // a watch could not be opened
	reasonWatch   = "watch_error"   // a watch ended with another error
)

// observer returns a function that counts relists: the first attempt to fetch everything after it
// was complete before. The function also calls next, unless that is nil. Only the reflector's
// goroutine calls it.
func (v *reflectorVectors) observer(
	values []string, next func(reflector.Transition),
) func(reflector.Transition) {
	relists := v.relists.MustCurryWith(prometheus.Labels{
		"name": values[0], "group": values[1], "version": values[2], "resource": values[3],
	})
	byReason := map[string]prometheus.Counter{}
	for _, reason := range []string{reasonExpired, reasonApply, reasonRefused, reasonWatch} {
		byReason[reason] = relists.WithLabelValues(reason)
	}
	complete := false
	reason := reasonWatch
	return func(t reflector.Transition) {
		switch {
		case t.To == reflector.Opening, t.To == reflector.Watching:
			complete = true
		case t.To == reflector.Starting:
			reason = reasonOf(t)
		case t.From == reflector.Starting && complete:
			byReason[reason].Inc()
			complete = false
		}
		if next != nil {
			next(t)
		}
	}
}

func reasonOf(t reflector.Transition) string {
	_, apply := errors.AsType[*reflector.ApplyError](t.Err)
	switch {
	case apply:
		return reasonApply
	case apierrors.IsResourceExpired(t.Err), apierrors.IsGone(t.Err):
		return reasonExpired
	case t.From == reflector.Opening:
		return reasonRefused
	}
	return reasonWatch
}
