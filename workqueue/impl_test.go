// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	reference "k8s.io/client-go/util/workqueue"

	"example.com/informerstack/internal/tools/narrate"
	"example.com/informerstack/internal/tools/transcript"
	"example.com/informerstack/workqueue"
)

// Ours fit where client-go's are asked for, and the other way round.
var (
	_ reference.TypedInterface[string]             = (*workqueue.Typed[string])(nil)
	_ reference.TypedDelayingInterface[string]     = (*workqueue.TypedDelayingQueue[string])(nil)
	_ reference.TypedRateLimitingInterface[string] = (*workqueue.TypedRateLimitingQueue[string])(
		nil,
	)
	//lint:ignore SA1019 the deprecated names are still asked for
	_ reference.Interface = (*workqueue.Typed[any])(nil)
	//lint:ignore SA1019 as above
	_ reference.DelayingInterface = (*workqueue.TypedDelayingQueue[any])(nil)
	//lint:ignore SA1019 as above
	_ reference.RateLimitingInterface    = (*workqueue.TypedRateLimitingQueue[any])(nil)
	_ reference.Queue[string]            = workqueue.Queue[string](nil)
	_ reference.TypedRateLimiter[string] = workqueue.TypedRateLimiter[string](nil)

	_ workqueue.ContextInterface[string]  = (*workqueue.Typed[string])(nil)
	_ workqueue.ContextInterface[string]  = (*workqueue.TypedDelayingQueue[string])(nil)
	_ workqueue.ExtendedInterface[string] = (*workqueue.TypedRateLimitingQueue[string])(nil)

	_ workqueue.TypedInterface[string]             = (*reference.Typed[string])(nil)
	_ workqueue.TypedDelayingInterface[string]     = reference.TypedDelayingInterface[string](nil)
	_ workqueue.TypedRateLimitingInterface[string] = reference.TypedRateLimitingInterface[string](
		nil,
	)
	_ workqueue.TypedRateLimiter[string] = reference.TypedRateLimiter[string](nil)
	_ workqueue.Queue[string]            = reference.Queue[string](nil)
)

// queue is what the shared tests run on, with an exponential limiter from 1s to 1m.
type queue = workqueue.TypedRateLimitingInterface[string]

const clientGo = "client-go"

var impls = []struct {
	name string
	make func() queue
}{
	{transcript.Ours, func() queue {
		return workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](
				time.Second,
				time.Minute,
			),
			workqueue.Config[string]{},
		)
	}},
	{clientGo, func() queue {
		return reference.NewTypedRateLimitingQueue(
			reference.NewTypedItemExponentialFailureRateLimiter[string](time.Second, time.Minute))
	}},
}

// onBoth runs f on a queue of ours and on one of client-go's, each in a bubble of fake time.
// Afterwards the queue is shut down, and no goroutine may be left.
func onBoth(t *testing.T, f func(t *testing.T, impl string, q queue)) {
	for _, impl := range impls {
		t.Run("impl="+impl.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := impl.make()
				defer q.ShutDown()
				f(t, impl.name, narrateQueue(narrate.New(t), q))
				checkLaws(t, q)
			})
		})
	}
}

func checkLaws(t testing.TB, q any) {
	t.Helper()
	if n, ok := q.(narrated); ok {
		q = n.queue
	}
	if q, ok := q.(interface{ CheckLaws(testing.TB) }); ok {
		q.CheckLaws(t)
	}
}

// next is the item that Get returns, "nothing" where Get would block and "shutdown" if the worker
// should end.
func next(q queue) string {
	synctest.Wait()
	if q.Len() == 0 && !q.ShuttingDown() {
		if n, ok := q.(narrated); ok {
			n.log.Event("worker", "Get would wait")
		}
		return "nothing"
	}
	item, shutdown := q.Get()
	if shutdown {
		return "shutdown"
	}
	return item
}

// nextAll gets all that is queued, without Done.
func nextAll(q queue) string {
	var items []string
	for synctest.Wait(); q.Len() > 0; synctest.Wait() {
		items = append(items, next(q))
	}
	return strings.Join(items, " ")
}

// after lets d pass and due items join the queue.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
