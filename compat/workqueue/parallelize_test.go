// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	reference "k8s.io/client-go/util/workqueue"

	"example.com/informerstack/compat/workqueue"
)

// Every piece is done exactly once, whatever the numbers.
func TestParallelizeUntil(t *testing.T) {
	for _, pieces := range []int{0, 1, 2, 7, 100} {
		for _, workers := range []int{1, 3, 1000} {
			for _, chunkSize := range []int{-1, 0, 1, 3, 7, 1000} {
				name := fmt.Sprint(pieces, " pieces, ", workers, " workers, chunks of ", chunkSize)
				did, theirs := make([]atomic.Int32, pieces), make([]atomic.Int32, pieces)
				workqueue.ParallelizeUntil(t.Context(), workers, pieces,
					func(p int) { did[p].Add(1) }, workqueue.WithChunkSize(chunkSize))
				reference.ParallelizeUntil(t.Context(), workers, pieces,
					func(p int) { theirs[p].Add(1) }, reference.WithChunkSize(chunkSize))
				for p := range pieces {
					assert.EqualValues(t, 1, did[p].Load(), name)
					assert.EqualValues(t, 1, theirs[p].Load(), name)
				}
			}
		}
	}
}

// No more workers than asked for, and all of them.
func TestParallelizeUntil_Workers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		workqueue.ParallelizeUntil(t.Context(), 4, 20, func(int) { time.Sleep(time.Second) })
		assert.Equal(t, 5*time.Second, time.Since(start))
	})
}

// Once ctx is done no piece begins; those that run are awaited.
func TestParallelizeUntil_Cancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		start := time.Now()
		var pieces atomic.Int32
		workqueue.ParallelizeUntil(ctx, 2, 1000, func(int) {
			pieces.Add(1)
			time.Sleep(time.Second)
		}, workqueue.WithChunkSize(100))
		assert.EqualValues(t, 6, pieces.Load())
		assert.Equal(t, 3*time.Second, time.Since(start))
	})
}

func TestParallelizeUntil_NilContext(t *testing.T) {
	var pieces atomic.Int32
	//lint:ignore SA1012 client-go takes a nil context
	workqueue.ParallelizeUntil(nil, 2, 10, func(int) { pieces.Add(1) })
	assert.EqualValues(t, 10, pieces.Load())
}

// No pieces, or no workers. For a negative number client-go panics.
func TestDifference_ParallelizeUntilNegative(t *testing.T) {
	for _, n := range [][2]int{{0, 5}, {5, 0}, {-1, 5}, {5, -1}} {
		workqueue.ParallelizeUntil(t.Context(), n[0], n[1], func(int) { t.Error("called") })
	}
	assert.Panics(t, func() { reference.ParallelizeUntil(t.Context(), -1, 5, func(int) {}) })
	assert.Panics(t, func() { reference.ParallelizeUntil(t.Context(), 5, -1, func(int) {}) })
}

// A panic goes to the crash handlers. If they let the process live, the other workers continue.
func TestParallelizeUntil_Panic(t *testing.T) {
	reallyCrash, handlers := utilruntime.ReallyCrash, utilruntime.PanicHandlers
	defer func() { utilruntime.ReallyCrash, utilruntime.PanicHandlers = reallyCrash, handlers }()
	var handled, pieces atomic.Int32
	utilruntime.ReallyCrash = false
	utilruntime.PanicHandlers = []func(context.Context, any){func(_ context.Context, r any) {
		assert.Equal(t, "piece 3", r)
		handled.Add(1)
	}}
	workqueue.ParallelizeUntil(t.Context(), 2, 10, func(p int) {
		if p == 3 {
			panic("piece 3")
		}
		pieces.Add(1)
	})
	assert.EqualValues(t, 1, handled.Load())
	assert.EqualValues(t, 9, pieces.Load())
}

// A worker that takes a chunk keeps it: piece 1 waits for piece 0, which is slow.
func TestParallelizeUntil_WithChunkSize(t *testing.T) {
	for impl, parallelize := range map[string]func(do func(int)){
		ours: func(do func(int)) {
			workqueue.ParallelizeUntil(context.Background(), 2, 4, do, workqueue.WithChunkSize(2))
		},
		clientGo: func(do func(int)) {
			reference.ParallelizeUntil(context.Background(), 2, 4, do, reference.WithChunkSize(2))
		},
	} {
		t.Run("impl="+impl, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var ended []int
				parallelize(func(piece int) {
					if piece == 0 {
						time.Sleep(time.Second)
					}
					mu.Lock()
					defer mu.Unlock()
					ended = append(ended, piece)
				})
				assert.Equal(t, []int{2, 3, 0, 1}, ended)
			})
		})
	}
}

// Without options a worker takes one piece at a time.
func TestParallelizeUntil_WithoutOptions(t *testing.T) {
	var ended []int
	workqueue.ParallelizeUntil(t.Context(), 1, 3, func(p int) { ended = append(ended, p) })
	assert.Equal(t, []int{0, 1, 2}, ended)
}
