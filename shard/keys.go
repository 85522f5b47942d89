// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"strings"
	"time"
)

// keys knows the values, and so the shards, of the objects that an informer holds, and for some
// time of those that it held before: queues and guards have only the key of an object that is gone.
//
//	K1  held has a key once the informer's reflector may have its object, and until the reflector
//	    has its delete
//	K2  gone and before have the keys that left held, or were last looked up, in the last goneFor
//	    at least, if there were at most maxGone
type keys struct {
	// byNamespace is true if the key alone decides on the value. Then the maps are empty.
	byNamespace  bool
	held         map[string]string
	gone, before map[string]string
	turned       time.Time // when before was gone
}

// goneFor is longer than the longest wait of a workqueue's retries.
const goneFor = 20 * time.Minute

// maxGone bounds each of the maps gone and before. A test sets it, to cross it soon.
var maxGone = 1 << 20

func newKeys(by By) keys {
	return keys{
		byNamespace: by.field == ByNamespace.field,
		held:        map[string]string{}, gone: map[string]string{}, turned: time.Now(),
	}
}

func (k *keys) hold(key, value string) {
	if !k.byNamespace {
		k.held[key] = value
	}
}

// forget notes that an object is gone, or has another value now.
func (k *keys) forget(key, value string) {
	if !k.byNamespace {
		delete(k.held, key)
		k.turn()
		k.gone[key] = value
	}
}

// replace makes held the keys of a list.
func (k *keys) replace(listed map[string]string) {
	if k.byNamespace {
		return
	}
	k.turn()
	for key, value := range k.held {
		if _, still := listed[key]; !still {
			k.gone[key] = value
		}
	}
	k.held = listed
}

// value returns the value of a key that is held or was held.
func (k *keys) value(key string) (value string, ok bool) {
	if k.byNamespace {
		return key[:max(strings.Index(key, "/"), 0)], true
	}
	if value, ok = k.held[key]; ok {
		return value, true
	}
	k.turn()
	if value, ok = k.gone[key]; ok {
		return value, true
	}
	if value, ok = k.before[key]; ok {
		k.gone[key] = value // a key that is retried stays known
	}
	return value, ok
}

// turn drops the keys that have been gone for long enough.
func (k *keys) turn() {
	age := time.Since(k.turned)
	if age < goneFor && len(k.gone) < maxGone {
		return
	}
	k.before, k.gone, k.turned = k.gone, map[string]string{}, time.Now()
	if age >= 2*goneFor {
		k.before = nil
	}
}
