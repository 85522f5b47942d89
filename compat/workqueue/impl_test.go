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
)

const (
	ours     = "ours"
	clientGo = "client-go"
)

// recorder remembers which metrics of which queues were told something, as queue/metric.
type recorder struct {
	mu   sync.Mutex
	told map[string]bool
}

func (r *recorder) metric(name, queue string) metric { return metric{r, queue + "/" + name} }

// take lists what was told since the last take, and forgets it.
func (r *recorder) take() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	told := slices.Sorted(maps.Keys(r.told))
	r.told = nil
	return strings.Join(told, " ")
}

type metric struct {
	r    *recorder
	name string
}

func (m metric) tell() {
	m.r.mu.Lock()
	defer m.r.mu.Unlock()
	if m.r.told == nil {
		m.r.told = map[string]bool{}
	}
	m.r.told[m.name] = true
}

func (m metric) Inc()            { m.tell() }
func (m metric) Dec()            { m.tell() }
func (m metric) Set(float64)     { m.tell() }
func (m metric) Observe(float64) { m.tell() }

// provider makes the metrics of a recorder: G to H are the interfaces that one of the two packages
// has for them.
type provider[G, S, C, H any] struct{ *recorder }

func as[T any](m metric) T { return any(m).(T) }

func (p provider[G, S, C, H]) NewDepthMetric(
	q string,
) G {
	return as[G](p.metric("depth", q))
}

func (p provider[G, S, C, H]) NewAddsMetric(
	q string,
) C {
	return as[C](p.metric("adds", q))
}

func (p provider[G, S, C, H]) NewLatencyMetric(
	q string,
) H {
	return as[H](p.metric("latency", q))
}

func (p provider[G, S, C, H]) NewWorkDurationMetric(
	q string,
) H {
	return as[H](p.metric("work", q))
}
func (p provider[G, S, C, H]) NewUnfinishedWorkSecondsMetric(q string) S {
	return as[S](p.metric("unfinished", q))
}
func (p provider[G, S, C, H]) NewLongestRunningProcessorSecondsMetric(q string) S {
	return as[S](p.metric("longest", q))
}
func (p provider[G, S, C, H]) NewRetriesMetric(q string) C { return as[C](p.metric("retries", q)) }

type (
	oursProvider = provider[workqueue.GaugeMetric, workqueue.SettableGaugeMetric,
		workqueue.CounterMetric, workqueue.HistogramMetric]
	referenceProvider = provider[reference.GaugeMetric, reference.SettableGaugeMetric,
		reference.CounterMetric, reference.HistogramMetric]
)

// The process has one provider, and so have these tests.
var (
	early  = map[string]queue{} // made before SetProvider
	global = map[string]*recorder{ours: {}, clientGo: {}}
	second = map[string]*recorder{ours: {}, clientGo: {}} // of the second SetProvider
)

func TestMain(m *testing.M) {
	early[ours], early[clientGo] = workqueue.NewNamed("early"), reference.NewNamed("early")
	workqueue.SetProvider(oursProvider{global[ours]})
	reference.SetProvider(referenceProvider{global[clientGo]})
	workqueue.SetProvider(oursProvider{second[ours]})
	reference.SetProvider(referenceProvider{second[clientGo]})
	os.Exit(m.Run())
}
