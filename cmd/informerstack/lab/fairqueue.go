// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"strings"

	"example.com/informerstack/internal/helpers/printable"
	"example.com/informerstack/workqueue"
)

// LowPriority is for controller.Options.LowPriority. With Settings.Fair, keys of the initial list
// and of resyncs have it.
const LowPriority = -100

// fairBelow is a plainQueue with priorities, in which the namespaces take turns.
type fairBelow struct {
	*workqueue.Fair[string]
	ready *signal
}

func newFairBelow(config workqueue.Config[string], ready *signal) fairBelow {
	return fairBelow{workqueue.NewFair(workqueue.FairConfig[string]{Group: namespaceOf}, config),
		ready}
}

// namespaceOf is the group of a key.
func namespaceOf(key string) string {
	namespace, _, _ := strings.Cut(key, "/")
	return namespace
}

// Add adds a key, and signals that.
func (q fairBelow) Add(key string) { q.AddWithPriority(key, 0) }

// AddWithPriority adds a key, and signals that.
func (q fairBelow) AddWithPriority(key string, priority int) {
	q.Fair.AddWithPriority(key, priority)
	q.ready.send()
}

// Done ends the work on a key, which may be queued again.
func (q fairBelow) Done(key string) {
	q.Fair.Done(key)
	q.ready.send()
}

// fairQueue is a codeQueue with priorities.
type fairQueue struct {
	codeQueue
	priorities workqueue.PriorityInterface[string]
}

// AddWithOpts adds keys as the methods of a codeQueue do that have no priority.
func (q fairQueue) AddWithOpts(o workqueue.AddOpts, keys ...string) {
	for _, key := range keys {
		isFailed, isAdd := o.RateLimited, !o.RateLimited && o.After <= 0
		if isAdd && q.closed.refuse() || isFailed && q.addAtOnce(key) {
			continue
		}
		q.priorities.AddWithOpts(o, key)
	}
}

// GetWithPriority is Get, and returns the key's priority.
func (q fairQueue) GetWithPriority() (key string, priority int, shutdown bool) {
	key, shutdown = q.Get()
	return key, q.TakenPriority(key), shutdown
}

// TakenPriority implements workqueue.PriorityInterface.
func (q fairQueue) TakenPriority(key string) int { return q.priorities.TakenPriority(key) }

// Groups implements workqueue.Grouped.
func (q fairQueue) Groups(limit int) (most []workqueue.Group, all workqueue.GroupTotals) {
	return groupsOf(q.priorities, limit)
}

// groupsOf returns the groups of a queue that is Grouped.
func groupsOf(
	queue any, limit int,
) (most []workqueue.Group, all workqueue.GroupTotals) {
	if grouped, ok := queue.(workqueue.Grouped); ok {
		return grouped.Groups(limit)
	}
	return nil, all
}

// describeGroups adds the groups of a fair queue, and the priorities of the keys that are shown.
func (v *WorkqueueView) describeGroups(queue any, content workqueue.Snapshot[string]) {
	most, all := groupsOf(queue, maxGroups)
	for _, g := range most {
		v.Groups = append(v.Groups, GroupView{printable.Short(g.Name), g.Queued, g.Working})
	}
	v.GroupsTotal = all.Groups
	for _, key := range content.Ready[:min(len(content.Ready), maxRows)] {
		if priority := content.Priorities[key]; priority != 0 {
			if v.Priorities == nil {
				v.Priorities = map[string]int{}
			}
			v.Priorities[printable.Short(key)] = priority
		}
	}
}
