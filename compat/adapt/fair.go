// SPDX-License-Identifier: Apache-2.0

package adapt

import (
	client "k8s.io/client-go/util/workqueue"

	"example.com/informerstack/compat/internal/found"
	"example.com/informerstack/compat/internal/provider"
	"example.com/informerstack/observe/journal"
	"example.com/informerstack/workqueue"
)

// NewFairQueue returns a rate-limiting queue of ours in which items have priorities, and groups of
// items take turns. It is a TypedRateLimitingInterface of client-go, too.
//
// Its metrics are those of NewQueue. A provider with NewDepthMetricWithPriority, such as
// controller-runtime's, gets the depth of each priority. One with
//
//	NewGroupsMetric(name string) func(most []workqueue.Group, all workqueue.GroupTotals)
//
// gets the groups: see workqueue.Metrics.
func NewFairQueue[T comparable](
	name string, rateLimiter client.TypedRateLimiter[T], fair workqueue.FairConfig[T],
) workqueue.PriorityInterface[T] {
	return newFairQueue(name, rateLimiter, fair, false)
}

func newFairQueue[T comparable](
	name string, rateLimiter client.TypedRateLimiter[T], fair workqueue.FairConfig[T],
	addSupersedesDelayed bool,
) workqueue.PriorityInterface[T] {
	queue := workqueue.NewTypedRateLimitingQueue(rateLimiter, workqueue.Config[T]{
		Metrics: provider.Delays(nil, name),
		Queue: workqueue.NewFair(fair, workqueue.Config[T]{
			Metrics: provider.Fair(nil, name), DrainProcessingOnly: true}),
		AddSupersedesDelayed: addSupersedesDelayed,
	})
	j := found.Journal()
	if j == nil {
		return queue
	}
	if name == "" {
		name = found.TakeName("fair queue")
	}
	shown := journal.NewRateLimitingQueue(j, name, queue)
	found.AddQueue[T](name, shown)
	return shown
}

// NewPriorityQueue returns a NewFairQueue as controller-runtime's priorityqueue.PriorityQueue[T],
// with its AddOpts as O, for controller.Options.NewQueue. options returns what an AddOpts says. As
// in controller-runtime's own queue, an Add ends an item's wait.
func NewPriorityQueue[T comparable, O any](
	name string, rateLimiter client.TypedRateLimiter[T], fair workqueue.FairConfig[T],
	options func(o O) workqueue.AddOpts,
) journal.Prioritized[T, O] {
	return priorityQueue[T, O]{newFairQueue(name, rateLimiter, fair, true), options}
}

type priorityQueue[T comparable, O any] struct {
	workqueue.PriorityInterface[T]
	options func(o O) workqueue.AddOpts
}

// AddWithOpts implements journal.Prioritized.
func (q priorityQueue[T, O]) AddWithOpts(o O, items ...T) {
	q.PriorityInterface.AddWithOpts(q.options(o), items...)
}
