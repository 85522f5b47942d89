// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	reference "k8s.io/client-go/util/workqueue"

	"example.com/informerstack/compat/workqueue"
)

// A worker processes a whole chunk: piece 1 waits for piece 0, which is slow.
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
	synctest.Test(t, func(t *testing.T) {
		var ended []int
		workqueue.ParallelizeUntil(t.Context(), 1, 3,
			func(piece int) { ended = append(ended, piece) })
		assert.Equal(t, []int{0, 1, 2}, ended)
	})
}
