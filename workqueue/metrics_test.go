// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"reflect"
	"slices"
	"sync"
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

func (r *recorder) metric(name, queue string) metric {
	return func(change func(old float64) float64) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.values[queue+"/"+name] = change(r.values[queue+"/"+name])
	}
}

// metric changes its value. It has the methods of all client-go's metrics.
type metric func(change func(old float64) float64)

func (m metric) Inc()              { m.Observe(1) }
func (m metric) Dec()              { m.Observe(-1) }
func (m metric) Observe(v float64) { m(func(old float64) float64 { return old + v }) }
func (m metric) Set(v float64)     { m(func(float64) float64 { return v }) }

// metrics are the Metrics of the queue called q.
func (r *recorder) metrics(q string) workqueue.Metrics {
	add := func(name string, n float64) { r.metric(name, q).Observe(n) }
	return workqueue.Metrics{
		Adds:         func() { add("adds", 1) },
		Depth:        func(change int) { add("depth", float64(change)) },
		Latency:      func(waited time.Duration) { add("latency", waited.Seconds()) },
		WorkDuration: func(worked time.Duration) { add("work", worked.Seconds()) },
		Unfinished: func(total, longest time.Duration) {
			r.metric("unfinished", q).Set(total.Seconds())
			r.metric("longest", q).Set(longest.Seconds())
		},
		Waiting: func(items int, longest time.Duration) {
			r.metric("waiting", q).Set(float64(items))
			r.metric("longest wait", q).Set(longest.Seconds())
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

// provider makes client-go's metrics of a queue, which have types of their own.
type provider[M interface {
	reference.GaugeMetric
	reference.SettableGaugeMetric
	reference.HistogramMetric
}] func(name, queue string) M

func (p provider[M]) NewDepthMetric(q string) reference.GaugeMetric       { return p("depth", q) }
func (p provider[M]) NewAddsMetric(q string) reference.CounterMetric      { return p("adds", q) }
func (p provider[M]) NewLatencyMetric(q string) reference.HistogramMetric { return p("latency", q) }
func (p provider[M]) NewRetriesMetric(q string) reference.CounterMetric   { return p("retries", q) }

func (p provider[M]) NewWorkDurationMetric(q string) reference.HistogramMetric {
	return p("work", q)
}

func (p provider[M]) NewUnfinishedWorkSecondsMetric(q string) reference.SettableGaugeMetric {
	return p("unfinished", q)
}

func (p provider[M]) NewLongestRunningProcessorSecondsMetric(
	q string,
) reference.SettableGaugeMetric {
	return p("longest", q)
}

// onBothWithMetrics is onBoth with queues that have metrics.
func onBothWithMetrics(t *testing.T, f func(t *testing.T, q queue, r *recorder)) {
	var r *recorder
	onEach(t, func() queue {
		r = newRecorder()
		return ours(workqueue.Config[string]{Metrics: r.metrics("q")})
	}, func() queue {
		r = newRecorder()
		return theirs(workqueue.Config[string]{}, provider[metric](r.metric))
	}, func(t *testing.T, impl string, q queue) { f(t, q, r) })
}

// The metrics of one item from Add to Done. It has waited since its first Add, however often it was
// added afterwards: while it was queued, and while a worker had it.
func TestMetrics(t *testing.T) {
	onBothWithMetrics(t, func(t *testing.T, q queue, r *recorder) {
		is := func(name string, want float64) {
			t.Helper()
			synctest.Wait()
			assert.Equal(t, want, r.value(name, "q"), name)
		}
		q.Add("a")
		after(time.Second)
		q.Add("a") // ignored: it waits already
		is("adds", 1)
		is("depth", 1)

		after(2 * time.Second)
		assert.Equal(t, "a", next(q))
		is("latency", 3)
		is("depth", 0)

		q.Add("a") // to be worked on again: counts from here
		is("adds", 2)
		is("depth", 1)

		q.Add("b")
		assert.Equal(t, "b", next(q))
		after(2*time.Second + 100*time.Millisecond)
		q.Add("a")
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
			if reflect.ValueOf(all).Field(field).IsNil() {
				return // it is for a Fair
			}
			reflect.ValueOf(&one).Elem().Field(field).Set(reflect.ValueOf(all).Field(field))
			q := workqueue.NewTypedDelayingQueue(workqueue.Config[string]{Metrics: one})
			q.Add("a")
			q.Get()
			q.AddAfter("b", time.Second)
			after(time.Second)
			q.Done("a")
			q.ShutDown()
			want := map[string]int{"Unfinished": 2, "Waiting": 2}[fields.Field(field).Name]
			assert.Len(t, r.values, max(1, want), fields.Field(field).Name)
		})
	}
}

// Each queue calls Released once, also a delaying queue, which contains another queue. One that
// drains calls it when it is drained.
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
		plain.Add("a")
		item, _ := plain.Get()
		drained := drain(plain)
		assert.False(t, drained())
		assert.Empty(t, r.values["plain/released"])
		plain.Done(item)
		assert.True(t, drained())
		for _, q := range []workqueue.TypedInterface[string]{plain, delaying, around} {
			q.ShutDown()
			q.ShutDownWithDrain()
			q.ShutDown()
		}
		for _, name := range []string{"plain", "delaying", "inner", "around"} {
			assert.EqualValues(t, 1, r.value("released", name), name)
		}
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
