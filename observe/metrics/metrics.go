// SPDX-License-Identifier: Apache-2.0

// Package metrics gives every piece's numbers to Prometheus, under the names that dashboards know.
//
//	informer -> workqueue -> controller     leaderelection, shard
//	    \           |            |              /
//	                 [metrics] -> /metrics
//
// To use it, call [New] with a registerer, and set the Metrics of each piece: [Metrics.Workqueue]
// returns those of a queue, [Metrics.Informer], [Metrics.Controller], [Metrics.LeaderElection] and
// [Metrics.Shards] those of the others. docs/metrics.md has a table of all series.
//
// Each piece has small hooks, which this package implements, and a Status. The package reads a
// Status only at a scrape: ages and backlogs cost nothing in between. A piece without metrics knows
// nothing of this package. The series of a queue, informer or controller are gone once it has
// stopped.
//
// Read metrics.go, family.go, then one file per piece: workqueue.go, informer.go, reflector.go,
// scrape.go, controller.go, journey.go, leaderelection.go, shards.go; then run
// go test -v ./observe/metrics. Goroutines: none. Locking: a family's mutex guards the number of
// users of its series, Metrics.mu the objects that are read at each scrape; no callback runs under
// them.
//
// Names, labels and buckets are component-base's (workqueue, informer, leader election) and
// controller-runtime's (controller). Those of the reflector are what Kubernetes once had.
//
// Source: util/workqueue/metrics.go MetricsProvider,
// tools/cache/informer_metrics.go InformerMetricsProvider,
// tools/cache/reflector_metrics.go MetricsProvider, tools/leaderelection/metrics.go MetricsProvider
package metrics

import (
	"fmt"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics makes the metrics of any number of queues, informers, controllers, electors and shards.
// It is a prometheus.Collector.
//
// All methods are safe for concurrent use.
type Metrics struct {
	queues      *queueFamily
	informers   *informerFamily
	controllers *controllerFamily
	leaders     *leaderFamily
	shards      *shardFamily

	mu       sync.Mutex
	followed []source
}

// source is asked at each scrape, until what it describes has ended.
type source interface {
	collect(ch chan<- prometheus.Metric)
	ended() bool
	release()
}

// New returns a Metrics that is registered with registerer; nil registers it nowhere. The error is
// registerer's: it may hold metrics of the same names already.
func New(registerer prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		queues:      newQueueFamily(),
		informers:   newInformerFamily(),
		controllers: newControllerFamily(),
		leaders:     newLeaderFamily(),
		shards:      newShardFamily(),
	}
	if registerer != nil {
		if err := registerer.Register(m); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return m, nil
}

func (m *Metrics) families() []*family {
	return []*family{
		&m.queues.family,
		&m.informers.family,
		&m.controllers.family,
		&m.leaders.family,
		&m.shards.family,
	}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, f := range m.families() {
		f.describe(ch)
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	m.ask(ch)
	for _, f := range m.families() {
		f.collect(ch)
	}
}

// ask asks every source.
func (m *Metrics) ask(ch chan<- prometheus.Metric) {
	m.prune()
	m.mu.Lock()
	sources := slices.Clone(m.followed)
	m.mu.Unlock()
	for _, s := range sources {
		s.collect(ch)
	}
}

// prune ends the series of what has ended. It is called at each scrape, which may never come, and
// before something of a name is made anew.
func (m *Metrics) prune() {
	m.mu.Lock()
	sources := slices.Clone(m.followed)
	m.mu.Unlock()
	for _, s := range sources {
		if s.ended() {
			s.release()
			m.forget(s)
		}
	}
}

func (m *Metrics) follow(s source) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.followed = append(m.followed, s)
}

func (m *Metrics) forget(s source) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.followed = slices.DeleteFunc(m.followed, func(other source) bool { return other == s })
}
