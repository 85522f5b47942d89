// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/store"
)

type changeKind uint8

const (
	added changeKind = iota
	updated
	deleted
)

// change is a change of the store, as a handler is notified of it.
type change struct {
	kind    changeKind
	initial bool // added: what OnAdd calls isInInitialList
	resync  bool // updated: a replay of what the store holds; nothing happened
	// unchanged: updated, and both objects have the same resourceVersion
	unchanged bool
	oldObj    any // updated
	newObj    any // added, updated; deleted: the object's last state or its tombstone
}

func add(obj any, initial bool) change {
	return change{kind: added, newObj: obj, initial: initial}
}

func update(oldObj, newObj any, resync bool) change {
	return change{kind: updated, oldObj: oldObj, newObj: newObj, resync: resync}
}

func remove(obj any) change { return change{kind: deleted, newObj: obj} }

// deliver makes the call that c stands for.
func (c *change) deliver(handler ResourceEventHandler) {
	switch c.kind {
	case added:
		handler.OnAdd(c.newObj, c.initial)
	case updated:
		handler.OnUpdate(c.oldObj, c.newObj)
	case deleted:
		handler.OnDelete(c.newObj)
	default:
		panic(fmt.Sprintf("informer: change of kind %d", c.kind)) // broken law: there are three kinds
	}
}

// sameVersion is true if both objects have metadata and the same resourceVersion.
func sameVersion(oldObj, newObj any) bool {
	before, after := metadata(oldObj), metadata(newObj)
	return before != nil && after != nil && before.GetResourceVersion() == after.GetResourceVersion()
}

// recreated is true if both objects have metadata and different UIDs.
func (c *change) recreated() bool {
	if c.kind != updated {
		return false
	}
	before, after := metadata(c.oldObj), metadata(c.newObj)
	return before != nil && after != nil && before.GetUID() != after.GetUID()
}

// split makes the two changes of an update that joined two objects of one name: the old one's end, which nobody saw, and
// the new one's beginning.
func (c *change) split() (end, begin change) {
	key, err := store.MetaNamespaceKeyFunc(c.oldObj)
	if err != nil {
		key = "" // not reached: recreated has read the metadata that the key is made of
	}
	return remove(store.DeletedFinalStateUnknown{Key: key, Obj: c.oldObj}), add(c.newObj, false)
}

// metadata returns nil for an object that has none.
func metadata(obj any) metav1.Object {
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil
	}
	return m
}
