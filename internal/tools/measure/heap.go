// SPDX-License-Identifier: Apache-2.0

// Package measure measures the memory that a benchmark's data takes.
//
// Live is the reachable part of the heap, without garbage. Live and Peak change the pace of the
// garbage collector, so call them in a separate pass and not in timed code.
//
// Goroutines: one in Peak and one in HeapInUse, until f has returned. Locking: none.
package measure

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// bytes that the last garbage collection found reachable
	foundLive = "/gc/heap/live:bytes"
	// bytes of reachable objects and of garbage that is not swept yet
	inUse = "/memory/classes/heap/objects:bytes"
)

// Live returns the bytes of all reachable objects.
func Live() int64 {
	runtime.GC()
	runtime.GC() // memory held by finalizers and sync.Pools
	return read(foundLive)
}

// Peak calls f and returns the most bytes that a garbage collection found reachable meanwhile or
// right after. A collection starts whenever the heap has grown by a tenth, so a higher peak is
// missed by at most that much. Memory that is allocated during a collection counts as reachable:
// for a fast allocator the result is too high.
func Peak(f func()) int64 {
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	runtime.GC()
	return most(foundLive, func() {
		f()
		runtime.GC()
	})
}

// HeapInUse calls f and returns the most bytes that reachable objects and garbage took together,
// sampled every 5 ms. The share of garbage depends on GOGC.
func HeapInUse(f func()) int64 {
	return most(inUse, f)
}

// most is the largest value that the metric has while f runs.
func most(metric string, f func()) int64 {
	done, result := make(chan struct{}), make(chan int64)
	go func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		peak := read(metric)
		for {
			select {
			case <-tick.C:
				peak = max(peak, read(metric))
			case <-done:
				result <- max(peak, read(metric))
				return
			}
		}
	}()
	f()
	close(done)
	return <-result
}

func read(metric string) int64 {
	sample := []metrics.Sample{{Name: metric}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}
