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

// full is a queue that panics in Add.
type full struct{ queue }

func (full) Add(any) { panic("full") }

// If an owner's queue panics when a due item is added, the crash handlers get the panic, with the
// queue's logger. After that client-go adds no other item; ours continues.
func TestDifference_PanicOfTheOwnersQueue(t *testing.T) {
	reallyCrash, handlers := utilruntime.ReallyCrash, utilruntime.PanicHandlers
	defer func() { utilruntime.ReallyCrash, utilruntime.PanicHandlers = reallyCrash, handlers }()
	utilruntime.ReallyCrash = false

	logger := ktesting.NewLogger(t, ktesting.DefaultConfig)
	for impl, construct := range map[string]func() workqueue.DelayingInterface{
		ours: func() workqueue.DelayingInterface {
			return workqueue.NewTypedDelayingQueueWithConfig(
				workqueue.TypedDelayingQueueConfig[any]{
					Logger: &logger, Queue: full{workqueue.NewTyped[any]()}})
		},
		clientGo: func() workqueue.DelayingInterface {
			return reference.NewTypedDelayingQueueWithConfig(
				reference.TypedDelayingQueueConfig[any]{
					Logger: &logger, Queue: full{reference.NewTyped[any]()}})
		},
	} {
		t.Run("impl="+impl, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				panics := make(chan any, 10)
				utilruntime.PanicHandlers = []func(context.Context, any){
					func(ctx context.Context, r any) {
						assert.Equal(t, logger, klog.FromContext(ctx))
						panics <- r
					},
				}
				q := construct()
				q.AddAfter("a", time.Minute)
				q.AddAfter("b", time.Hour)
				time.Sleep(2 * time.Hour)
				synctest.Wait()
				assert.Len(t, panics, map[string]int{ours: 2, clientGo: 1}[impl])
				assert.Equal(t, "full", <-panics)
				q.ShutDown()
			})
		})
	}
}
