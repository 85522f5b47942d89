// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"strconv"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	reference "k8s.io/client-go/util/workqueue"

	"example.com/informerstack/workqueue"
)

// theirProvider gives client-go's queue the same metrics.
type theirProvider struct{ ours workqueue.MetricsProvider }

func (p theirProvider) NewDepthMetric(name string) reference.GaugeMetric {
	return p.ours.NewDepthMetric(name)
}
func (p theirProvider) NewAddsMetric(name string) reference.CounterMetric {
	return p.ours.NewAddsMetric(name)
}
func (p theirProvider) NewLatencyMetric(name string) reference.HistogramMetric {
	return p.ours.NewLatencyMetric(name)
}
func (p theirProvider) NewWorkDurationMetric(name string) reference.HistogramMetric {
	return p.ours.NewWorkDurationMetric(name)
}
func (p theirProvider) NewUnfinishedWorkSecondsMetric(name string) reference.SettableGaugeMetric {
	return p.ours.NewUnfinishedWorkSecondsMetric(name)
}
func (p theirProvider) NewLongestRunningProcessorSecondsMetric(name string) reference.SettableGaugeMetric {
	return p.ours.NewLongestRunningProcessorSecondsMetric(name)
}
func (p theirProvider) NewRetriesMetric(name string) reference.CounterMetric {
	return p.ours.NewRetriesMetric(name)
}

type queue = workqueue.TypedInterface[string]

// benchQueues runs f on a queue of ours and one of client-go's, both with the same Prometheus metrics.
func benchQueues(b *testing.B, f func(b *testing.B, q queue)) {
	for _, impl := range []struct {
		name string
		make func(workqueue.MetricsProvider) queue
	}{
		{"ours", func(p workqueue.MetricsProvider) queue {
			return workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[string]{Name: "bench", MetricsProvider: p})
		}},
		{"client-go", func(p workqueue.MetricsProvider) queue {
			return reference.NewTypedWithConfig(reference.TypedQueueConfig[string]{Name: "bench", MetricsProvider: theirProvider{p}})
		}},
	} {
		b.Run("impl="+impl.name, func(b *testing.B) {
			b.ReportAllocs()
			m, err := New(prometheus.NewRegistry())
			if err != nil {
				b.Fatal(err)
			}
			q := impl.make(m.Workqueue())
			defer q.ShutDown()
			f(b, q)
		})
	}
}

func benchKeys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = "namespace-" + strconv.Itoa(i%97) + "/name-" + strconv.Itoa(i)
	}
	return keys
}

// One goroutine adds a key, gets it and is done with it; metrics are on.
func BenchmarkWorkqueueWithMetrics(b *testing.B) {
	keys := benchKeys(1 << 12)
	benchQueues(b, func(b *testing.B, q queue) {
		for i := 0; b.Loop(); i++ {
			q.Add(keys[i%len(keys)])
			item, _ := q.Get()
			q.Done(item)
		}
	})
}

// 4 adders, 4 workers; metrics are on. One op is a key on its way from Add to Done.
func BenchmarkWorkqueueWithMetrics_Adders4Workers4(b *testing.B) {
	benchQueues(b, func(b *testing.B, q queue) {
		const adders, workers = 4, 4
		room, start := make(chan struct{}, 1000), make(chan struct{})
		var adding, working sync.WaitGroup
		for range workers {
			working.Go(func() {
				for {
					item, shutdown := q.Get()
					if shutdown {
						return
					}
					q.Done(item)
					<-room
				}
			})
		}
		for adder := range adders {
			keys := make([]string, b.N/adders+1)
			for i := range keys {
				keys[i] = strconv.Itoa(adder) + "/" + strconv.Itoa(i)
			}
			adding.Go(func() {
				<-start
				for _, key := range keys {
					room <- struct{}{}
					q.Add(key)
				}
			})
		}
		b.ResetTimer()
		close(start)
		adding.Wait()
		q.ShutDown()
		working.Wait()
	})
}

// One scrape of 100 queues. client-go has nothing to be scraped.
func BenchmarkScrape_Queues100(b *testing.B) {
	b.Run("impl=ours", func(b *testing.B) {
		registry := prometheus.NewRegistry()
		m, err := New(registry)
		if err != nil {
			b.Fatal(err)
		}
		for i := range 100 {
			q := newQueue(m, "queue-"+strconv.Itoa(i))
			defer q.ShutDown()
			q.Add("a")
		}
		for b.Loop() {
			if _, err := registry.Gather(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
