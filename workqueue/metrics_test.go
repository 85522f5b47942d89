// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	reference "k8s.io/client-go/util/workqueue"

	"example.com/informerstack/internal/transcript"
	"example.com/informerstack/workqueue"
)

// recorder is a MetricsProvider that remembers.
type recorder struct {
	mu     sync.Mutex
	values map[string]float64
}

func newRecorder() *recorder {
	return &recorder{values: map[string]float64{}}
}

func (r *recorder) metric(name, queue string) metric { return metric{r, queue + "/" + name} }

type metric struct {
	r    *recorder
	name string
}

func (m metric) change(f func(old float64) float64) {
	m.r.mu.Lock()
	defer m.r.mu.Unlock()
	m.r.values[m.name] = f(m.r.values[m.name])
}

func (m metric) Inc()              { m.change(func(v float64) float64 { return v + 1 }) }
func (m metric) Dec()              { m.change(func(v float64) float64 { return v - 1 }) }
func (m metric) Set(v float64)     { m.change(func(float64) float64 { return v }) }
func (m metric) Observe(v float64) { m.change(func(old float64) float64 { return old + v }) }

func (r *recorder) NewDepthMetric(q string) workqueue.GaugeMetric  { return r.metric("depth", q) }
func (r *recorder) NewAddsMetric(q string) workqueue.CounterMetric { return r.metric("adds", q) }
func (r *recorder) NewLatencyMetric(q string) workqueue.HistogramMetric {
	return r.metric("latency", q)
}
func (r *recorder) NewWorkDurationMetric(q string) workqueue.HistogramMetric {
	return r.metric("work", q)
}
func (r *recorder) NewUnfinishedWorkSecondsMetric(q string) workqueue.SettableGaugeMetric {
	return r.metric("unfinished", q)
}
func (r *recorder) NewLongestRunningProcessorSecondsMetric(q string) workqueue.SettableGaugeMetric {
	return r.metric("longest", q)
}
func (r *recorder) NewRetriesMetric(q string) workqueue.CounterMetric { return r.metric("retries", q) }

// referenceRecorder is a recorder for client-go, whose metric types have other names.
type referenceRecorder struct{ *recorder }

func (r referenceRecorder) NewDepthMetric(q string) reference.GaugeMetric {
	return r.metric("depth", q)
}
func (r referenceRecorder) NewAddsMetric(q string) reference.CounterMetric {
	return r.metric("adds", q)
}
func (r referenceRecorder) NewLatencyMetric(q string) reference.HistogramMetric {
	return r.metric("latency", q)
}
func (r referenceRecorder) NewWorkDurationMetric(q string) reference.HistogramMetric {
	return r.metric("work", q)
}
func (r referenceRecorder) NewUnfinishedWorkSecondsMetric(q string) reference.SettableGaugeMetric {
	return r.metric("unfinished", q)
}
func (r referenceRecorder) NewLongestRunningProcessorSecondsMetric(q string) reference.SettableGaugeMetric {
	return r.metric("longest", q)
}
func (r referenceRecorder) NewRetriesMetric(q string) reference.CounterMetric {
	return r.metric("retries", q)
}

// onBothWithMetrics runs f on a queue of ours and on one of client-go's that has metrics.
func onBothWithMetrics(t *testing.T, name string, f func(t *testing.T, q queue, r *recorder)) {
	for _, impl := range []string{transcript.Ours, clientGo} {
		t.Run("impl="+impl, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRecorder()
				var q queue
				if impl == transcript.Ours {
					q = workqueue.NewTypedRateLimitingQueueWithConfig(workqueue.DefaultTypedItemBasedRateLimiter[string](),
						workqueue.TypedRateLimitingQueueConfig[string]{Name: name, MetricsProvider: r})
				} else {
					q = reference.NewTypedRateLimitingQueueWithConfig(reference.DefaultTypedItemBasedRateLimiter[string](),
						reference.TypedRateLimitingQueueConfig[string]{Name: name, MetricsProvider: referenceRecorder{r}})
				}
				defer q.ShutDown()
				f(t, q, r)
				checkLaws(t, q)
			})
		})
	}
}

// One item's life, as its metrics tell it.
func TestMetrics(t *testing.T) {
	onBothWithMetrics(t, "q", func(t *testing.T, q queue, r *recorder) {
		is := func(name string, want float64) {
			t.Helper()
			synctest.Wait()
			r.mu.Lock()
			defer r.mu.Unlock()
			assert.Equal(t, want, r.values["q/"+name], name)
		}
		q.Add("a")
		q.Add("a") // ignored: it waits already
		is("adds", 1)
		is("depth", 1)

		after(3 * time.Second)
		assert.Equal(t, "a", next(q))
		is("latency", 3)
		is("depth", 0)

		q.Add("a") // to be worked on again: counts from here
		q.Add("a")
		is("adds", 2)
		is("depth", 1)

		q.Add("b")
		assert.Equal(t, "b", next(q))
		after(2*time.Second + 100*time.Millisecond)
		is("unfinished", 4) // the gauges are as of the last tick
		is("longest", 2)

		q.Done("a")
		q.Done("b")
		is("work", 4.2)
		after(500 * time.Millisecond)
		is("unfinished", 0)
		is("longest", 0)

		assert.Equal(t, "a", next(q))
		is("latency", 3+2.6)

		q.AddAfter("c", time.Hour)
		q.AddAfter("c", 0)
		q.AddRateLimited("c")
		is("retries", 3)

		q.ShutDown()
		q.AddAfter("d", time.Hour)
		q.Add("d")
		after(time.Second)
		is("retries", 3)
		is("adds", 4)
		is("unfinished", 0.0)
	})
}

// Without a name there are no metrics.
func TestMetrics_NeedAName(t *testing.T) {
	onBothWithMetrics(t, "", func(t *testing.T, q queue, r *recorder) {
		q.Add("a")
		q.AddAfter("b", 1)
		after(time.Second)
		assert.Empty(t, r.values)
	})
}

// A metric may call the queue: no lock is held.
func TestDifference_MetricsMayCallTheQueue(t *testing.T) {
	r := &reentrant{recorder: newRecorder()}
	q := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[string]{Name: "q", MetricsProvider: r})
	r.q = q
	q.Add("a")
	q.Get()
	q.Done("a")
	q.ShutDown()
	assert.Equal(t, []int{1, 0}, r.lens)
}

type reentrant struct {
	*recorder
	q    *workqueue.Typed[string]
	lens []int
}

func (r *reentrant) NewDepthMetric(string) workqueue.GaugeMetric { return r }
func (r *reentrant) Inc()                                        { r.lens = append(r.lens, r.q.Len()) }
func (r *reentrant) Dec()                                        { r.lens = append(r.lens, r.q.Len()) }

// faulty is a recorder of which one metric panics the next time.
type faulty struct {
	*recorder
	queue string // whose
	name  string // which
	armed *atomic.Bool
}

// A metric that panics in Get, in a program that survives it, loses no item: no worker got it.
func TestMetrics_APanicInGetLosesNoItem(t *testing.T) {
	provider := faulty{newRecorder(), "queue", "latency", &atomic.Bool{}}
	q := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[string]{
		Name: "queue", MetricsProvider: provider})
	defer q.ShutDown()
	q.Add("a")
	provider.armed.Store(true)
	assert.Panics(t, func() { q.Get() })
	assert.Equal(t, []string{"a"}, q.Snapshot().Ready)
	assert.Empty(t, q.Snapshot().Processing)
	item, _ := q.Get()
	assert.Equal(t, "a", item)
	q.CheckLaws(t)
}

type faultyMetric struct {
	metric
	f faulty
}

func (m faultyMetric) Inc()              { m.f.fail(m.name); m.metric.Inc() }
func (m faultyMetric) Observe(v float64) { m.f.fail(m.name); m.metric.Observe(v) }

func (f faulty) fail(metric string) {
	if metric == f.queue+"/"+f.name && f.armed.CompareAndSwap(true, false) {
		panic(metric)
	}
}

func (f faulty) NewAddsMetric(q string) workqueue.CounterMetric {
	return faultyMetric{f.metric("adds", q), f}
}

func (f faulty) NewLatencyMetric(q string) workqueue.HistogramMetric {
	return faultyMetric{f.metric("latency", q), f}
}

func (f faulty) NewWorkDurationMetric(q string) workqueue.HistogramMetric {
	return faultyMetric{f.metric("work", q), f}
}

// A metric that panics in Add or in Done, in a program that survives it, leaves no worker asleep
// beside a full queue.
func TestMetrics_APanicStopsNobody(t *testing.T) {
	survive := func(call func()) {
		defer func() { _ = recover() }()
		call()
	}
	for _, name := range []string{"adds", "work"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				provider := faulty{newRecorder(), "queue", name, &atomic.Bool{}}
				q := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[string]{Name: "queue", MetricsProvider: provider})
				var handled atomic.Int64
				for range 3 {
					go func() {
						for {
							item, shutdown := q.Get()
							if shutdown {
								return
							}
							if handled.Add(1) == 1 {
								q.Add(item) // so that Done queues it, and wakes somebody
							}
							survive(func() { q.Done(item) })
						}
					}()
				}
				synctest.Wait()
				provider.armed.Store(true)
				survive(func() { q.Add("a") })
				for _, item := range []string{"b", "c", "d"} {
					q.Add(item)
				}
				synctest.Wait()
				assert.False(t, provider.armed.Load(), "it has panicked")
				assert.EqualValues(t, 5, handled.Load())
				assert.Zero(t, q.Len())
				q.ShutDown()
			})
		})
	}
}

// releasing is a recorder that counts calls of ReleaseMetrics.
type releasing struct {
	*recorder
	released map[string]int
}

func (r releasing) ReleaseMetrics(name string) { r.released[name]++ }

// The queue, and the delaying queue around it, release their metrics once.
func TestMetrics_AreReleasedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := releasing{newRecorder(), map[string]int{}}
		plain := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[string]{Name: "plain", MetricsProvider: provider})
		delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[string]{Name: "delaying", MetricsProvider: provider})
		nameless := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[string]{MetricsProvider: provider})
		for _, q := range []workqueue.TypedInterface[string]{plain, delaying, nameless} {
			q.ShutDown()
			q.ShutDownWithDrain()
			q.ShutDown()
		}
		assert.Equal(t, map[string]int{"plain": 1, "delaying": 2}, provider.released)
	})
}

// A queue that drains releases its metrics when it is drained.
func TestMetrics_AreReleasedAfterTheDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := releasing{newRecorder(), map[string]int{}}
		q := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[string]{Name: "q", MetricsProvider: provider})
		q.Add("a")
		item, _ := q.Get()
		go q.ShutDownWithDrain()
		synctest.Wait()
		assert.Empty(t, provider.released)
		q.Done(item)
		synctest.Wait()
		assert.Equal(t, map[string]int{"q": 1}, provider.released)
	})
}
