// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"strings"
	"sync/atomic"
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
	{transcript.Ours, func() queue { return ours(workqueue.Config[string]{}) }},
	{clientGo, func() queue { return theirs(workqueue.Config[string]{}, nil) }},
}

func ours(config workqueue.Config[string]) *workqueue.TypedRateLimitingQueue[string] {
	return workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second, time.Minute),
		config)
}

// theirs is a queue of client-go's with the clock, the order and the owner's queue of config.
func theirs(config workqueue.Config[string], metrics reference.MetricsProvider) queue {
	name := "" // client-go measures queues that have a name
	if metrics != nil {
		name = "q"
	}
	var below reference.TypedInterface[string] = config.Queue
	if config.Queue == nil {
		below = reference.NewTypedWithConfig(reference.TypedQueueConfig[string]{
			Name: name, MetricsProvider: metrics, Clock: config.Clock, Queue: config.Order})
	}
	delaying := reference.NewTypedDelayingQueueWithConfig(
		reference.TypedDelayingQueueConfig[string]{
			Name: name, MetricsProvider: metrics, Clock: config.Clock, Queue: below})
	return reference.NewTypedRateLimitingQueueWithConfig(
		reference.NewTypedItemExponentialFailureRateLimiter[string](time.Second, time.Minute),
		reference.TypedRateLimitingQueueConfig[string]{DelayingQueue: delaying})
}

// onEach runs f on what ours and theirs return, each in a bubble of fake time. Afterwards a queue
// is shut down, and no goroutine may be left.
func onEach[Q any](t *testing.T, ours, theirs func() Q, f func(t *testing.T, impl string, q Q)) {
	for i, construct := range []func() Q{ours, theirs} {
		impl := impls[i].name
		t.Run("impl="+impl, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := construct()
				if q, ok := any(q).(interface{ ShutDown() }); ok {
					defer q.ShutDown()
				}
				f(t, impl, q)
				checkLaws(t, q)
			})
		})
	}
}

// onBoth runs f on a queue of ours and on one of client-go's.
func onBoth(t *testing.T, f func(t *testing.T, impl string, q queue)) {
	onEach(t, impls[0].make, impls[1].make, func(t *testing.T, impl string, q queue) {
		f(t, impl, narrateQueue(narrate.New(t), q))
	})
}

// onBothWith is onBoth with a config, which is made for each queue.
func onBothWith(t *testing.T, config func() workqueue.Config[string],
	f func(t *testing.T, impl string, q queue),
) {
	onEach(t, func() queue { return ours(config()) },
		func() queue { return theirs(config(), nil) }, f)
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

// serve gets an item and is done with it.
func serve[T comparable](q workqueue.TypedInterface[T]) T {
	item, _ := q.Get()
	q.Done(item)
	return item
}

// drain calls ShutDownWithDrain, and returns a function that reports whether that has returned.
func drain(q interface{ ShutDownWithDrain() }) (drained func() bool) {
	var returned atomic.Bool
	go func() {
		q.ShutDownWithDrain()
		returned.Store(true)
	}()
	return func() bool {
		synctest.Wait()
		return returned.Load()
	}
}

// ownQueue is a queue of the owner's own. It counts its ends, and calls before, if set, in Add.
type ownQueue struct {
	workqueue.ContextInterface[string]
	before            func(item string)
	shutDowns, drains int
}

func newOwnQueue(before func(item string)) *ownQueue {
	return &ownQueue{workqueue.NewTyped(workqueue.Config[string]{}), before, 0, 0}
}

func (q *ownQueue) Add(item string) {
	if q.before != nil {
		q.before(item)
	}
	q.ContextInterface.Add(item)
}

func (q *ownQueue) ShutDown() {
	q.shutDowns++
	q.ContextInterface.ShutDown()
}

func (q *ownQueue) ShutDownWithDrain() {
	q.drains++
	q.ContextInterface.ShutDownWithDrain()
}
