// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"fmt"
	"math/bits"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/sharding"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Shard is the number of one virtual shard of a group: 0 <= Shard < Config.Count.
//
//	H1  shard s of n holds the values v with floor(Hash(v) * n / 2^64) = s, which is one range of
//	    the hash space; the ranges differ in length by at most one
type Shard int

// By is the value of an object that decides on its shard. Objects with equal values are in one
// shard, in every collection: a Deployment ByUID and its ReplicaSets ByOwner, or everything in a
// namespace ByNamespace. The zero By is invalid.
//
// All replicas of a group must use the same By for a collection: with different ones, two replicas
// may reconcile an object at the same time, against I1. A replica that would use another one than
// the present members does not join, and Run returns an error. Nothing compares two functions of
// ByFunc: another one needs another Config.Name, and the old replicas must end before the new ones
// begin.
type By struct {
	name  string // for people and other members
	field string // in ListOptions.ShardSelector; "" if a server cannot select by it
	value func(obj metav1.Object) (string, bool)
}

// The values by which a server with KEP-5866 can select, so that a replica receives only its part.
var (
	// ByUID spreads objects evenly.
	ByUID = By{"uid", "object.metadata.uid", uidOf}
	// ByNamespace keeps the objects of a namespace together, even if they are deleted and created
	// again. Names that differ only in their last one or two characters are usually in one shard:
	// of 64 shards, ns-00 to ns-63 are all in one. With a hash of the name as its last part, or
	// thousands of namespaces, the shards are even.
	ByNamespace = By{"namespace", "object.metadata.namespace", namespaceOf}
)

func uidOf(obj metav1.Object) (string, bool) { return string(obj.GetUID()), obj.GetUID() != "" }

// namespaceOf is "" for objects without a namespace: all of them are in one shard.
func namespaceOf(obj metav1.Object) (string, bool) { return obj.GetNamespace(), true }

// ByOwner is the UID of the object's controller, and the object's own UID if it has no controller.
// It keeps dependents with their owner, if the owner's collection is sharded ByUID. The replica
// receives all objects and drops those of other shards, because a server cannot select by it.
func ByOwner() By {
	return By{name: "owner", value: func(obj metav1.Object) (string, bool) {
		if owner := metav1.GetControllerOfNoCopy(obj); owner != nil {
			return string(owner.UID), owner.UID != ""
		}
		return uidOf(obj)
	}}
}

// ByFunc is any other value, for example a label. It must never change for an object. The replica
// receives all objects and drops those of other shards, because a server cannot select by it.
func ByFunc(value func(obj metav1.Object) string) By {
	return By{name: "func", value: func(obj metav1.Object) (string, bool) {
		return value(obj), true
	}}
}

// valueOf returns the value of obj. It returns false if a transform has removed it, or if obj is no
// API object.
func (b By) valueOf(obj any) (string, bool) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return "", false
	}
	return b.value(accessor)
}

// shard returns the shard of obj in a group of count shards, or false if obj has no value.
func (b By) shard(obj any, count int) (Shard, bool) {
	value, ok := b.valueOf(obj)
	return shardOf(value, count), ok
}

// selectable reports whether a server can select by b.
func (b By) selectable() bool { return b.field != "" }

// selector returns the text of ListOptions.ShardSelector for the objects of set. It is "" for all
// shards. A server has no selector for nothing: the set must not be empty.
func (b By) selector(set shardSet, count int) string {
	if set.Len() == count {
		return ""
	}
	var wanted []sharding.ShardRangeRequirement
	for _, r := range ranges(set, count) {
		wanted = append(wanted, sharding.ShardRangeRequirement{
			Key: b.field, Start: fmt.Sprintf("0x%016x", r.first), End: r.end(),
		})
	}
	return sharding.NewSelector(wanted...).String()
}

// Hash is the hash of a value: FNV-1a with 64 bits, as in the API server.
func Hash(value string) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	hash := uint64(offset)
	for i := range len(value) {
		hash = (hash ^ uint64(value[i])) * prime
	}
	return hash
}

// shardOf returns the shard of a value: H1.
func shardOf(value string, count int) Shard {
	shard, _ := bits.Mul64(Hash(value), uint64(count))
	return Shard(shard)
}

// hashRange is the hashes first <= hash <= last.
type hashRange struct{ first, last uint64 }

// rangeOf is the range of shard: H1.
func rangeOf(shard Shard, count int) hashRange {
	r := hashRange{first: firstHash(shard, count), last: ^uint64(0)}
	if int(shard) < count-1 {
		r.last = firstHash(shard+1, count) - 1
	}
	return r
}

// firstHash is shard * 2^64 / count, rounded up.
func firstHash(shard Shard, count int) uint64 {
	first, remainder := bits.Div64(uint64(shard), 0, uint64(count))
	if remainder > 0 {
		first++
	}
	return first
}

// end is the hash after the last one, as a shard selector has it.
func (r hashRange) end() string {
	if r.last == ^uint64(0) {
		return "0x10000000000000000"
	}
	return fmt.Sprintf("0x%016x", r.last+1)
}

// shardSet is a set of the shards of one group. A set that another goroutine may have does not
// change any more: clone it first.
type shardSet = sets.Set[Shard]

// allShards is the set of every shard of a group.
func allShards(count int) shardSet {
	set := make(shardSet, count)
	for s := range Shard(count) {
		set.Insert(s)
	}
	return set
}

// ranges returns the hashes of all shards in the set, in order, with adjacent ranges merged.
func ranges(set shardSet, count int) []hashRange {
	var merged []hashRange
	next := Shard(-1) // after the shards of the last range
	for _, shard := range sets.List(set) {
		r := rangeOf(shard, count)
		if shard == next {
			merged[len(merged)-1].last = r.last
		} else {
			merged = append(merged, r)
		}
		next = shard + 1
	}
	return merged
}

// widen returns set with the smallest gaps filled, so that it has at most limit ranges.
func widen(set shardSet, limit int) shardSet {
	type gap struct{ after, before Shard }
	var gaps []gap
	shards := sets.List(set)
	for i := 1; i < len(shards); i++ {
		if shards[i] > shards[i-1]+1 {
			gaps = append(gaps, gap{shards[i-1], shards[i]})
		}
	}
	excess := len(gaps) + 1 - limit
	if excess <= 0 {
		return set
	}
	slices.SortStableFunc(gaps, func(a, b gap) int {
		return int((a.before - a.after) - (b.before - b.after))
	})
	wide := set.Clone()
	for _, g := range gaps[:excess] {
		for s := g.after + 1; s < g.before; s++ {
			wide.Insert(s)
		}
	}
	return wide
}
