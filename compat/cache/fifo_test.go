// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientgo "k8s.io/client-go/tools/cache"

	"example.com/informerstack/compat/cache"
)

// item is an object. Its key is its name.
type item struct {
	name string
	rev  int
}

func itemKey(obj any) (string, error) {
	if i, ok := obj.(item); ok {
		return i.name, nil
	}
	return "", fmt.Errorf("%T has no key", obj)
}

// fifo has the methods of both FIFOs, except Pop: each package has its own type for Pop's
// parameter.
type fifo interface {
	Add(obj any) error
	Update(obj any) error
	Delete(obj any) error
	Replace(list []any, resourceVersion string) error
	Resync() error
	HasSynced() bool
	Close()
	IsClosed() bool
}

// A list that was replaced before it was popped need not be popped.
func TestDifference_AShorterListSyncs(t *testing.T) {
	ours, theirs := cache.NewFIFO(itemKey), clientgo.NewFIFO(itemKey)
	for _, f := range []fifo{ours, theirs} {
		require.NoError(t, f.Replace([]any{item{"a", 1}, item{"b", 1}}, "1"))
		require.NoError(t, f.Replace(nil, "2"))
	}
	require.True(t, ours.HasSynced())
	require.False(t, theirs.HasSynced())
}

// The same random operations give the same results on both, as long as a Replace has one object at
// most: client-go forgets the order of a list.
func TestModel_FIFO(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		ours, theirs := cache.NewFIFO(itemKey), clientgo.NewFIFO(itemKey)
		waiting := map[string]bool{}
		for step := range 40 {
			obj := item{name: string(rune('a' + random.IntN(4))), rev: step}
			where := fmt.Sprintf("seed %d step %d", seed, step)
			switch op := random.IntN(6); {
			case op <= 2:
				waiting[obj.name] = true
				for _, f := range []fifo{ours, theirs} {
					require.NoError(t, f.Add(obj), where)
				}
			case op == 3:
				delete(waiting, obj.name)
				for _, f := range []fifo{ours, theirs} {
					require.NoError(t, f.Delete(obj), where)
				}
			case op == 4 && len(waiting) == 0:
				waiting[obj.name] = true
				for _, f := range []fifo{ours, theirs} {
					require.NoError(t, f.Replace([]any{obj}, ""), where)
				}
			case len(waiting) > 0:
				var initials [2]bool
				popped, err := ours.Pop(
					func(_ any, initial bool) error { initials[0] = initial; return nil },
				)
				require.NoError(t, err, where)
				want, err := theirs.Pop(
					func(_ any, initial bool) error { initials[1] = initial; return nil },
				)
				require.NoError(t, err, where)
				require.Equal(t, want, popped, where)
				require.Equal(t, initials[1], initials[0], where)
				delete(waiting, popped.(item).name)
			}
			require.Equal(t, theirs.HasSynced(), ours.HasSynced(), where)
		}
	}
}

func TestFIFO_ListIsPoppedInOrder(t *testing.T) {
	f := cache.NewFIFO(itemKey)
	require.NoError(t, f.Replace([]any{item{"b", 1}, item{"a", 1}, item{"b", 2}}, "7"))
	require.False(t, f.HasSynced())
	var got []any
	for range 2 {
		_, err := f.Pop(func(obj any, initial bool) error {
			got = append(got, obj)
			assert.True(t, initial)
			assert.False(t, f.HasSynced(), "it is being processed")
			return nil
		})
		require.NoError(t, err)
	}
	require.Equal(t, []any{item{"b", 2}, item{"a", 1}}, got)
	require.True(t, cache.IsDone(f.HasSyncedChecker()))
}

// HasSynced does not wait for an object that was deleted before it was popped.
func TestFIFO_SyncsOverDeletedObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := cache.NewFIFO(itemKey)
		require.NoError(t, f.Replace([]any{item{"a", 1}}, "1"))
		require.NoError(t, f.Delete(item{"a", 1}))
		popped := make(chan error)
		go func() {
			_, err := f.Pop(func(any, bool) error { return nil })
			popped <- err
		}()
		synctest.Wait()
		require.True(t, f.HasSynced())
		f.Close()
		require.ErrorIs(t, <-popped, cache.ErrFIFOClosed)
		require.True(t, f.IsClosed())
	})
}

func TestFIFO_KeyErrors(t *testing.T) {
	f := cache.NewFIFO(itemKey)
	var keyError cache.KeyError
	require.ErrorAs(t, f.Add(1), &keyError)
	require.ErrorAs(t, f.Delete(1), &keyError)
	require.ErrorAs(t, f.Replace([]any{1}, ""), &keyError)
	require.False(t, f.HasSynced())
	require.NoError(t, f.Resync())
}

// A key is popped once, with the newest state that was queued for it, by any caller.
func TestFIFO_NewestStateIsPopped(t *testing.T) {
	f := cache.NewFIFO(itemKey)
	require.NoError(t, f.Add(item{"a", 1}))
	require.NoError(t, f.Update(item{"a", 2}))
	require.NoError(t, f.Add(item{"gone", 1}))
	pop := func() any {
		got, err := f.Pop(func(any, bool) error { return nil })
		require.NoError(t, err)
		return got
	}
	require.Equal(t, item{"a", 2}, pop())
	require.NoError(t, f.Add(item{"a", 3}))
	require.NoError(t, f.Replace([]any{item{"b", 1}, item{"a", 4}}, "4"))
	require.ElementsMatch(t, []any{item{"b", 1}, item{"a", 4}}, []any{pop(), pop()})
	f.Close()
	_, err := f.Pop(func(any, bool) error { return nil })
	require.ErrorIs(t, err, cache.ErrFIFOClosed)
}
