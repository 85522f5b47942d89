// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"hash/maphash"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// keys knows the shards of the keys that an informer holds, and for some time of those that it held
// before: queues and guards have only the key of an object that is gone.
//
// A key is remembered as its hash, which takes about 25 bytes for each object. Two keys with one
// hash would be taken for one. The seed is random, and among ten million keys there are two with a
// probability of 3 in a million.
//
//	K1  held has a key once the informer's reflector may have its object, and until the reflector
//	    has its delete
//	K2  gone and before have the keys that left held, or were last looked up, in the last goneFor
//	    at least, if there were at most maxGone
type keys struct {
	// byNamespace is the number of the group's shards if the key alone decides on the shard, which
	// it does with ByNamespace. Then the maps are empty. Otherwise it is 0.
	byNamespace  int
	seed         maphash.Seed
	held         map[uint64]Shard
	gone, before map[uint64]Shard
	turned       time.Time // when before was gone
}

const (
	// goneFor is longer than the longest wait of a workqueue's retries.
	goneFor = 20 * time.Minute
	maxGone = 1 << 20
)

func newKeys(by By, count int) keys {
	k := keys{
		seed: maphash.MakeSeed(), held: map[uint64]Shard{}, gone: map[uint64]Shard{},
		turned: time.Now(),
	}
	if by.field == ByNamespace.field {
		k.byNamespace = count
	}
	return k
}

// hash is the hash of the key of an object.
func (k *keys) hash(m metav1.Object) uint64 {
	var h maphash.Hash
	h.SetSeed(k.seed)
	if namespace := m.GetNamespace(); namespace != "" {
		_, _ = h.WriteString(namespace)
		_ = h.WriteByte('/')
	}
	_, _ = h.WriteString(m.GetName())
	return h.Sum64()
}

// hashOf is the hash of a key.
func (k *keys) hashOf(key string) uint64 { return maphash.String(k.seed, key) }

// has reports whether a key is held. With ByNamespace it is unknown.
func (k *keys) has(hash uint64) (has, known bool) {
	_, has = k.held[hash]
	return has, k.byNamespace == 0
}

func (k *keys) hold(hash uint64, shard Shard) {
	if k.byNamespace == 0 {
		k.held[hash] = shard
	}
}

// forget notes that an object is gone, or is one of shard now.
func (k *keys) forget(hash uint64, shard Shard) {
	if k.byNamespace > 0 {
		return
	}
	delete(k.held, hash)
	k.turn()
	k.gone[hash] = shard
}

// turn drops the keys that have been gone for long enough.
func (k *keys) turn() {
	for ; time.Since(k.turned) >= goneFor && len(k.gone)+len(k.before) > 0; k.turned =
		k.turned.Add(goneFor) {
		k.before, k.gone = k.gone, map[uint64]Shard{}
	}
	if len(k.gone) >= maxGone {
		k.before, k.gone = k.gone, map[uint64]Shard{}
	}
	if len(k.gone)+len(k.before) == 0 {
		k.turned = time.Now()
	}
}

// replace makes held the keys of a list.
func (k *keys) replace(listed map[uint64]Shard) {
	if k.byNamespace > 0 {
		return
	}
	k.turn()
	for hash, shard := range k.held {
		if _, still := listed[hash]; !still {
			k.gone[hash] = shard
		}
	}
	k.held = listed
}

// shrink returns the memory of a map that was much larger.
func (k *keys) shrink() {
	held := make(map[uint64]Shard, len(k.held))
	for hash, shard := range k.held {
		held[hash] = shard
	}
	k.held = held
}

// heldShard returns the shard of a key that is held.
func (k *keys) heldShard(key string) (Shard, bool) {
	if k.byNamespace > 0 {
		namespace, _, namespaced := strings.Cut(key, "/")
		if !namespaced {
			namespace = ""
		}
		return shardOf(namespace, k.byNamespace), true
	}
	shard, ok := k.held[k.hashOf(key)]
	return shard, ok
}

// shard returns the shard of a key that is held or was held.
func (k *keys) shard(key string) (Shard, bool) {
	if shard, ok := k.heldShard(key); ok {
		return shard, true
	}
	k.turn()
	hash := k.hashOf(key)
	shard, ok := k.gone[hash]
	if !ok {
		if shard, ok = k.before[hash]; ok {
			k.gone[hash] = shard // a key that is retried stays known
		}
	}
	return shard, ok
}
