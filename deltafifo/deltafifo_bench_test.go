// SPDX-License-Identifier: Apache-2.0

package deltafifo

import (
	"fmt"
	"testing"

	"k8s.io/client-go/tools/cache"
)

// benchQueue is a queue with a consumer that does nothing.
type benchQueue struct {
	add      func(any) error
	replace  func([]any, string) error
	pop      func()
	popBatch func() int // returns how many deltas it took
}

func newBenchDeltaFIFO(impl string) benchQueue {
	process := func(any, bool) error { return nil }
	if impl == ours {
		q := NewDeltaFIFO(Options{EmitDeltaTypeReplaced: true})
		return benchQueue{add: q.Add, replace: q.Replace, pop: func() { q.Pop(process) }}
	}
	q := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{EmitDeltaTypeReplaced: true})
	return benchQueue{add: q.Add, replace: q.Replace, pop: func() { q.Pop(process) }}
}

func newBenchRealFIFO(impl string) benchQueue {
	n := 0
	single := func(any, bool) error { n = 1; return nil }
	if impl == ours {
		q := NewRealFIFO(Options{AtomicEvents: true, UnlockWhileProcessing: true})
		batch := func(deltas []Delta, _ bool) error { n = len(deltas); return nil }
		return benchQueue{add: q.Add, popBatch: func() int { q.PopBatch(batch, single); return n }}
	}
	q := cache.NewRealFIFOWithOptions(cache.RealFIFOOptions{
		AtomicEvents: true, UnlockWhileProcessing: true,
	})
	batch := func(deltas []cache.Delta, _ bool) error { n = len(deltas); return nil }
	return benchQueue{add: q.Add, popBatch: func() int { q.PopBatch(batch, single); return n }}
}

func benchObjects(n int) []any {
	objs := make([]any, n)
	for i := range objs {
		objs[i] = object(fmt.Sprintf("namespace-%d/object-%d", i%10, i), "1")
	}
	return objs
}

// BenchmarkDeltaFIFO_AddPop adds objects and then pops them all: one key, or many keys that are
// queued together.
func BenchmarkDeltaFIFO_AddPop(b *testing.B) {
	for _, keys := range []int{1, 8, 10000} {
		objs := benchObjects(keys)
		for _, impl := range []string{ours, clientGo} {
			b.Run(fmt.Sprintf("keys=%d/impl=%s", keys, impl), func(b *testing.B) {
				q := newBenchDeltaFIFO(impl)
				b.ReportAllocs()
				for i := 0; i < b.N; i += keys {
					for _, obj := range objs {
						q.add(obj)
					}
					for range objs {
						q.pop()
					}
				}
			})
		}
	}
}

// BenchmarkDeltaFIFO_Update8 adds eight deltas of one key and pops them.
func BenchmarkDeltaFIFO_Update8(b *testing.B) {
	obj := benchObjects(1)[0]
	for _, impl := range []string{ours, clientGo} {
		b.Run("impl="+impl, func(b *testing.B) {
			q := newBenchDeltaFIFO(impl)
			b.ReportAllocs()
			for b.Loop() {
				for range 8 {
					q.add(obj)
				}
				q.pop()
			}
		})
	}
}

// BenchmarkDeltaFIFO_Replace replaces an empty queue by 50,000 objects, and pops them.
func BenchmarkDeltaFIFO_Replace(b *testing.B) {
	objs := benchObjects(50000)
	for _, impl := range []string{ours, clientGo} {
		b.Run("impl="+impl, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				q := newBenchDeltaFIFO(impl)
				q.replace(objs, "1")
				for range objs {
					q.pop()
				}
			}
		})
	}
}

// BenchmarkRealFIFO_AddPopBatch adds objects of different keys and pops them in batches.
func BenchmarkRealFIFO_AddPopBatch(b *testing.B) {
	for _, keys := range []int{1, 10, 1000} {
		objs := benchObjects(keys)
		for _, impl := range []string{ours, clientGo} {
			b.Run(fmt.Sprintf("keys=%d/impl=%s", keys, impl), func(b *testing.B) {
				q := newBenchRealFIFO(impl)
				b.ReportAllocs()
				for i := 0; i < b.N; i += keys {
					for _, obj := range objs {
						q.add(obj)
					}
					for popped := 0; popped < keys; {
						popped += q.popBatch()
					}
				}
			})
		}
	}
}
