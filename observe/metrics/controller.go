// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"fmt"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"example.com/informerstack/controller"
)

// controllerFamily is controller-runtime's metrics, what is given up, and how long changes travel.
type controllerFamily struct {
	family
	total, errors, terminal, panics, timeouts *prometheus.CounterVec
	took, travel                              *prometheus.HistogramVec
	workers, active                           *prometheus.GaugeVec
	deadLettersTotal                          *prometheus.CounterVec

	deadLetters, evicted, failing, keyErrors *prometheus.Desc
}

var (
	reconcileBuckets = []float64{
		0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8,
		0.9, 1, 1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30,
		40, 50, 60,
	}
	travelBuckets = []float64{
		0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800,
	}
)

func newControllerFamily() *controllerFamily {
	f := &controllerFamily{family: newFamily("controller")}
	f.total = f.counter("controller_runtime_reconcile_total", "Reconciles, by result", "result")
	f.errors = f.counter("controller_runtime_reconcile_errors_total",
		"Reconciles that returned an error")
	f.terminal = f.counter("controller_runtime_terminal_reconcile_errors_total",
		"Reconciles that returned an error which a retry cannot cure")
	f.panics = f.counter("controller_runtime_reconcile_panics_total", "Reconciles that panicked")
	f.timeouts = f.counter("controller_runtime_reconcile_timeouts_total",
		"Reconciles that took longer than their timeout")
	f.took = f.histogram("controller_runtime_reconcile_time_seconds", "How long a reconcile took",
		reconcileBuckets)
	f.workers = f.gauge("controller_runtime_max_concurrent_reconciles",
		"Reconciles that may run at the same time")
	f.active = f.gauge("controller_runtime_active_workers", "Reconciles that run")
	f.travel = f.histogram("controller_event_to_reconcile_seconds",
		"Time from the arrival of a change to the end of the reconcile that succeeded after it",
		travelBuckets)
	f.deadLettersTotal = f.counter("controller_dead_letters_total",
		"Keys that were given up, by reason", "reason")
	f.deadLetters = f.computed("controller_dead_letters", "Keys that are given up at present")
	f.evicted = f.computed("controller_dead_letters_evicted_total",
		"Dead letters dropped for newer ones")
	f.failing = f.computed("controller_failing_keys",
		"Keys that failed and will be retried")
	f.keyErrors = f.computed("controller_key_errors_total",
		"Notifications without a key, because the key function failed")
	return f
}

// Controller is the metrics of one controller. Its series end when the controller that it follows
// has stopped, or with Release.
type Controller struct {
	metrics *Metrics
	family  *controllerFamily
	name    string
	giveUp  func()

	mu      sync.Mutex
	subject interface{ Status() controller.Status } // nil: not followed

	results          map[controller.Outcome]prometheus.Counter
	deadLettersTotal map[controller.Reason]prometheus.Counter
	errors, terminal, panics,
	timeouts prometheus.Counter
	took, travel    prometheus.Observer
	workers, active prometheus.Gauge
}

// Controller makes the metrics of the controller called name. The counters start at 0, so that the
// first error is an increase. The error says that the name is in use.
func (m *Metrics) Controller(name string) (*Controller, error) {
	m.prune()
	f := m.controllers
	if !f.acquireAlone(name) {
		return nil, fmt.Errorf("make metrics of controller %q: there is one already", name)
	}
	c := &Controller{
		metrics:          m,
		family:           f,
		name:             name,
		giveUp:           sync.OnceFunc(func() { f.release(name) }),
		results:          map[controller.Outcome]prometheus.Counter{},
		deadLettersTotal: map[controller.Reason]prometheus.Counter{},
		errors:           f.errors.WithLabelValues(name),
		terminal:         f.terminal.WithLabelValues(name),
		panics:           f.panics.WithLabelValues(name),
		timeouts:         f.timeouts.WithLabelValues(name),
		took:             f.took.WithLabelValues(name),
		travel:           f.travel.WithLabelValues(name),
		workers:          f.workers.WithLabelValues(name),
		active:           f.active.WithLabelValues(name),
	}
	const requeue = "requeue" // controller-runtime's, for an answer that ours does not have
	for _, outcome := range []controller.Outcome{
		controller.OutcomeError, controller.OutcomeRequeueAfter, requeue, controller.OutcomeSuccess,
	} {
		c.results[outcome] = f.total.WithLabelValues(name, string(outcome))
	}
	for _, reason := range []controller.Reason{
		controller.MaxAttempts, controller.Terminal, controller.Panicked,
	} {
		c.deadLettersTotal[reason] = f.deadLettersTotal.WithLabelValues(name, string(reason))
	}
	return c, nil
}

// Metrics returns the functions for controller.Options.Metrics.
func (c *Controller) Metrics() controller.Metrics {
	return controller.Metrics{
		Workers: func(count int) { c.workers.Set(float64(count)) },
		Begin:   c.active.Inc,
		End:     c.end,
	}
}

func (c *Controller) end(report controller.Report) {
	c.active.Dec()
	c.took.Observe(report.Took.Seconds())
	c.results[report.Outcome].Inc()
	for _, counted := range []struct {
		is      bool
		counter prometheus.Counter
	}{
		{report.Outcome == controller.OutcomeError, c.errors},
		{report.Terminal, c.terminal},
		{report.Panicked, c.panics},
		{report.TimedOut, c.timeouts},
		{report.DeadLetter != "", c.deadLettersTotal[report.DeadLetter]},
	} {
		if counted.is {
			counted.counter.Inc()
		}
	}
}

// Follow reads subject, a controller.Controller, at each scrape from now on: its dead letters and
// its failing keys. After subject has stopped, its series are gone from the next scrape. A second
// call does nothing.
func (c *Controller) Follow(subject interface{ Status() controller.Status }) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.subject == nil {
		c.subject = subject
		c.metrics.follow(controllerSource{c})
	}
}

// Release ends the series. A second call does nothing.
func (c *Controller) Release() {
	c.metrics.forget(controllerSource{c})
	c.giveUp()
}

// controllerSource is a Controller as a source.
type controllerSource struct{ *Controller }

func (s controllerSource) release() { s.giveUp() }

func (s controllerSource) ended() bool {
	return s.subject.Status().Phase == controller.PhaseStopped
}

func (s controllerSource) collect(ch chan<- prometheus.Metric) {
	status := s.subject.Status()
	to := sample{ch, []string{s.name}}
	to.gauge(s.family.deadLetters, float64(status.DeadLetters))
	to.counter(s.family.evicted, float64(status.Evicted))
	to.gauge(s.family.failing, float64(status.Failing))
	to.counter(s.family.keyErrors, float64(status.KeyErrors))
}
