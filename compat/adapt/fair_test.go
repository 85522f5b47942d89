// SPDX-License-Identifier: Apache-2.0

package adapt_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	client "k8s.io/client-go/util/workqueue"

	"example.com/informerstack/compat/adapt"
	"example.com/informerstack/workqueue"
)

// byPriority is the depth of each priority of a queue, and grouped what was said of its groups.
type (
	byPriority map[int]int
	grouped    struct {
		most []workqueue.Group
		all  workqueue.GroupTotals
	}
)

func (d byPriority) Inc(priority int) { d[priority]++ }
func (d byPriority) Dec(priority int) { d[priority]-- }

// internal is no type of ours, like the result of controller-runtime's provider.
type internal interface {
	Inc(priority int)
	Dec(priority int)
}

func (p *provider) NewDepthMetricWithPriority(name string) internal {
	p.depths[name] = byPriority{}
	return p.depths[name]
}

func (p *provider) NewGroupsMetric(
	name string,
) func(most []workqueue.Group, all workqueue.GroupTotals) {
	p.groups[name] = &grouped{}
	return func(most []workqueue.Group, all workqueue.GroupTotals) {
		*p.groups[name] = grouped{most, all}
	}
}

func newFair(name string) workqueue.PriorityInterface[string] {
	return adapt.NewFairQueue(name,
		client.NewTypedItemExponentialFailureRateLimiter[string](time.Second, time.Hour),
		workqueue.FairConfig[string]{Group: func(item string) string { return item[:1] }})
}

// The provider gets the depth of each priority, and the groups.
func TestNewFairQueue_Metrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := queues.of("fair")
		q := newFair("fair")
		defer q.ShutDown()
		depth := queues.depths["fair"]
		q.AddWithOpts(workqueue.AddOpts{Priority: -100}, "a1", "a2", "b1")
		q.Add("a2")
		assert.Equal(t, byPriority{-100: 2, 0: 1}, depth)
		item, priority, _ := q.GetWithPriority()
		require.Equal(t, "a2", item)
		require.Zero(t, priority)
		assert.Equal(t, byPriority{-100: 2, 0: 0}, depth)
		time.Sleep(501 * time.Millisecond)
		synctest.Wait()
		assert.Equal(t, grouped{
			most: []workqueue.Group{{Name: "a", Queued: 1, Working: 1, Weight: 1},
				{Name: "b", Queued: 1, Weight: 1}},
			all: workqueue.GroupTotals{Groups: 2, Queued: 2, Working: 1},
		}, *queues.groups["fair"])
		assert.Equal(t, 3, queues.of("fair")-before)
	})
}

type addOpts struct{ Priority *int }

// An Add ends the wait of an item in a queue for controller-runtime, and does not in one of
// client-go's interface.
func TestNewPriorityQueue_AddEndsAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plain := newFair("")
		other := adapt.NewPriorityQueue("",
			client.NewTypedItemExponentialFailureRateLimiter[string](time.Second, time.Hour),
			workqueue.FairConfig[string]{},
			func(o addOpts) workqueue.AddOpts { return workqueue.AddOpts{Priority: *o.Priority} })
		for _, q := range []client.TypedRateLimitingInterface[string]{plain, other} {
			defer q.ShutDown()
			q.AddRateLimited("a")
			q.Add("a")
			_, _ = q.Get()
			q.Done("a")
		}
		time.Sleep(2 * time.Second)
		assert.Equal(t, 1, plain.Len())
		assert.Zero(t, other.Len())
		other.AddWithOpts(addOpts{new(-7)}, "b")
		_, priority, _ := other.GetWithPriority()
		assert.Equal(t, -7, priority)
	})
}
