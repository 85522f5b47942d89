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

// brokenQueue panics when an item joins it.
type brokenQueue struct{ *workqueue.Typed[string] }

func (brokenQueue) Add(string) { panic("broken") }

// When the owner's queue panics as a due item joins it, the crash handlers are told. Where they let the process live, no
// other item joins, and ShutDown does not hang.
func TestDelaying_OwnQueueThatPanics(t *testing.T) {
	reallyCrash, handlers := utilruntime.ReallyCrash, utilruntime.PanicHandlers
	defer func() { utilruntime.ReallyCrash, utilruntime.PanicHandlers = reallyCrash, handlers }()
	utilruntime.ReallyCrash = false
	synctest.Test(t, func(t *testing.T) {
		var told []any
		utilruntime.PanicHandlers = []func(context.Context, any){func(_ context.Context, r any) { told = append(told, r) }}
		q := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[string]{
			Queue: brokenQueue{workqueue.NewTyped[string]()},
		})
		q.AddAfter("a", time.Minute)
		q.AddAfter("b", time.Hour)
		after(2 * time.Hour)
		assert.Equal(t, []any{"broken"}, told)
		q.ShutDown()
	})
}
