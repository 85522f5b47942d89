// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"context"
	"sync"
	"sync/atomic"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// DoWorkPieceFunc does the piece of work that has this number.
type DoWorkPieceFunc func(piece int)

type options struct {
	chunkSize int
}

// Options change how ParallelizeUntil works.
type Options func(*options)

// WithChunkSize makes a worker take c pieces at a time, in order, which is faster if there are many
// small pieces. Less than 1 counts as 1.
func WithChunkSize(c int) func(*options) {
	return func(o *options) { o.chunkSize = c }
}

// ParallelizeUntil calls doWorkPiece for every number from 0 to pieces-1, on up to workers
// goroutines, and returns when all of them have ended. After the end of ctx no further piece
// begins. A nil ctx does not end.
//
// A panic of doWorkPiece goes to the crash handlers of k8s.io/apimachinery, which by default end
// the process. If they let it live, that goroutine ends without the rest of its chunk, and the
// others continue.
func ParallelizeUntil(
	ctx context.Context, workers, pieces int, doWorkPiece DoWorkPieceFunc, opts ...Options,
) {
	o := options{}
	for _, opt := range opts {
		opt(&o)
	}
	if ctx == nil {
		ctx = context.Background()
	}
	chunkSize := max(o.chunkSize, 1)
	chunks := pieces / chunkSize
	if pieces%chunkSize > 0 {
		chunks++
	}

	var taken atomic.Int64 // chunks
	var running sync.WaitGroup
	for range min(workers, chunks) {
		running.Go(func() {
			defer utilruntime.HandleCrashWithContext(ctx)
			for {
				chunk := int(taken.Add(1)) - 1
				if chunk >= chunks {
					return
				}
				start := chunk * chunkSize
				for piece := start; piece < pieces && piece-start < chunkSize; piece++ {
					if ctx.Err() != nil {
						return
					}
					doWorkPiece(piece)
				}
			}
		})
	}
	running.Wait()
}
