// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	reference "k8s.io/client-go/util/workqueue"

	"example.com/informerstack/workqueue"
)

// strictOrder is an order that checks the contract of Queue, and records the calls.
type strictOrder struct {
	t     *testing.T
	items []int
	calls []string
}

func (o *strictOrder) Touch(item int) {
	require.Contains(o.t, o.items, item, "Touch of an item that is not queued")
	o.calls = append(o.calls, "touch")
	o.remove(item)
	o.items = append(o.items, item) // the last one again
}

func (o *strictOrder) Push(item int) {
	require.NotContains(o.t, o.items, item, "Push of an item that is queued")
	o.calls = append(o.calls, "push")
	o.items = append(o.items, item)
}

func (o *strictOrder) Len() int { return len(o.items) }

func (o *strictOrder) Pop() int {
	require.NotEmpty(o.t, o.items, "Pop of an empty order")
	o.calls = append(o.calls, "pop")
	item := o.items[0]
	o.remove(item)
	return item
}

func (o *strictOrder) remove(item int) {
	i := slices.Index(o.items, item)
	o.items = slices.Delete(o.items, i, i+1)
}

// A queue calls its order as client-go does, and keeps the contract of Queue: an item that a worker
// has is not touched, although it is dirty.
func TestModel_CallsOfTheOrder(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 0))
		own, theirs := &strictOrder{t: t}, &strictOrder{t: t}
		q := workqueue.NewTyped(workqueue.Config[int]{Order: own})
		other := reference.NewTypedWithConfig(reference.TypedQueueConfig[int]{Queue: theirs})
		var working []int
		for range 300 {
			item := random.IntN(6)
			switch op := random.IntN(3); {
			case op == 0 || op == 1 && len(working) == 0 && q.Len() == 0:
				q.Add(item)
				other.Add(item)
			case op == 1 && q.Len() > 0:
				got, _ := q.Get()
				want, _ := other.Get()
				require.Equal(t, want, got)
				working = append(working, got)
			case len(working) > 0:
				i := random.IntN(len(working))
				q.Done(working[i])
				other.Done(working[i])
				working = slices.Delete(working, i, i+1)
			}
			require.Equal(t, theirs.calls, own.calls, "seed %d", seed)
			require.Equal(t, theirs.items, own.items, "seed %d", seed)
			require.Equal(t, other.Len(), q.Len(), "seed %d", seed)
		}
		other.ShutDown()
	}
}

// A snapshot is a copy, has the items of workers in the order of their Gets, and works with an
// order of the caller's own.
func TestSnapshot_Content(t *testing.T) {
	for _, order := range []workqueue.Queue[int]{nil, &strictOrder{t: t}} {
		q := workqueue.NewTyped(workqueue.Config[int]{Order: order})
		for i := range 40 {
			q.Add(i)
		}
		all := q.Snapshot()
		for range 20 {
			item, _ := q.Get()
			q.Add(item)
		}
		s := q.Snapshot()
		for item := range 40 {
			assert.Contains(t, all.Ready, item)
			if item >= 20 {
				assert.Contains(t, s.Ready, item)
				continue
			}
			assert.Equal(t, item, s.Processing[item])
			assert.Equal(t, item, s.Again[item])
		}
		assert.Equal(t, []int{40, 20, 20, 20},
			[]int{len(all.Ready), len(s.Ready), len(s.Processing), len(s.Again)})
	}
}
