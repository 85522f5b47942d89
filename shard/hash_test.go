// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/sharding"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/uuid"
)

func TestHash_IsTheServers(t *testing.T) {
	for _, value := range []string{"", "a", "kube-system", string(uuid.NewUUID())} {
		assert.Equal(t, sharding.HashField(value), fmt.Sprintf("%016x", Hash(value)))
	}
}

// H1: the ranges are adjacent, cover the hash space, and agree with shardOf.
func TestRanges(t *testing.T) {
	for _, count := range []int{1, 2, 3, 7, 64, 100, 1000, 6400} {
		next, shortest, longest := uint64(0), ^uint64(0), uint64(0)
		for s := range count {
			r := rangeOf(Shard(s), count)
			assert.Equal(t, next, r.first)
			shortest, longest = min(shortest, r.last-r.first), max(longest, r.last-r.first)
			next = r.last + 1
			for _, hash := range []uint64{r.first, r.last} {
				shard, _ := bits.Mul64(hash, uint64(count))
				assert.Equal(t, uint64(s), shard, "%x", hash)
			}
		}
		assert.Zero(t, next, "the last range ends at 2^64")
		assert.LessOrEqual(t, longest-shortest, uint64(1))
		for range 1000 {
			value := string(uuid.NewUUID())
			r := rangeOf(shardOf(value, count), count)
			hash := Hash(value)
			assert.True(t, r.first <= hash && hash <= r.last, "%x in %x", hash, r)
		}
	}
}

// The selector chooses the objects of the set, as the server reads it.
func TestBy_SelectorIsTheServers(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		count := 1 + random.IntN(100)
		set := sets.New[Shard]()
		for s := range count {
			if random.IntN(3) > 0 {
				set.Insert(Shard(s))
			}
		}
		if set.Len() == 0 {
			continue
		}
		selector := serverSelector(t, ByUID, set, count)
		for range 50 {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uuid.NewUUID()}}
			selected, err := selector.Matches(pod)
			require.NoError(t, err)
			shard, ok := ByUID.shard(pod, count)
			require.True(t, ok)
			assert.Equal(t, set.Has(shard), selected)
		}
	}
	assert.Empty(t, ByUID.selector(allShards(64), 64))
	assert.Equal(t, "shardRange(object.metadata.namespace, '0x0000000000000000',"+
		" '0x8000000000000000') || shardRange(object.metadata.namespace, '0xc000000000000000',"+
		" '0x10000000000000000')", ByNamespace.selector(sets.New[Shard](0, 1, 3), 4))
}

// serverSelector reads the text of a selector.
func serverSelector(t *testing.T, by By, set shardSet, count int) sharding.Selector {
	var wanted []sharding.ShardRangeRequirement
	for _, r := range ranges(set, count) {
		wanted = append(wanted, sharding.ShardRangeRequirement{
			Key: by.field, Start: fmt.Sprintf("0x%016x", r.first), End: r.end(),
		})
	}
	selector := sharding.NewSelector(wanted...)
	if set.Len() < count {
		require.Equal(t, selector.String(), by.selector(set, count))
	}
	return selector
}

func TestBy_Value(t *testing.T) {
	owner := metav1.OwnerReference{UID: "owner", Controller: new(true)}
	other := metav1.OwnerReference{UID: "other"}
	pod := func(meta metav1.ObjectMeta) *corev1.Pod { return &corev1.Pod{ObjectMeta: meta} }
	byName := ByFunc(metav1.Object.GetName)
	for _, test := range []struct {
		name  string
		by    By
		obj   any
		value string
		ok    bool
	}{
		{"uid", ByUID, pod(metav1.ObjectMeta{UID: "u"}), "u", true},
		{"no uid", ByUID, pod(metav1.ObjectMeta{Name: "n"}), "", false},
		{"namespace", ByNamespace, pod(metav1.ObjectMeta{Namespace: "ns"}), "ns", true},
		{"cluster-wide", ByNamespace, pod(metav1.ObjectMeta{UID: "u"}), "", true},
		{"owner", ByOwner(), pod(metav1.ObjectMeta{
			UID: "u", OwnerReferences: []metav1.OwnerReference{other, owner},
		}), "owner", true},
		{"no controller", ByOwner(), pod(metav1.ObjectMeta{
			UID: "u", OwnerReferences: []metav1.OwnerReference{other},
		}), "u", true},
		{"function", byName, pod(metav1.ObjectMeta{Name: "n"}), "n", true},
		{"no object", ByUID, "text", "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			value, ok := test.by.valueOf(test.obj)
			assert.Equal(t, test.ok, ok)
			assert.Equal(t, test.value, value)
		})
	}
	assert.True(t, ByUID.selectable() && ByNamespace.selectable())
	assert.False(t, ByOwner().selectable() || byName.selectable())
}

// UIDs are spread evenly: with 64 shards the largest has less than 10 % more than the mean.
func TestHash_SpreadsUIDs(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	const count, each = 64, 2000
	sizes := make([]int, count)
	for range count * each {
		uid := types.UID(fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", random.Uint32(),
			random.Uint32()&0xffff, random.Uint32()&0xfff, random.Uint32()&0xfff,
			random.Uint64()&0xffffffffffff))
		sizes[shardOf(string(uid), count)]++
	}
	assert.Less(t, slices.Max(sizes), each*11/10)
	assert.Greater(t, slices.Min(sizes), each*9/10)
}

// FNV-1a moves the last bytes of a value into the middle of the hash, and a shard is a range of its
// first bits: names with another end are spread well, names with another last number are not.
func TestHash_SpreadsNamespacesByWhatFollows(t *testing.T) {
	shards := func(format string) int {
		found := sets.New[Shard]()
		for i := range 64 {
			found.Insert(shardOf(fmt.Sprintf(format, i), 64))
		}
		return found.Len()
	}
	assert.Equal(t, 1, shards("ns-%02d"))
	assert.Greater(t, shards("ns-%02d-5f4dcc3b"), 35, "random ones would be in 41 of 64")
}
