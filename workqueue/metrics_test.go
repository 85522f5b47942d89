// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	reference "k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"example.com/informerstack/workqueue"
)

// recorder remembers what metrics report.
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

// metrics are the Metrics of the queue called q.
func (r *recorder) metrics(q string) workqueue.Metrics {
	add := func(name string, n float64) {
		r.metric(name, q).change(func(old float64) float64 { return old + n })
	}
	return workqueue.Metrics{
		Adds:         func() { add("adds", 1) },
		Depth:        func(change int) { add("depth", float64(change)) },
		Latency:      func(waited time.Duration) { add("latency", waited.Seconds()) },
		WorkDuration: func(worked time.Duration) { add("work", worked.Seconds()) },
		Unfinished: func(total, longest time.Duration) {
			r.metric("unfinished", q).Set(total.Seconds())
			r.metric("longest", q).Set(longest.Seconds())
		},
		Retries:  func() { add("retries", 1) },
		Released: func() { add("released", 1) },
	}
}

// value is that of a metric of the queue called q.
func (r *recorder) value(name, q string) float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.values[q+"/"+name]
}

// referenceRecorder is a recorder for client-go, where metric types have other names.
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

func (r referenceRecorder) NewLongestRunningProcessorSecondsMetric(
	q string,
) reference.SettableGaugeMetric {
	return r.metric("longest", q)
}
func (r referenceRecorder) NewRetriesMetric(q string) reference.CounterMetric {
	return r.metric("retries", q)
}

// onBothWithMetrics is onBoth with queues that have metrics.
func onBothWithMetrics(t *testing.T, f func(t *testing.T, q queue, r *recorder)) {
	var r *recorder
	onEach(t, func() queue {
		r = newRecorder()
		return ours(workqueue.Config[string]{Metrics: r.metrics("q")})
	}, func() queue {
		r = newRecorder()
		return theirs(workqueue.Config[string]{}, referenceRecorder{r})
	}, func(t *testing.T, impl string, q queue) { f(t, q, r) })
}

// An item has waited since its first Add, however often it was added afterwards: while it was
// queued, and while a worker had it.
func TestMetrics_LatencyCountsFromTheFirstAdd(t *testing.T) {
	onBothWithMetrics(t, func(t *testing.T, q queue, r *recorder) {
		for range 3 {
			q.Add("a")
			time.Sleep(time.Second)
		}
		next(q)
		assert.Equal(t, 3.0, r.value("latency", "q"))
		for range 4 {
			q.Add("a")
			time.Sleep(time.Second)
		}
		q.Done("a")
		q.Add("a")
		time.Sleep(time.Second)
		next(q)
		assert.Equal(t, 3.0+5, r.value("latency", "q"))
		assert.Equal(t, 4.0, r.value("work", "q"))
		assert.Equal(t, 2.0, r.value("adds", "q"))
		assert.Zero(t, r.value("depth", "q"))
	})
}

// The metrics of one item from Add to Done.
func TestMetrics(t *testing.T) {
	onBothWithMetrics(t, func(t *testing.T, q queue, r *recorder) {
		is := func(name string, want float64) {
			t.Helper()
			synctest.Wait()
			assert.Equal(t, want, r.value(name, "q"), name)
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

// Each field may be nil, whichever the others are.
func TestMetrics_EachFieldIsOptional(t *testing.T) {
	fields := reflect.TypeFor[workqueue.Metrics]()
	for field := range fields.NumField() {
		synctest.Test(t, func(t *testing.T) {
			r := newRecorder()
			all, one := r.metrics("q"), workqueue.Metrics{}
			reflect.ValueOf(&one).Elem().Field(field).Set(reflect.ValueOf(all).Field(field))
			q := workqueue.NewTypedDelayingQueue(workqueue.Config[string]{Metrics: one})
			q.Add("a")
			q.Get()
			q.AddAfter("b", time.Second)
			after(time.Second)
			q.Done("a")
			q.ShutDown()
			want := map[string]int{"Unfinished": 2}[fields.Field(field).Name]
			assert.Len(t, r.values, max(1, want), fields.Field(field).Name)
		})
	}
}

// faulty are metrics. The metric called name panics when it is called while armed.
func faulty(name string, armed *atomic.Bool) workqueue.Metrics {
	m := newRecorder().metrics("q")
	fail := func(metric string) {
		if metric == name && armed.CompareAndSwap(true, false) {
			panic(metric)
		}
	}
	m.Adds = func() { fail("adds") }
	m.WorkDuration = func(time.Duration) { fail("work") }
	return m
}

// A metric that panics in Add or in Done, in a program that survives it, leaves no worker waiting
// beside a full queue.
func TestMetrics_APanicStopsNoWorker(t *testing.T) {
	survive := func(call func()) {
		defer func() { _ = recover() }()
		call()
	}
	for _, name := range []string{"adds", "work"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var armed atomic.Bool
				q := workqueue.NewTyped(workqueue.Config[string]{Metrics: faulty(name, &armed)})
				var handled atomic.Int64
				for range 3 {
					go func() {
						for {
							item, shutdown := q.Get()
							if shutdown {
								return
							}
							if handled.Add(1) == 1 {
								q.Add(item) // so that Done queues it, and wakes a worker
							}
							survive(func() { q.Done(item) })
						}
					}()
				}
				synctest.Wait()
				armed.Store(true)
				survive(func() { q.Add("a") })
				for _, item := range []string{"b", "c", "d"} {
					q.Add(item)
				}
				synctest.Wait()
				assert.False(t, armed.Load(), "it has panicked")
				assert.EqualValues(t, 5, handled.Load())
				assert.Zero(t, q.Len())
				q.ShutDown()
			})
		})
	}
}

// Each queue calls Released once, also a delaying queue, which contains another queue.
func TestMetrics_AreReleasedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder()
		plain := workqueue.NewTyped(workqueue.Config[string]{Metrics: r.metrics("plain")})
		delaying := workqueue.NewTypedDelayingQueue(
			workqueue.Config[string]{Metrics: r.metrics("delaying")})
		around := workqueue.NewTypedDelayingQueue(workqueue.Config[string]{
			Queue:   workqueue.NewTyped(workqueue.Config[string]{Metrics: r.metrics("inner")}),
			Metrics: r.metrics("around"),
		})
		for _, q := range []workqueue.TypedInterface[string]{plain, delaying, around} {
			q.ShutDown()
			q.ShutDownWithDrain()
			q.ShutDown()
		}
		assert.Equal(t, map[string]float64{
			"plain/released": 1, "delaying/released": 1, "inner/released": 1, "around/released": 1,
		}, r.values)
	})
}

// A queue that drains releases its metrics when it is drained.
func TestMetrics_AreReleasedAfterTheDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder()
		q := workqueue.NewTyped(workqueue.Config[string]{Metrics: r.metrics("q")})
		q.Add("a")
		item, _ := q.Get()
		go q.ShutDownWithDrain()
		synctest.Wait()
		assert.Zero(t, r.value("released", "q"))
		q.Done(item)
		synctest.Wait()
		assert.EqualValues(t, 1, r.value("released", "q"))
	})
}

// After a panic in Done the worker no longer has its item: Unfinished does not count it.
func TestMetrics_ADoneThatPanicsEndsTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		order := &pickyOrder{Queue: workqueue.DefaultQueue[string]()}
		var reported []time.Duration
		q := workqueue.NewTyped(workqueue.Config[string]{
			Order: order,
			Metrics: workqueue.Metrics{Unfinished: func(total, _ time.Duration) {
				reported = append(reported, total)
			}},
		})
		defer q.ShutDown()
		q.Add("a")
		_, _ = q.Get()
		q.Add("a")
		order.picky = true
		assert.Panics(t, func() { q.Done("a") })
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(t, []time.Duration{0, 0}, reported)
	})
}

// Unfinished has the sum and the maximum of all items that workers have, and a queue calls Released
// when the last Unfinished has returned.
func TestMetrics_Unfinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // guards the next two lines
		var total, longest, slow time.Duration
		var calls []string
		q := workqueue.NewTyped(workqueue.Config[int]{Metrics: workqueue.Metrics{
			Unfinished: func(sum, most time.Duration) {
				mu.Lock()
				defer mu.Unlock()
				total, longest = sum, most
				time.Sleep(slow)
				calls = append(calls, "unfinished")
			},
			Released: func() { calls = append(calls, "released") },
		}})
		for i := range 10 {
			q.Add(i)
			_, _ = q.Get()
			time.Sleep(time.Second)
		}
		synctest.Wait()
		mu.Lock()
		assert.Equal(t, 55*time.Second, total)
		assert.Equal(t, 10*time.Second, longest)
		slow, calls = time.Second, nil
		mu.Unlock()
		after(600 * time.Millisecond)
		q.ShutDown()
		assert.Greater(t, len(calls), 1)
		assert.Equal(t, len(calls)-1, slices.Index(calls, "released"))
	})
}

// A queue without metrics does not look at its clock.
func TestMetrics_NilCostsNothing(t *testing.T) {
	q := workqueue.NewTyped(workqueue.Config[string]{Clock: struct{ clock.WithTicker }{}})
	q.Add("a")
	item, _ := q.Get()
	q.Done(item)
	q.ShutDown()
}
