// SPDX-License-Identifier: Apache-2.0

package deltafifo

import (
	"fmt"
	"testing"

	"k8s.io/client-go/tools/cache"
)

// queues are the two implementations, each with a function that pops one item.
func benchQueues(real bool) map[string]func() (add func(any) error, replace func([]any, string) error, pop func(), popBatch func() int) {
	noneKnown := &knownObjects{}
	return map[string]func() (func(any) error, func([]any, string) error, func(), func() int){
		ours: func() (func(any) error, func([]any, string) error, func(), func() int) {
			process := func(any, bool) error { return nil }
			if !real {
				q := NewDeltaFIFO(DeltaFIFOOptions{EmitDeltaTypeReplaced: true})
				return q.Add, q.Replace, func() { q.Pop(process) }, nil
			}
			q := NewRealFIFO(RealFIFOOptions{KnownObjects: noneKnown})
			return q.Add, q.Replace, func() { q.Pop(process) }, func() (n int) {
				q.PopBatch(func(batch []Delta, _ bool) error { n = len(batch); return nil },
					func(any, bool) error { n = 1; return nil })
				return n
			}
		},
		clientGo: func() (func(any) error, func([]any, string) error, func(), func() int) {
			process := func(any, bool) error { return nil }
			if !real {
				q := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{EmitDeltaTypeReplaced: true})
				return q.Add, q.Replace, func() { q.Pop(process) }, nil
			}
			q := cache.NewRealFIFOWithOptions(cache.RealFIFOOptions{KnownObjects: noneKnown})
			return q.Add, q.Replace, func() { q.Pop(process) }, func() (n int) {
				q.PopBatch(func(batch []cache.Delta, _ bool) error { n = len(batch); return nil },
					func(any, bool) error { n = 1; return nil })
				return n
			}
		},
	}
}

func benchObjects(n int) []any {
	objs := make([]any, n)
	for i := range objs {
		objs[i] = object(fmt.Sprintf("namespace-%d/object-%d", i%10, i), "1")
	}
	return objs
}

// BenchmarkDeltaFIFO_AddPop adds objects and then pops them all: one key, or many that wait together.
func BenchmarkDeltaFIFO_AddPop(b *testing.B) {
	for _, keys := range []int{1, 8, 10000} {
		objs := benchObjects(keys)
		for _, impl := range []string{ours, clientGo} {
			b.Run(fmt.Sprintf("keys=%d/impl=%s", keys, impl), func(b *testing.B) {
				add, _, pop, _ := benchQueues(false)[impl]()
				b.ReportAllocs()
				for i := 0; i < b.N; i += keys {
					for _, obj := range objs {
						add(obj)
					}
					for range objs {
						pop()
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
			add, _, pop, _ := benchQueues(false)[impl]()
			b.ReportAllocs()
			for b.Loop() {
				for range 8 {
					add(obj)
				}
				pop()
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
				_, replace, pop, _ := benchQueues(false)[impl]()
				replace(objs, "1")
				for range objs {
					pop()
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
				add, _, _, popBatch := benchQueues(true)[impl]()
				b.ReportAllocs()
				for i := 0; i < b.N; i += keys {
					for _, obj := range objs {
						add(obj)
					}
					for popped := 0; popped < keys; {
						popped += popBatch()
					}
				}
			})
		}
	}
}
