// SPDX-License-Identifier: Apache-2.0

package trace_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	reference "k8s.io/client-go/util/workqueue"

	"example.com/informerstack/observe/trace"
	"example.com/informerstack/workqueue"
)

// A traced queue behaves like the queue: no method is lost in the decorator but those for the
// queue's owner, which are in no interface.
func TestRateLimitingQueue_KeepsEveryMethod(t *testing.T) {
	var whats []string
	sink := func(e trace.Event) { whats = append(whats, e.What) }
	queue := workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](
			time.Hour,
			time.Hour,
		),
		workqueue.Config[string]{},
	)
	defer queue.ShutDown()
	traced := trace.RateLimitingQueue(queue, sink)
	owners := []string{"Due", "Reschedule", "Finish", "HandBack"}
	for method := range reflect.TypeOf(queue).Methods() {
		if slices.Contains(owners, method.Name) {
			continue
		}
		_, ok := reflect.TypeOf(traced).MethodByName(method.Name)
		assert.True(t, ok, method.Name)
	}

	traced.AddRateLimited("a")
	extended := traced.(workqueue.ExtendedInterface[string])
	assert.Equal(t, 1, extended.Snapshot().Limited)
	assert.True(t, extended.CancelDelayed("a"))
	assert.False(t, extended.CancelDelayed("a"))
	assert.Empty(t, queue.Snapshot().Waiting)
	assert.Equal(t, []string{"AddRateLimited", "CancelDelayed"}, whats)
}

// A queue of client-go lacks methods, and so does the traced queue: a controller can see that.
func TestRateLimitingQueue_OfClientGo(t *testing.T) {
	queue := reference.NewTypedRateLimitingQueue(
		reference.NewTypedItemExponentialFailureRateLimiter[string](time.Hour, time.Hour))
	defer queue.ShutDown()
	traced := trace.RateLimitingQueue(queue, func(trace.Event) {})
	traced.AddRateLimited("a")
	assert.Equal(t, 1, traced.NumRequeues("a"))
	_, extended := traced.(workqueue.ContextInterface[string])
	assert.False(t, extended)
}

// The new queue also traces the delay that the limiter decided, and shows what the limiter holds.
func TestNewRateLimitingQueue_TracesTheDelay(t *testing.T) {
	for _, limiter := range []workqueue.TypedRateLimiter[string]{
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Hour, 9*time.Hour),
		workqueue.NewTypedErrorTypeRateLimiter[string](
			workqueue.ErrorDelays{BaseDelay: time.Hour, MaxDelay: 9 * time.Hour}),
	} {
		var lines []string
		queue := trace.NewRateLimitingQueue(limiter, workqueue.Config[string]{},
			func(e trace.Event) { lines = append(lines, e.What+" "+e.Key+" "+e.Detail) })
		defer queue.ShutDown()
		queue.AddRateLimited("a")
		queue.(workqueue.ExtendedInterface[string]).AddFailed("a", errors.New("no"))
		assert.Equal(t, []string{
			"AddRateLimited a in 1h0m0s, failure 1", "AddRateLimited a in 2h0m0s, failure 2",
		}, lines)
		snapshot := queue.(workqueue.ExtendedInterface[string]).Snapshot()
		assert.Equal(t, 1, snapshot.Limited)
		assert.Equal(t, 2, snapshot.Waiting[0].Failures)
	}
}

// Priorities reach the queue below, and a worker that asks for them is traced, too.
func TestRateLimitingQueue_Priorities(t *testing.T) {
	var lines []string
	fair := workqueue.NewFair(workqueue.FairConfig[string]{}, workqueue.Config[string]{})
	queue := trace.RateLimitingQueue(workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Hour, time.Hour),
		workqueue.Config[string]{Queue: fair}),
		func(e trace.Event) { lines = append(lines, e.What+" "+e.Key+" "+e.Detail) })
	defer queue.ShutDown()
	priorities := queue.(workqueue.PriorityInterface[string])
	priorities.AddWithOpts(workqueue.AddOpts{Priority: -100}, "a")
	item, priority, _ := priorities.GetWithPriority()
	assert.Equal(t, "a", item)
	assert.Equal(t, -100, priority)
	assert.Equal(t, -100, priorities.TakenPriority("a"))
	priorities.AddWithOpts(workqueue.AddOpts{RateLimited: true, Priority: -100}, "a")
	priorities.AddWithOpts(workqueue.AddOpts{After: time.Minute, Priority: 5}, "b")
	assert.Equal(t, []string{"Add a priority -100", "Get a ", "AddRateLimited a failure 1",
		"AddAfter b 1m0s, priority 5"}, lines)
	assert.Equal(t, map[string]int{"a": -100, "b": 5},
		queue.(workqueue.ExtendedInterface[string]).Snapshot().Priorities)
}
