// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/informerstack/compat/cache"
)

// Each change that succeeds pushes the whole content once.
func TestUndeltaStore(t *testing.T) {
	var pushed [][]any
	s := cache.NewUndeltaStore(func(all []any) { pushed = append(pushed, all) }, itemKey)
	require.NoError(t, s.Add(item{"a", 1}))
	require.NoError(t, s.Update(item{"a", 2}))
	require.NoError(t, s.Replace([]any{item{"b", 1}}, "7"))
	require.NoError(t, s.Delete(item{"b", 1}))
	require.Error(t, s.Add("without a key"))
	require.Equal(t, [][]any{{item{"a", 1}}, {item{"a", 2}}, {item{"b", 1}}, {}}, pushed)
	require.Equal(t, "7", s.LastStoreSyncResourceVersion())
}

func TestFakeCustomStore(t *testing.T) {
	var empty cache.FakeCustomStore
	require.NoError(t, empty.Add(1))
	require.NoError(t, empty.Update(1))
	require.NoError(t, empty.Delete(1))
	require.NoError(t, empty.Replace(nil, ""))
	require.NoError(t, empty.Resync())
	require.Empty(t, empty.List())
	require.Empty(t, empty.ListKeys())
	require.Empty(t, empty.LastStoreSyncResourceVersion())
	empty.Bookmark("1")
	_, exists, err := empty.Get(1)
	require.NoError(t, err)
	require.False(t, exists)
	_, exists, err = empty.GetByKey("1")
	require.NoError(t, err)
	require.False(t, exists)

	real := cache.NewStore(itemKey)
	full := cache.FakeCustomStore{
		AddFunc: real.Add, UpdateFunc: real.Update, DeleteFunc: real.Delete,
		ReplaceFunc: real.Replace, ListFunc: real.List, ListKeysFunc: real.ListKeys,
		GetFunc: real.Get, GetByKeyFunc: real.GetByKey,
		ResyncFunc: real.Resync, BookmarkFunc: real.Bookmark,
		LastStoreSyncResourceVersionFunc: real.LastStoreSyncResourceVersion,
	}
	require.NoError(t, full.Replace([]any{item{"a", 1}, item{"b", 1}}, "1"))
	require.NoError(t, full.Add(item{"c", 1}))
	require.NoError(t, full.Update(item{"c", 2}))
	require.NoError(t, full.Delete(item{"b", 1}))
	full.Bookmark("9")
	require.ElementsMatch(t, []any{item{"a", 1}, item{"c", 2}}, full.List())
	require.ElementsMatch(t, []string{"a", "c"}, full.ListKeys())
	require.Equal(t, "9", full.LastStoreSyncResourceVersion())
	got, exists, err := full.Get(item{"c", 0})
	require.NoError(t, err)
	require.True(t, exists)
	require.Equal(t, item{"c", 2}, got)
}
