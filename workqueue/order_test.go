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

// order is an order of the owner's own. A touch brings an item to the end. It records the calls,
// panics if they break the contract of Queue, and in every method while it is broken.
type order[T comparable] struct {
	lifo   bool // the end is handed out first
	items  []T
	calls  []string
	broken bool
}

// called notes a call, which must come for an item that is queued, or for one that is not.
func (o *order[T]) called(call string, keepsTheContract bool) {
	if o.broken {
		panic("broken")
	}
	if !keepsTheContract {
		panic(call + " breaks the contract")
	}
	o.calls = append(o.calls, call)
}

func (o *order[T]) Touch(item T) {
	i := slices.Index(o.items, item)
	o.called("touch", i >= 0)
	o.items = append(slices.Delete(o.items, i, i+1), item)
}

func (o *order[T]) Push(item T) {
	o.called("push", !slices.Contains(o.items, item))
	o.items = append(o.items, item)
}

func (o *order[T]) Len() int {
	if o.broken {
		panic("broken")
	}
	return len(o.items)
}

func (o *order[T]) Pop() (item T) {
	o.called("pop", len(o.items) > 0)
	i := 0
	if o.lifo {
		i = len(o.items) - 1
	}
	item = o.items[i]
	o.items = slices.Delete(o.items, i, i+1)
	return item
}

// A queue calls its order as client-go does, and keeps the contract of Queue: an item that a worker
// has is not touched, although it is dirty.
func TestModel_CallsOfTheOrder(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 0))
		own, theirs := &order[int]{}, &order[int]{}
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
	for _, order := range []workqueue.Queue[int]{nil, &order[int]{}} {
		q := workqueue.NewTyped(workqueue.Config[int]{Order: order})
		var items []int
		for i := range 40 {
			q.Add(i)
			items = append(items, i)
		}
		all := q.Snapshot()
		for range 20 {
			item, _ := q.Get()
			q.Add(item)
		}
		s := q.Snapshot()
		assert.ElementsMatch(t, items, all.Ready)
		assert.ElementsMatch(t, items[20:], s.Ready)
		assert.Equal(t, items[:20], s.Processing)
		assert.Equal(t, items[:20], s.Again)
	}
}
