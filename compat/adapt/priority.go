// SPDX-License-Identifier: Apache-2.0

package adapt

import (
	"context"

	"example.com/informerstack/compat/internal/found"
	"example.com/informerstack/observe/journal"
)

// ShowPriorityQueue shows a queue with priorities, such as controller-runtime's
// priorityqueue.PriorityQueue[T] with its AddOpts as O, to compat/devtools: use the result in its
// place. In a program without compat/devtools it returns queue. A controller-runtime that is built
// with "informerstack swap --devtools" calls it for each of its queues.
func ShowPriorityQueue[T comparable, O any](
	name string, queue journal.Prioritized[T, O], inside journal.Inside[T, O],
) journal.Prioritized[T, O] {
	j := found.Journal()
	if j == nil {
		return queue
	}
	shown := journal.NewPriorityQueue(j, name, queue, inside)
	found.AddQueue[T](name, shown)
	return shown
}

// Returned shows the error of a reconcile to compat/devtools. A worker calls it in its goroutine,
// before Done. A nil error and a program without compat/devtools are no-ops.
func Returned(err error) {
	if j := found.Journal(); j != nil {
		j.Returned(err)
	}
}

// Reconciler is controller-runtime's reconcile.TypedReconciler[T], with R for its Result.
type Reconciler[T comparable, R any] interface {
	Reconcile(ctx context.Context, request T) (R, error)
}

// ShowErrors returns a Reconciler that calls inner and passes its errors to Returned: no queue gets
// them from controller-runtime.
func ShowErrors[T comparable, R any](inner Reconciler[T, R]) Reconciler[T, R] {
	return reconciler[T, R]{inner}
}

type reconciler[T comparable, R any] struct{ inner Reconciler[T, R] }

// Reconcile implements Reconciler.
func (r reconciler[T, R]) Reconcile(ctx context.Context, request T) (R, error) {
	result, err := r.inner.Reconcile(ctx, request)
	Returned(err)
	return result, err
}
