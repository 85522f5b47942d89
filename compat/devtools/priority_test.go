// SPDX-License-Identifier: Apache-2.0

package devtools

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"example.com/informerstack/compat/adapt"
	"example.com/informerstack/compat/workqueue"
	"example.com/informerstack/observe/health"
	"example.com/informerstack/observe/journal"
)

// request has the shape of controller-runtime's.
type request struct{ types.NamespacedName }

type addOpts struct{ RateLimited bool }

// plainQueue is a queue with one priority, and with one item that is due in an hour.
type plainQueue struct {
	workqueue.TypedRateLimitingInterface[request]
	has request
}

func (q *plainQueue) AddWithOpts(o addOpts, items ...request) { q.has = items[0] }

func (q *plainQueue) GetWithPriority() (item request, priority int, shutdown bool) {
	return q.has, 1, false
}

func (q *plainQueue) Done(request)            {}
func (q *plainQueue) ShuttingDown() bool      { return false }
func (q *plainQueue) NumRequeues(request) int { return 1 }

func (q *plainQueue) look(
	_ []request, _ func(request, int) bool, waiting func(request, int, time.Time) bool,
) (again []request, readyTotal, waitingTotal int) {
	waiting(q.has, 1, time.Now().Add(time.Hour))
	return nil, 0, 1
}

type reconciler struct{}

func (reconciler) Reconcile(context.Context, request) (string, error) {
	return "result", errors.New("no such volume")
}

// A priority queue that a program shows is on the page, until it is collected, with the error that
// reconcile has returned.
func TestHandler_ShowsAPriorityQueue(t *testing.T) {
	requireNothingIsShown(t)
	Handler().Page() // records from now on
	inner := &plainQueue{}
	queue := adapt.ShowPriorityQueue[request, addOpts]("volumes", inner,
		journal.Inside[request, addOpts]{
			Options: func(o addOpts) (time.Duration, bool) { return 0, o.RateLimited },
			Look:    inner.look,
		})
	queue.AddWithOpts(addOpts{}, request{types.NamespacedName{Namespace: "ns", Name: "a"}})
	item, priority, _ := queue.GetWithPriority()
	assert.Equal(t, 1, priority)
	result, err := adapt.ShowErrors(reconciler{}).Reconcile(t.Context(), item)
	assert.Equal(t, "result", result)
	require.Error(t, err)
	queue.AddWithOpts(addOpts{RateLimited: true}, item)
	queue.Done(item)
	answer := Handler().Why("ns/a")
	assert.Equal(t, health.Delayed, answer.Reason)
	assert.Regexp(t, `^ns/a joins queue volumes in .*, after 1 call of AddRateLimited, the last `+
		`error .* ago: no such volume$`, answer.Sentence)
	requireNothingIsShown(t)
}
