// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	clientgo "k8s.io/client-go/tools/cache"

	"example.com/informerstack/compat/cache"
)

// heapLike has the methods of both heaps.
type heapLike interface {
	Add(obj any) error
	AddIfNotPresent(obj any) error
	BulkAdd(list []any) error
	Update(obj any) error
	Delete(obj any) error
	Pop() (any, error)
	List() []any
	ListKeys() []string
	Get(obj any) (any, bool, error)
	GetByKey(key string) (any, bool, error)
	Close()
	IsClosed() bool
}

func older(a, b any) bool { return a.(item).rev < b.(item).rev }

// The same random operations give the same results on both.
func TestModel_Heap(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 2))
		impls := []heapLike{cache.NewHeap(itemKey, older), clientgo.NewHeap(itemKey, older)}
		revs := random.Perm(1000) // no two objects have the same age
		for step := range 60 {
			obj := item{name: string(rune('a' + random.IntN(8))), rev: revs[step]}
			op := random.IntN(7)
			if op == 5 && len(impls[0].ListKeys()) == 0 {
				continue // it would block
			}
			var results [2]string
			for i, h := range impls {
				switch op {
				case 0:
					results[i] = fmt.Sprint(h.Add(obj))
				case 1:
					results[i] = fmt.Sprint(h.AddIfNotPresent(obj))
				case 2:
					results[i] = fmt.Sprint(h.BulkAdd([]any{obj, item{"z", revs[500+step]}}))
				case 3:
					results[i] = fmt.Sprint(h.Delete(obj))
				case 4:
					item, exists, err := h.Get(obj)
					results[i] = fmt.Sprint(item, exists, err)
				case 6:
					results[i] = fmt.Sprint(h.Update(obj))
				case 5:
					least, err := h.Pop()
					results[i] = fmt.Sprint(least, err)
				}
			}
			require.Equal(t, results[1], results[0], "seed %d step %d op %d", seed, step, op)
			require.ElementsMatch(t, impls[1].List(), impls[0].List())
			require.ElementsMatch(t, impls[1].ListKeys(), impls[0].ListKeys())
		}
	}
}

func TestHeap_CloseWakesPop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := cache.NewHeap(itemKey, older)
		popped := make(chan error)
		go func() {
			_, err := h.Pop()
			popped <- err
		}()
		synctest.Wait()
		h.Close()
		require.EqualError(t, <-popped, "heap is closed")
		require.EqualError(t, h.Add(item{"a", 1}), "heap is closed")
		require.EqualError(t, h.AddIfNotPresent(item{"a", 1}), "heap is closed")
		require.EqualError(t, h.BulkAdd(nil), "heap is closed")
		require.True(t, h.IsClosed())
	})
}

// The objects of a closed heap can still be popped.
func TestHeap_ClosedIsEmptied(t *testing.T) {
	h := cache.NewHeap(itemKey, older)
	require.NoError(t, h.Add(item{"a", 1}))
	h.Close()
	got, err := h.Pop()
	require.NoError(t, err)
	require.Equal(t, item{"a", 1}, got)
	_, err = h.Pop()
	require.Error(t, err)
}
