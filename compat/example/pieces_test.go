// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"example.com/informerstack/compat/workqueue"
	"example.com/informerstack/leaderelection/resourcelock"
)

// queues counts the adds to queues of this module; it would not count those of another
// implementation.
var queues provider

func TestMain(m *testing.M) {
	ctrl.SetLogger(klog.Logger{})
	workqueue.SetProvider(&queues)
	// one of them waits for a time outside the bubbles
	utilruntime.ErrorHandlers = nil
	os.Exit(m.Run())
}

// provider counts adds by the queue's name; its other metrics are no-ops.
type provider struct{ adds sync.Map }

func (p *provider) of(queue string) *metric {
	m, _ := p.adds.LoadOrStore(queue, new(metric))
	return m.(*metric)
}

func (p *provider) NewAddsMetric(queue string) workqueue.CounterMetric     { return p.of(queue) }
func (p *provider) NewDepthMetric(string) workqueue.GaugeMetric            { return new(metric) }
func (p *provider) NewLatencyMetric(string) workqueue.HistogramMetric      { return new(metric) }
func (p *provider) NewWorkDurationMetric(string) workqueue.HistogramMetric { return new(metric) }
func (p *provider) NewRetriesMetric(string) workqueue.CounterMetric        { return new(metric) }
func (p *provider) NewUnfinishedWorkSecondsMetric(string) workqueue.SettableGaugeMetric {
	return new(metric)
}
func (p *provider) NewLongestRunningProcessorSecondsMetric(string) workqueue.SettableGaugeMetric {
	return new(metric)
}

type metric struct{ count atomic.Int64 }

func (m *metric) Inc()          { m.count.Add(1) }
func (*metric) Dec()            {}
func (*metric) Set(float64)     {}
func (*metric) Observe(float64) {}

// countedLock counts the writes of a lock of this module.
type countedLock struct {
	resourcelock.Interface
	writes atomic.Int64
}

func (l *countedLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	l.writes.Add(1)
	return l.Interface.Create(ctx, record)
}

func (l *countedLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	l.writes.Add(1)
	return l.Interface.Update(ctx, record)
}
