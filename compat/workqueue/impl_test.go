// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	reference "k8s.io/client-go/util/workqueue"

	"example.com/informerstack/compat/workqueue"
	"example.com/informerstack/internal/tools/narrate"
)

const (
	ours     = "ours"
	clientGo = "client-go"
)

// recorder records the calls of metrics, as queue/metric.
type recorder struct {
	mu   sync.Mutex
	seen map[string]bool
}

func (r *recorder) metric(name, queue string) metric { return metric{r, queue + "/" + name} }

// take returns the metrics that were called since the last take.
func (r *recorder) take() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := slices.Sorted(maps.Keys(r.seen))
	r.seen = nil
	return strings.Join(seen, " ")
}

type metric struct {
	r    *recorder
	name string
}

func (m metric) note() {
	m.r.mu.Lock()
	defer m.r.mu.Unlock()
	if m.r.seen == nil {
		m.r.seen = map[string]bool{}
	}
	m.r.seen[m.name] = true
}

func (m metric) Inc()            { m.note() }
func (m metric) Dec()            { m.note() }
func (m metric) Set(float64)     { m.note() }
func (m metric) Observe(float64) { m.note() }

// provider makes the metrics of a recorder: G to H are the interfaces that one of the two packages
// has for them.
type provider[G, S, C, H any] struct{ *recorder }

func as[T any](m metric) T { return any(m).(T) }

func (p provider[G, S, C, H]) NewDepthMetric(q string) G   { return as[G](p.metric("depth", q)) }
func (p provider[G, S, C, H]) NewAddsMetric(q string) C    { return as[C](p.metric("adds", q)) }
func (p provider[G, S, C, H]) NewLatencyMetric(q string) H { return as[H](p.metric("latency", q)) }
func (p provider[G, S, C, H]) NewWorkDurationMetric(q string) H {
	return as[H](p.metric("work", q))
}
func (p provider[G, S, C, H]) NewUnfinishedWorkSecondsMetric(q string) S {
	return as[S](p.metric("unfinished", q))
}
func (p provider[G, S, C, H]) NewLongestRunningProcessorSecondsMetric(q string) S {
	return as[S](p.metric("longest", q))
}
func (p provider[G, S, C, H]) NewRetriesMetric(q string) C { return as[C](p.metric("retries", q)) }

// waitingProvider also has the metrics of the items that wait.
type waitingProvider struct{ oursProvider }

func (p waitingProvider) NewWaitingItemsMetric(q string) workqueue.SettableGaugeMetric {
	return p.metric("waiting", q)
}

func (p waitingProvider) NewLongestWaitSecondsMetric(q string) workqueue.SettableGaugeMetric {
	return p.metric("longest wait", q)
}

type (
	oursProvider = provider[workqueue.GaugeMetric, workqueue.SettableGaugeMetric,
		workqueue.CounterMetric, workqueue.HistogramMetric]
	referenceProvider = provider[reference.GaugeMetric, reference.SettableGaugeMetric,
		reference.CounterMetric, reference.HistogramMetric]
)

// The process has one provider, so these tests share it.
var (
	early  = map[string]queue{} // made before SetProvider
	global = map[string]*recorder{ours: {}, clientGo: {}}
	second = map[string]*recorder{ours: {}, clientGo: {}} // of the second call of SetProvider
)

func TestMain(m *testing.M) {
	early[ours], early[clientGo] = workqueue.NewNamed("early"), reference.NewNamed("early")
	workqueue.SetProvider(oursProvider{global[ours]})
	reference.SetProvider(referenceProvider{global[clientGo]})
	workqueue.SetProvider(oursProvider{second[ours]})
	reference.SetProvider(referenceProvider{second[clientGo]})
	os.Exit(narrate.Run(m))
}
