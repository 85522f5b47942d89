// SPDX-License-Identifier: Apache-2.0

package trace_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	reference "k8s.io/client-go/util/workqueue"

	"example.com/informerstack/trace"
	"example.com/informerstack/workqueue"
)

// A traced queue behaves like the queue: no method is lost in the decorator.
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
	for method := range reflect.TypeOf(queue).Methods() {
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
