// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"slices"
)

// table is a map of objects with indexes over it, without a lock.
//
// Each object has a slot, and inside the indexes its slot number stands for its key: four bytes instead of a string, and
// the way from an indexed value to its objects needs no search by key.
//
//	items[key]                         = object and slot number
//	slots[slot number]                 = key and object
//	indices[index name].sets[value]    = set of slot numbers, to be read as a set of keys
//
// Laws:
//
//	S1  items[k] has slot n  <=>  slots[n] has key k, and then both have the same object;
//	    any other slot is vacant, and is in free once
//	S2  n in indices[i].sets[v]  <=>  v in indices[i].indexFunc(slots[n].obj)
//	S3  no set is empty, and a set of one has no table
//	S4  items[k].refs = how many sets hold k's slot
//
// S2 trusts that nobody changes a stored object in place. Where that happened, the object is found under the values it had
// when it was stored. When its values change the next time, or when it leaves, S4 shows that the sets must be searched.
type table struct {
	items   map[string]item
	slots   []slot
	free    []uint32
	indices []*valueIndex

	oldValues, newValues [][]string // scratch; the next call overwrites what a panic left
}

type item struct {
	obj  any
	slot uint32
	refs uint32
}

type slot struct {
	key string // the string that is the key in items
	obj any    // vacant{} if nobody has the slot
}

type vacant struct{}

func newTable(indexers Indexers, size int) *table {
	t := &table{items: make(map[string]item, size), slots: make([]slot, 0, size)}
	t.addIndexers(indexers)
	return t
}

// apply makes the changes in order. Index functions see every new object before the first change is made.
func (t *table) apply(txns []ThreadSafeStoreTransaction) {
	values := t.newValues[:0]
	for i := range txns {
		if txns[i].stores() {
			values = t.appendValues(values, txns[i].Key, txns[i].Object)
		}
	}
	rest := values
	for i := range txns {
		switch txn := &txns[i]; {
		case txn.stores():
			t.put(txn.Key, txn.Object, rest[:len(t.indices)])
			rest = rest[len(t.indices):]
		case txn.Type == TransactionTypeDelete:
			t.remove(txn.Key)
		}
	}
	clear(values)
	t.newValues = values[:0]
}

// add stores obj under key.
func (t *table) add(key string, obj any) {
	values := t.appendValues(t.newValues[:0], key, obj)
	t.put(key, obj, values)
	clear(values)
	t.newValues = values[:0]
}

// put stores obj under key. values is what appendValues computed from obj.
func (t *table) put(key string, obj any, values [][]string) {
	it, exists := t.items[key]
	if !exists {
		it.slot = t.allocate()
	}
	t.index(key, &it, values)
	it.obj = obj
	t.items[key] = it // takes this key string in place of the old one
	t.slots[it.slot] = slot{key: key, obj: obj}
}

// remove drops what stands under key.
func (t *table) remove(key string) {
	it, exists := t.items[key]
	if !exists {
		return
	}
	t.index(key, &it, nil)
	delete(t.items, key)
	t.slots[it.slot] = slot{obj: vacant{}}
	t.free = append(t.free, it.slot)
}

// allocate returns a slot for the caller to fill.
func (t *table) allocate() uint32 {
	if last := len(t.free) - 1; last >= 0 {
		n := t.free[last]
		t.free = t.free[:last]
		return n
	}
	t.slots = append(t.slots, slot{})
	return uint32(len(t.slots) - 1)
}

// appendValues appends what each index function computes from obj, in the order of t.indices; nothing for a nil obj.
// It panics if one fails, so it runs before anything is changed.
func (t *table) appendValues(values [][]string, key string, obj any) [][]string {
	for _, x := range t.indices {
		values = append(values, x.valuesOf(key, obj))
	}
	return values
}

// index moves an item, in every index, from the values of its object to newValues, which is nil for no values at all.
func (t *table) index(key string, it *item, newValues [][]string) {
	oldValues := t.appendValues(t.oldValues[:0], key, it.obj)
	for i, x := range t.indices {
		var values []string
		if newValues != nil {
			values = newValues[i]
		}
		if len(values) == 1 && len(oldValues[i]) == 1 && values[0] == oldValues[i][0] {
			continue // the usual update
		}
		it.refs -= x.deleteAll(oldValues[i], it.slot)
		it.refs += x.insertAll(values, it.slot)
	}
	clear(oldValues)
	t.oldValues = oldValues[:0]
	if it.refs != countDistinct(newValues) { // breaks S4
		t.reindex(it, newValues)
	}
}

// reindex searches every set for an item whose object was changed in place: its values are not those it stands under.
func (t *table) reindex(it *item, values [][]string) {
	for i, x := range t.indices {
		it.refs -= x.purge(it.slot)
		if values != nil {
			it.refs += x.insertAll(values[i], it.slot)
		}
	}
}

// countDistinct returns in how many sets an object with these values is.
func countDistinct(values [][]string) uint32 {
	count := uint32(0)
	for _, ofIndex := range values {
		for i, v := range ofIndex {
			if !slices.Contains(ofIndex[:i], v) {
				count++
			}
		}
	}
	return count
}

// addIndexers adds indexes under names that are not taken, and indexes what the table holds.
func (t *table) addIndexers(indexers Indexers) {
	if len(indexers) == 0 {
		return
	}
	added := make([]*valueIndex, 0, len(indexers))
	refs := make([]uint32, len(t.slots))
	for name, indexFunc := range indexers {
		x := &valueIndex{name: name, indexFunc: indexFunc, sets: map[string]slotSet{}}
		for key, it := range t.items {
			refs[it.slot] += x.insertAll(x.valuesOf(key, it.obj), it.slot)
		}
		added = append(added, x)
	}
	// Every index function has succeeded.
	for key, it := range t.items {
		it.refs += refs[it.slot]
		t.items[key] = it
	}
	t.indices = append(t.indices, added...)
}

// lookup returns the index called name, or an error that says there is none.
func (t *table) lookup(name string) (*valueIndex, error) {
	for _, x := range t.indices { // a handful: faster than a map
		if x.name == name {
			return x, nil
		}
	}
	return nil, fmt.Errorf("Index with name %s does not exist", name) // callers know this text
}

// indexers returns the index functions by name.
func (t *table) indexers() Indexers {
	indexers := make(Indexers, len(t.indices))
	for _, x := range t.indices {
		indexers[x.name] = x.indexFunc
	}
	return indexers
}

// objects returns, each once, the objects that have one of the values.
func (t *table) objects(indexName string, values ...string) ([]any, error) {
	x, err := t.lookup(indexName)
	if err != nil {
		return nil, err
	}
	if len(values) == 1 {
		set, exists := x.sets[values[0]]
		if !exists {
			return []any{}, nil
		}
		list := make([]any, 0, set.len())
		for n := range set.all {
			list = append(list, t.slots[n].obj)
		}
		return list, nil
	}
	list, seen := []any{}, newSlotTable(minCells)
	for _, v := range values {
		set, exists := x.sets[v]
		if !exists {
			continue
		}
		for n := range set.all {
			if seen.insert(n) {
				list = append(list, t.slots[n].obj)
			}
		}
	}
	return list, nil
}

// keys returns the keys of the objects that have the value.
func (t *table) keys(indexName, value string) ([]string, error) {
	x, err := t.lookup(indexName)
	if err != nil {
		return nil, err
	}
	set, exists := x.sets[value]
	if !exists {
		return []string{}, nil
	}
	keys := make([]string, 0, set.len())
	for n := range set.all {
		keys = append(keys, t.slots[n].key)
	}
	return keys, nil
}
