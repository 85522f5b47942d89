// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"context"

	"example.com/informerstack/workqueue"
)

// DoWorkPieceFunc does the piece of work that has this number.
type DoWorkPieceFunc = workqueue.DoWorkPieceFunc

type options struct {
	chunkSize int
}

// Options change how ParallelizeUntil works.
type Options func(*options)

// WithChunkSize makes a worker take c pieces at a time, in order. Less than 1 counts as 1.
func WithChunkSize(c int) func(*options) {
	return func(o *options) { o.chunkSize = c }
}

// ParallelizeUntil calls doWorkPiece for every number from 0 to pieces-1, on up to workers
// goroutines, and returns when all of those have ended. Once ctx is done no further piece begins.
func ParallelizeUntil(ctx context.Context, workers, pieces int, doWorkPiece DoWorkPieceFunc, opts ...Options) {
	var o options // of this package: nobody else can write a function of the other's
	for _, opt := range opts {
		opt(&o)
	}
	workqueue.ParallelizeUntil(ctx, workers, pieces, doWorkPiece, workqueue.WithChunkSize(o.chunkSize))
}
