// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"fmt"
	"math/bits"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/sharding"
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

// Value returns the value of obj. It returns false if a transform has removed it, or if obj is no
// API object.
func (b By) Value(obj any) (string, bool) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return "", false
	}
	return b.value(accessor)
}

// shard returns the shard of obj in a group of count shards, or false if obj has no value.
func (b By) shard(obj any, count int) (Shard, bool) {
	value, ok := b.Value(obj)
	return shardOf(value, count), ok
}

// selectable reports whether a server can select by b.
func (b By) selectable() bool { return b.field != "" }

// selector returns the text of ListOptions.ShardSelector for the objects of set. It is "" for all
// shards. A server has no selector for nothing: the set must not be empty.
func (b By) selector(set shardSet) string {
	if set.all() {
		return ""
	}
	var wanted []sharding.ShardRangeRequirement
	for _, r := range set.ranges() {
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
