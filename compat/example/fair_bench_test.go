// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	reference "k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"example.com/informerstack/workqueue"
)

// Queues for many tenants: a Fair beside the queues without groups.
var tenantQueues = []struct {
	name string
	make func() workqueue.TypedInterface[string]
}{
	{"fair", func() workqueue.TypedInterface[string] {
		return workqueue.NewFair(workqueue.FairConfig[string]{Group: tenant},
			workqueue.Config[string]{})
	}},
	{"ours", func() workqueue.TypedInterface[string] {
		return workqueue.NewTyped(workqueue.Config[string]{})
	}},
	{"client-go", func() workqueue.TypedInterface[string] { return reference.NewTyped[string]() }},
	{"controller-runtime", func() workqueue.TypedInterface[string] {
		return priorityqueue.New[string]("bench")
	}},
}

// tenant is the namespace of a key.
func tenant(key string) string {
	namespace, _, _ := strings.Cut(key, "/")
	return namespace
}

// A million keys of 10,000 tenants are added, and 8 workers take them. One op is a key; B/key is
// the memory of a key that is queued.
func BenchmarkTenants(b *testing.B) {
	const keys, tenants = 1_000_000, 10_000
	all := make([]string, keys)
	for i := range all {
		all[i] = "tenant-" + strconv.Itoa(i%tenants) + "/" + strconv.Itoa(i)
	}
	for _, impl := range tenantQueues {
		b.Run("impl="+impl.name, func(b *testing.B) {
			var memory uint64
			for b.Loop() {
				b.StopTimer()
				before := heap()
				b.StartTimer()
				q := impl.make()
				for _, key := range all {
					q.Add(key)
				}
				b.StopTimer()
				memory += heap() - before
				b.StartTimer()
				var workers sync.WaitGroup
				for range 8 {
					workers.Go(func() {
						for range keys / 8 {
							key, _ := q.Get()
							q.Done(key)
						}
					})
				}
				workers.Wait()
				q.ShutDown()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/keys, "ns/key")
			b.ReportMetric(float64(memory)/float64(b.N)/keys, "B/key")
		})
	}
}

func heap() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
