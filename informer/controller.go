// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"example.com/informerstack/deltafifo"
	"example.com/informerstack/reflector"
)

// restartProcessing is the pause before processing resumes after a panic that did not end the
// process.
const restartProcessing = time.Second

var errProcessPanicked = errors.New("processing a change panicked")

// Controller is the loop of an informer: a reflector fills a queue, and a process function consumes
// it. The first three fields are required.
//
// Source: tools/cache/controller.go Controller
type Controller struct {
	// Reflector lists and watches. Its store is Queue.
	Reflector *reflector.Reflector
	// Queue holds the changes between Reflector and Process.
	Queue deltafifo.Queue
	// Process consumes the items of Queue, in one goroutine. Its error is logged; the item is gone.
	Process deltafifo.PopProcessFunc
	// ProcessBatch consumes batches. It is used if it is set and Queue is a
	// deltafifo.QueueWithBatch.
	ProcessBatch deltafifo.ProcessBatchFunc
	// RelistLost makes Reflector list again when a process function failed or panicked.
	RelistLost bool
}

// Run lists, watches and processes until ctx is done. It returns when the reflector and a running
// process function have ended. Items that are still queued are not processed. It runs once.
func (c *Controller) Run(ctx context.Context) {
	// A panic of the process function passes through here. A deferred wait for the reflector would
	// block for ever and hide the panic.
	defer utilruntime.HandleCrashWithContext(ctx)
	context.AfterFunc(ctx, c.Queue.Close) // wakes Pop
	reflectorDone := make(chan struct{})
	go func() {
		defer close(reflectorDone)
		c.Reflector.Run(ctx)
	}()
	wait.UntilWithContext(ctx, c.processLoop, restartProcessing)
	<-reflectorDone
}

// processLoop pops and processes until ctx is done, or the queue is closed and empty.
func (c *Controller) processLoop(ctx context.Context) {
	batches, _ := c.Queue.(deltafifo.QueueWithBatch)
	if c.ProcessBatch == nil {
		batches = nil
	}
	panicked := true
	defer func() {
		if panicked {
			c.relist(errProcessPanicked)
		}
	}()
	for ctx.Err() == nil {
		var err error
		if batches != nil {
			err = batches.PopBatch(c.ProcessBatch, c.Process)
		} else {
			_, err = c.Queue.Pop(c.Process)
		}
		if errors.Is(err, deltafifo.ErrFIFOClosed) {
			break
		}
		if err != nil {
			klog.FromContext(ctx).Error(err, "Processing a change failed")
			c.relist(err)
		}
	}
	panicked = false
}

// relist asks for a relist because a change was lost. It is called after the queue has noted the
// failure: a list that arrives before that does not repair it.
func (c *Controller) relist(err error) {
	if c.RelistLost {
		c.Reflector.Relist(err)
	}
}
