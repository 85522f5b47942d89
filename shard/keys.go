// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"hash/maphash"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// keys knows the values, and so the shards, of the objects that an informer holds, and for some
// time of those that it held before: queues and guards have only the key of an object that is gone.
//
// A key is remembered as its hash, so an object takes about 35 bytes. Two keys with one hash would
// be taken for one. The seed is random, and among ten million keys there are two with a probability
// of 3 in a million.
//
//	K1  held has a key once the informer's reflector may have its object, and until the reflector
//	    has its delete
//	K2  gone and before have the keys that left held, or were last looked up, in the last goneFor
//	    at least, if there were at most maxGone
type keys struct {
	// byNamespace is true if the key alone decides on the value. Then the maps are empty.
	byNamespace  bool
	seed         maphash.Seed
	held         map[uint64]string
	gone, before map[uint64]string
	turned       time.Time // when before was gone
}

// goneFor is longer than the longest wait of a workqueue's retries.
const goneFor = 20 * time.Minute

// maxGone bounds each of the maps gone and before. A test sets it, to cross it soon.
var maxGone = 1 << 20

func newKeys(by By) keys {
	return keys{
		byNamespace: by.field == ByNamespace.field, seed: maphash.MakeSeed(),
		held: map[uint64]string{}, gone: map[uint64]string{}, turned: time.Now(),
	}
}

// hash is the hash of a key.
func (k *keys) hash(key string) uint64 { return maphash.String(k.seed, key) }

// hashOf is the hash of the key of an object.
func (k *keys) hashOf(m metav1.Object) uint64 {
	var h maphash.Hash
	h.SetSeed(k.seed)
	if namespace := m.GetNamespace(); namespace != "" {
		_, _ = h.WriteString(namespace)
		_ = h.WriteByte('/')
	}
	_, _ = h.WriteString(m.GetName())
	return h.Sum64()
}

func (k *keys) hold(hash uint64, value string) {
	if !k.byNamespace {
		k.held[hash] = value
	}
}

// forget notes that an object is gone, or has another value now.
func (k *keys) forget(hash uint64, value string) {
	if !k.byNamespace {
		delete(k.held, hash)
		k.turn()
		k.gone[hash] = value
	}
}

// replace makes held the keys of a list.
func (k *keys) replace(listed map[uint64]string) {
	if k.byNamespace {
		return
	}
	k.turn()
	for hash, value := range k.held {
		if _, still := listed[hash]; !still {
			k.gone[hash] = value
		}
	}
	k.held = listed
}

// heldValue returns the value of a key that is held.
func (k *keys) heldValue(key string) (string, bool) {
	if k.byNamespace {
		namespace, _, namespaced := strings.Cut(key, "/")
		if !namespaced {
			namespace = ""
		}
		return namespace, true
	}
	value, ok := k.held[k.hash(key)]
	return value, ok
}

// value returns the value of a key that is held or was held.
func (k *keys) value(key string) (string, bool) {
	if value, ok := k.heldValue(key); ok {
		return value, true
	}
	k.turn()
	hash := k.hash(key)
	value, ok := k.gone[hash]
	if !ok {
		if value, ok = k.before[hash]; ok {
			k.gone[hash] = value // a key that is retried stays known
		}
	}
	return value, ok
}

// turn drops the keys that have been gone for long enough.
func (k *keys) turn() {
	age := time.Since(k.turned)
	if age < goneFor && len(k.gone) < maxGone {
		return
	}
	k.before, k.gone, k.turned = k.gone, map[uint64]string{}, time.Now()
	if age >= 2*goneFor {
		k.before = nil
	}
}
