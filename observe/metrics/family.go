// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// vector is a prometheus.CounterVec, GaugeVec, HistogramVec or SummaryVec.
type vector interface {
	prometheus.Collector
	DeletePartialMatch(labels prometheus.Labels) int
}

// family is the metrics of one kind of thing. The first labels of each are the same: they say which
// thing.
//
//	F1  a series of the thing with these values is exported  =>  users[values] > 0
//
// Callers acquire the values before they make series, so the release of another user does not
// delete them.
type family struct {
	labels  []string
	vectors []vector
	descs   []*prometheus.Desc // of what is computed at each scrape

	mu    sync.Mutex
	users map[string]int
}

func newFamily(labels ...string) family { return family{labels: labels, users: map[string]int{}} }

func (f *family) describe(ch chan<- *prometheus.Desc) {
	for _, v := range f.vectors {
		v.Describe(ch)
	}
	for _, d := range f.descs {
		ch <- d
	}
}

func (f *family) collect(ch chan<- prometheus.Metric) {
	for _, v := range f.vectors {
		v.Collect(ch)
	}
}

// identity joins label values. They are text, without zero bytes.
func identity(values []string) string { return strings.Join(values, "\x00") }

func (f *family) acquire(values ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.users[identity(values)]++
}

// acquireAlone fails if the values are in use.
func (f *family) acquireAlone(values ...string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.users[identity(values)] > 0 {
		return false
	}
	f.users[identity(values)] = 1
	return true
}

// release ends one use of the values. The last one ends their series. Without a use it does
// nothing.
func (f *family) release(values ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := identity(values)
	if f.users[id]--; f.users[id] > 0 {
		return
	}
	delete(f.users, id)
	labels := prometheus.Labels{}
	for i, label := range f.labels {
		labels[label] = values[i]
	}
	for _, v := range f.vectors {
		v.DeletePartialMatch(labels)
	}
}

func add[V vector](f *family, v V) V {
	f.vectors = append(f.vectors, v)
	return v
}

func (f *family) counter(name, help string, more ...string) *prometheus.CounterVec {
	opts := prometheus.CounterOpts{Name: name, Help: help}
	return add(f, prometheus.NewCounterVec(opts, f.with(more)))
}

func (f *family) gauge(name, help string, more ...string) *prometheus.GaugeVec {
	opts := prometheus.GaugeOpts{Name: name, Help: help}
	return add(f, prometheus.NewGaugeVec(opts, f.with(more)))
}

func (f *family) histogram(name, help string, buckets []float64) *prometheus.HistogramVec {
	opts := prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}
	return add(f, prometheus.NewHistogramVec(opts, f.labels))
}

// summary has a sum and a count, and no quantiles: they cost much and cannot be added up.
func (f *family) summary(name, help string) *prometheus.SummaryVec {
	opts := prometheus.SummaryOpts{Name: name, Help: help}
	return add(f, prometheus.NewSummaryVec(opts, f.labels))
}

// computed describes a metric that a source sends.
func (f *family) computed(name, help string, more ...string) *prometheus.Desc {
	d := prometheus.NewDesc(name, help, f.with(more), nil)
	f.descs = append(f.descs, d)
	return d
}

func (f *family) with(more []string) []string { return slices.Concat(f.labels, more) }

// sample sends computed metrics of one thing.
type sample struct {
	ch     chan<- prometheus.Metric
	values []string
}

func (s sample) gauge(d *prometheus.Desc, value float64, more ...string) {
	s.send(d, prometheus.GaugeValue, value, more)
}

func (s sample) counter(d *prometheus.Desc, value float64, more ...string) {
	s.send(d, prometheus.CounterValue, value, more)
}

func (s sample) send(
	d *prometheus.Desc, kind prometheus.ValueType, value float64, more []string,
) {
	s.ch <- prometheus.MustNewConstMetric(d, kind, value, slices.Concat(s.values, more)...)
}
