// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"example.com/informerstack/workqueue"
)

// brokenQueue panics when "bad" is added.
type brokenQueue struct{ *workqueue.Typed[string] }

func (q brokenQueue) Add(item string) {
	if item == "bad" {
		panic(item)
	}
	q.Typed.Add(item)
}

// If an owner's queue panics when a due item is added, the crash handlers get the panic. If they
// let the process live, the other items are added, and ShutDown does not hang.
func TestDelaying_OwnQueueThatPanics(t *testing.T) {
	reallyCrash, handlers := utilruntime.ReallyCrash, utilruntime.PanicHandlers
	defer func() { utilruntime.ReallyCrash, utilruntime.PanicHandlers = reallyCrash, handlers }()
	utilruntime.ReallyCrash = false
	synctest.Test(t, func(t *testing.T) {
		panics := make(chan any, 10)
		utilruntime.PanicHandlers = []func(context.Context, any){
			func(_ context.Context, r any) { panics <- r },
		}
		q := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[string]{
			Queue: brokenQueue{workqueue.NewTyped[string]()},
		})
		q.AddAfter("bad", time.Minute)
		q.AddAfter("same time", time.Minute)
		q.AddAfter("later", time.Hour)
		after(time.Minute)
		assert.Equal(t, "bad", <-panics)
		assert.Equal(t, 1, q.Len())
		q.CheckLaws(t)
		after(time.Hour)
		assert.Equal(t, 2, q.Len())
		assert.Empty(t, panics)
		q.ShutDown()
	})
}
