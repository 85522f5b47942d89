// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"strconv"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	reference "k8s.io/client-go/util/workqueue"
	_ "k8s.io/component-base/metrics/prometheus/workqueue" // gives client-go's queues their metrics

	"example.com/informerstack/workqueue"
)

type queue = workqueue.TypedInterface[string]

// benchQueues runs f on a queue of ours with our metrics, and on one of client-go's with
// component-base's, which are those of Kubernetes' own binaries.
func benchQueues(b *testing.B, f func(b *testing.B, q queue)) {
	b.Run("impl=ours", func(b *testing.B) {
		m, err := New(prometheus.NewRegistry())
		if err != nil {
			b.Fatal(err)
		}
		benchQueue(b, workqueue.NewTyped(workqueue.Config[string]{Metrics: m.Workqueue("bench")}),
			f)
	})
	b.Run("impl=client-go", func(b *testing.B) {
		benchQueue(b,
			reference.NewTypedWithConfig(reference.TypedQueueConfig[string]{Name: "bench"}), f)
	})
}

func benchQueue(b *testing.B, q queue, f func(b *testing.B, q queue)) {
	b.ReportAllocs()
	defer q.ShutDown()
	f(b, q)
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
