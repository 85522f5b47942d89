// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	clientgo "k8s.io/client-go/tools/cache"
)

// careless is a controller that changes cached objects, and writes them to the server: the watch
// then brings an object with the values that the cached one already has.
type careless struct {
	t      *testing.T
	random *rand.Rand
	ours   Indexer
	ref    clientgo.Indexer
	// changed has the keys of the objects that were changed in place since they were added.
	changed map[string]bool
}

func (c *careless) tags() string {
	tags := []string{"a", "b", "c", "d"}
	c.random.Shuffle(len(tags), func(i, j int) { tags[i], tags[j] = tags[j], tags[i] })
	return strings.Join(tags[:c.random.IntN(len(tags))], ",")
}

func (c *careless) step() {
	key := fmt.Sprint("ns/p", c.random.IntN(4))
	obj, exists, _ := c.ours.GetByKey(key)
	ref, _, _ := c.ref.GetByKey(key)
	fresh := pod(key + " tags=" + c.tags())
	switch {
	case !exists:
		require.NoError(c.t, c.ours.Add(fresh))
		require.NoError(c.t, c.ref.Add(fresh.DeepCopy()))
	case c.random.IntN(4) == 0:
		require.NoError(c.t, c.ours.Delete(fresh))
		require.NoError(c.t, c.ref.Delete(fresh))
		delete(c.changed, key)
		return
	case c.random.IntN(2) == 0:
		obj.(*corev1.Pod).Annotations = fresh.Annotations
		ref.(*corev1.Pod).Annotations = fresh.Annotations
		c.changed[key] = true
		fallthrough
	default:
		fresh = fresh.DeepCopy()
		require.Nil(c.t, c.ours.(TransactionStore).Transaction(
			Transaction{fresh, TransactionTypeUpdate}))
		require.NoError(c.t, c.ref.Update(fresh.DeepCopy()))
	}
	c.requireFound(key, fresh)
}

// requireFound requires the object under each of its values, as in client-go: if it has several, or
// was never changed in place. In the latter case it is under no other.
func (c *careless) requireFound(key string, obj *corev1.Pod) {
	has, _ := byTag(obj)
	for _, tag := range []string{"a", "b", "c", "d"} {
		keys, err := c.ours.IndexKeys("tag", tag)
		require.NoError(c.t, err)
		list, err := c.ours.ByIndex("tag", tag)
		require.NoError(c.t, err)
		require.Equal(c.t, keys, keysOf(list))
		found, _ := c.ref.IndexKeys("tag", tag)
		switch {
		case slices.Contains(has, tag):
			if len(has) > 1 || !c.changed[key] {
				require.Contains(c.t, keys, key)
				require.Contains(c.t, found, key)
			}
		case !c.changed[key]:
			require.NotContains(c.t, keys, key)
		}
	}
}

// After the next write, an object that was changed in place has all its values in an index in which
// it has several, as in client-go.
func TestChangedInPlaceThenUpdated(t *testing.T) {
	for seed := range uint64(50) {
		c := &careless{
			t: t, random: rand.New(rand.NewPCG(seed, 35)), changed: map[string]bool{},
			ours: New(MetaNamespaceKeyFunc, Options{Indexers: Indexers{"tag": byTag}}),
			ref: clientgo.NewIndexer(clientgo.MetaNamespaceKeyFunc,
				clientgo.Indexers{"tag": byTag}),
		}
		for range 200 {
			c.step()
		}
	}
}
