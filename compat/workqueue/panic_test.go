// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	reference "k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"example.com/informerstack/compat/workqueue"
)

// full is a queue that panics when an item joins it.
type full struct{ queue }

func (full) Add(any) { panic("full") }

// When the owner's queue panics as a due item joins it, the crash handlers are told, with the queue's logger.
func TestPanicOfTheOwnersQueue(t *testing.T) {
	reallyCrash, handlers := utilruntime.ReallyCrash, utilruntime.PanicHandlers
	defer func() { utilruntime.ReallyCrash, utilruntime.PanicHandlers = reallyCrash, handlers }()
	utilruntime.ReallyCrash = false

	logger := ktesting.NewLogger(t, ktesting.DefaultConfig)
	for impl, construct := range map[string]func() workqueue.DelayingInterface{
		ours: func() workqueue.DelayingInterface {
			return workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[any]{
				Logger: &logger, Queue: full{workqueue.NewTyped[any]()}})
		},
		clientGo: func() workqueue.DelayingInterface {
			return reference.NewTypedDelayingQueueWithConfig(reference.TypedDelayingQueueConfig[any]{
				Logger: &logger, Queue: full{reference.NewTyped[any]()}})
		},
	} {
		t.Run("impl="+impl, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				told := 0
				utilruntime.PanicHandlers = []func(context.Context, any){func(ctx context.Context, r any) {
					assert.Equal(t, "full", r)
					assert.Equal(t, logger, klog.FromContext(ctx))
					told++
				}}
				q := construct()
				q.AddAfter("a", time.Minute)
				q.AddAfter("b", time.Hour)
				time.Sleep(2 * time.Hour)
				synctest.Wait()
				assert.Equal(t, 1, told, "after the panic nothing joins")
				q.ShutDown()
			})
		})
	}
}
