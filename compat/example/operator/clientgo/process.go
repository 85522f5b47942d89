// SPDX-License-Identifier: Apache-2.0

package clientgo

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/workqueue"

	"example.com/informerstack/compat/example/operator/api"
)

const (
	renewDeadline = 10 * time.Second
	leaseGrace    = 20 * time.Second
)

// Process is a process with the operator: it elects a leader, and serves metrics and health.
type Process struct {
	publisher *Publisher
	lock      resourcelock.Interface
	check     *leaderelection.HealthzAdaptor
	mux       *http.ServeMux
}

// New returns a process. Only one in a program has the metrics of its queue: client-go has one
// provider for all queues.
func New(config *rest.Config, dns api.Records, namespace, identity string) (*Process, error) {
	registry := prometheus.NewRegistry()
	m := newMetrics(registry)
	workqueue.SetProvider(m)
	publisher, err := newPublisher(config, dns, m)
	if err != nil {
		return nil, err
	}
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, namespace,
		"websites", resourcelock.ResourceLockConfig{Identity: identity}, config, renewDeadline)
	if err != nil {
		return nil, err
	}
	p := &Process{publisher, lock, leaderelection.NewLeaderHealthzAdaptor(leaseGrace),
		http.NewServeMux()}
	p.mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	p.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		answer(w, p.check.Check(r))
	})
	p.mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !publisher.sites.HasSynced() || !publisher.pages.HasSynced() {
			answer(w, errors.New("the caches are not synced"))
			return
		}
		answer(w, nil)
	})
	return p, nil
}

// ServeHTTP serves /metrics, /healthz and /readyz.
func (p *Process) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.mux.ServeHTTP(w, r) }

func answer(w http.ResponseWriter, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// Run runs the operator until ctx is done, or the lease is lost.
func (p *Process) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	defer p.publisher.queue.ShutDown()
	running.Go(func() { p.publisher.sites.RunWithContext(ctx) })
	running.Go(func() { p.publisher.pages.RunWithContext(ctx) })
	if !cache.WaitForCacheSync(ctx.Done(), p.publisher.sites.HasSynced,
		p.publisher.pages.HasSynced) {
		return nil
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: p.lock, Name: "websites", LeaseDuration: 15 * time.Second,
		RenewDeadline: renewDeadline, RetryPeriod: 2 * time.Second,
		// client-go releases the lease while the work may still run
		ReleaseOnCancel: false,
		WatchDog:        p.check,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: p.lead,
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return err
	}
	p.check.SetLeaderElection(elector)
	elector.Run(ctx)
	if ctx.Err() == nil {
		return errors.New("the lease is lost")
	}
	return nil
}

// lead reconciles until ctx is done.
func (p *Process) lead(ctx context.Context) {
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() { p.publisher.work(ctx) })
	}
	<-ctx.Done()
	p.publisher.queue.ShutDown()
	workers.Wait()
}

// metrics counts reconciles, and provides the metrics of queues.
type metrics struct {
	reconciles                *prometheus.CounterVec
	adds, retries             *prometheus.CounterVec
	depth, unfinished, oldest *prometheus.GaugeVec
	waited, worked            *prometheus.HistogramVec
}

func newMetrics(registry *prometheus.Registry) *metrics {
	counter := func(name, help, label string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help},
			[]string{label})
	}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help},
			[]string{"name"})
	}
	histogram := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help},
			[]string{"name"})
	}
	m := &metrics{
		reconciles: counter("reconcile_total", "Reconciles, by result", "result"),
		adds:       counter("workqueue_adds_total", "Adds", "name"),
		retries:    counter("workqueue_retries_total", "Retries", "name"),
		depth:      gauge("workqueue_depth", "Items that wait"),
		unfinished: gauge("workqueue_unfinished_work_seconds", "Ages of the work in progress"),
		oldest:     gauge("workqueue_longest_running_processor_seconds", "Age of the oldest work"),
		waited:     histogram("workqueue_queue_duration_seconds", "From Add to Get"),
		worked:     histogram("workqueue_work_duration_seconds", "From Get to Done"),
	}
	registry.MustRegister(m.reconciles, m.adds, m.retries, m.depth, m.unfinished, m.oldest,
		m.waited, m.worked)
	return m
}

func (m *metrics) reconciled(err error) {
	result := "success"
	if err != nil {
		result = "error"
	}
	m.reconciles.WithLabelValues(result).Inc()
}

func (m *metrics) NewDepthMetric(name string) workqueue.GaugeMetric {
	return m.depth.WithLabelValues(name)
}

func (m *metrics) NewAddsMetric(name string) workqueue.CounterMetric {
	return m.adds.WithLabelValues(name)
}

func (m *metrics) NewLatencyMetric(name string) workqueue.HistogramMetric {
	return m.waited.WithLabelValues(name)
}

func (m *metrics) NewWorkDurationMetric(name string) workqueue.HistogramMetric {
	return m.worked.WithLabelValues(name)
}

func (m *metrics) NewRetriesMetric(name string) workqueue.CounterMetric {
	return m.retries.WithLabelValues(name)
}

func (m *metrics) NewUnfinishedWorkSecondsMetric(name string) workqueue.SettableGaugeMetric {
	return m.unfinished.WithLabelValues(name)
}

func (m *metrics) NewLongestRunningProcessorSecondsMetric(
	name string,
) workqueue.SettableGaugeMetric {
	return m.oldest.WithLabelValues(name)
}
