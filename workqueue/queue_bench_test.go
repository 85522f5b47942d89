// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"math"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	reference "k8s.io/client-go/util/workqueue"

	"example.com/informerstack/workqueue"
)

// bench runs f on a queue that ours makes, and on one that theirs makes.
func bench[Q interface{ ShutDown() }](
	b *testing.B,
	ours, theirs func() Q,
	f func(b *testing.B, q Q),
) {
	for _, impl := range []struct {
		name string
		make func() Q
	}{{"ours", ours}, {"client-go", theirs}} {
		b.Run("impl="+impl.name, func(b *testing.B) {
			b.ReportAllocs()
			q := impl.make()
			defer q.ShutDown()
			f(b, q)
		})
	}
}

type plain = workqueue.TypedInterface[string]

func oursPlain() plain   { return workqueue.NewTyped(workqueue.Config[string]{}) }
func theirsPlain() plain { return reference.NewTyped[string]() }

func keys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = "namespace-" + strconv.Itoa(i%97) + "/name-" + strconv.Itoa(i)
	}
	return keys
}

// One goroutine adds a key, gets it and is done with it.
func BenchmarkAddGetDone(b *testing.B) {
	keys := keys(1 << 12)
	bench(b, oursPlain, theirsPlain, func(b *testing.B, q plain) {
		for i := 0; b.Loop(); i++ {
			q.Add(keys[i%len(keys)])
			item, _ := q.Get()
			q.Done(item)
		}
	})
}

// One goroutine adds 1,000 keys, then gets them and is done with them: one op is a key.
func BenchmarkAddGetDone_Backlog(b *testing.B) {
	keys := keys(1000)
	bench(b, oursPlain, theirsPlain, func(b *testing.B, q plain) { addGetDone(b, q, keys) })
}

func addGetDone(b *testing.B, q plain, keys []string) {
	for n := 0; n < b.N; n += len(keys) {
		for _, key := range keys {
			q.Add(key)
		}
		for range keys {
			item, _ := q.Get()
			q.Done(item)
		}
	}
}

// The same with metrics, as programs usually have them. The metrics do nothing.
func BenchmarkAddGetDone_Metrics(b *testing.B) {
	keys := keys(1000)
	bench(b, func() plain {
		return workqueue.NewTyped(workqueue.Config[string]{Metrics: workqueue.Metrics{
			Adds: func() {}, Depth: func(int) {}, Latency: func(time.Duration) {},
			WorkDuration: func(time.Duration) {}, Unfinished: func(_, _ time.Duration) {},
			Retries: func() {},
		}})
	}, func() plain {
		ignores := func(_, _ string) ignored { return ignored{} }
		return reference.NewTypedWithConfig(reference.TypedQueueConfig[string]{
			Name: "q", MetricsProvider: provider[ignored](ignores),
		})
	}, func(b *testing.B, q plain) { addGetDone(b, q, keys) })
}

// ignored is a metric of client-go that does nothing.
type ignored struct{}

func (ignored) Inc()            {}
func (ignored) Dec()            {}
func (ignored) Set(float64)     {}
func (ignored) Observe(float64) {}

// 8 adders and 8 workers: one op is a key on its way from Add to Done. An adder waits when it is
// 100 keys ahead.
func BenchmarkAddGetDone_Adders8Workers8(b *testing.B) {
	benchAdders8Workers8(b, 100)
}

// 8 adders that never wait, and 8 workers: the backlog grows long.
func BenchmarkAddGetDone_Flood(b *testing.B) {
	benchAdders8Workers8(b, math.MaxInt64)
}

func benchAdders8Workers8(b *testing.B, maxAhead int64) {
	const each = 1 << 17
	keys := keys(8 * each)
	for i := range keys {
		keys[i] += "-" + strconv.Itoa(i/each)
	}
	bench(b, oursPlain, theirsPlain, func(b *testing.B, q plain) {
		var ahead [8]struct {
			atomic.Int64
			_ [56]byte // a cache line for each
		}
		var adders, workers sync.WaitGroup
		for range 8 {
			workers.Go(func() {
				for {
					item, shutdown := q.Get()
					if shutdown {
						return
					}
					q.Done(item)
					ahead[item[len(item)-1]-'0'].Add(-1)
				}
			})
		}
		for a := range 8 {
			adders.Go(func() {
				for i := range b.N / 8 {
					for ahead[a].Load() >= maxAhead {
						runtime.Gosched()
					}
					ahead[a].Add(1)
					q.Add(keys[a*each+i%each])
				}
			})
		}
		adders.Wait()
		q.ShutDown()
		workers.Wait()
	})
}

// A million items that are due in some hours: one op is all of them.
func BenchmarkAddAfter_Million(b *testing.B) {
	keys := keys(1_000_000)
	type delaying = workqueue.TypedDelayingInterface[string]
	ours := func() delaying { return workqueue.NewTypedDelayingQueue(workqueue.Config[string]{}) }
	theirs := func() delaying { return reference.NewTypedDelayingQueue[string]() }
	for _, impl := range []struct {
		name string
		make func() delaying
	}{{"ours", ours}, {"client-go", theirs}} {
		b.Run("impl="+impl.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				q := impl.make()
				for i, key := range keys {
					q.AddAfter(key, time.Hour+time.Duration(i*7919%len(keys))*time.Millisecond)
				}
				q.ShutDown()
			}
		})
	}
}

// A key fails once and is forgotten.
func BenchmarkAddRateLimitedForget(b *testing.B) {
	keys := keys(1 << 12)
	bench(b, impls[0].make, impls[1].make, func(b *testing.B, q queue) {
		for i := 0; b.Loop(); i++ {
			q.AddRateLimited(keys[i%len(keys)])
			q.Forget(keys[i%len(keys)])
		}
	})
}
