// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"slices"
)

// table is a map of objects with indexes over it, without a lock.
//
// Each object stands in a slot, and inside the indexes its slot number stands for its key: four bytes instead of a string,
// and the way from an indexed value to its objects needs no second search by key.
//
//	items[key]                         = slot number
//	slots[slot number]                 = key and object
//	indices[index name].sets[value]    = set of slot numbers, to be read as a set of keys
//
// Laws:
//
//	S1  items[k] = n  <=>  slots[n] is live with key k; any other slot is in free, once, and holds nothing
//	S2  n in indices[i].sets[v]  <=>  v in indices[i].indexFunc(slots[n].obj)
//	S3  no set is empty, and a set of one has no table
//	S4  slots[n].refs = how many sets hold n
//
// S2 trusts that nobody changes a stored object in place. Where that happened, an object can be found under the values it
// had when it was stored; by S4 its slot is still cleared out of every set before another object gets it.
type table struct {
	items   map[string]uint32
	slots   []slot
	free    []uint32
	indices []*valueIndex

	oldValues, newValues [][]string // scratch, empty between calls
}

type slot struct {
	key  string
	obj  any
	refs uint32
	live bool
}

func newTable(indexers Indexers, size int) *table {
	t := &table{items: make(map[string]uint32, size), slots: make([]slot, 0, size)}
	t.addIndexers(indexers)
	return t
}

// get finds the object under key.
func (t *table) get(key string) (obj any, exists bool) {
	n, exists := t.items[key]
	if !exists {
		return nil, false
	}
	return t.slots[n].obj, true
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
	n, exists := t.items[key]
	if !exists {
		n = t.allocate(key)
		t.items[key] = n
	}
	t.index(n, obj, values)
	t.slots[n].obj = obj
}

// remove drops what stands under key.
func (t *table) remove(key string) {
	n, exists := t.items[key]
	if !exists {
		return
	}
	t.index(n, nil, nil)
	for _, x := range t.indices {
		if t.slots[n].refs > 0 { // its object was changed in place
			t.slots[n].refs -= x.purge(n)
		}
	}
	delete(t.items, key)
	t.slots[n] = slot{}
	t.free = append(t.free, n)
}

// allocate returns a live slot without an object.
func (t *table) allocate(key string) uint32 {
	n := uint32(len(t.slots))
	if last := len(t.free) - 1; last >= 0 {
		n = t.free[last]
		t.free = t.free[:last]
	} else {
		t.slots = append(t.slots, slot{})
	}
	t.slots[n] = slot{key: key, live: true}
	return n
}

// appendValues appends what each index function computes from obj, in the order of t.indices; nothing for a nil obj.
// It panics if one fails, so it runs before anything is changed.
func (t *table) appendValues(values [][]string, key string, obj any) [][]string {
	for _, x := range t.indices {
		values = append(values, x.valuesOf(key, obj))
	}
	return values
}

// index moves slot n in every index from the values of its object to those of newObj, or out of them if newValues is nil.
func (t *table) index(n uint32, newObj any, newValues [][]string) {
	s := &t.slots[n]
	oldValues := t.appendValues(t.oldValues[:0], s.key, s.obj)
	for i, x := range t.indices {
		var values []string
		if newValues != nil {
			values = newValues[i]
		}
		if len(values) == 1 && len(oldValues[i]) == 1 && values[0] == oldValues[i][0] {
			continue // the usual update
		}
		for j, v := range oldValues[i] {
			switch {
			case x.delete(v, n):
				s.refs--
			case !slices.Contains(oldValues[i][:j], v): // the object was changed in place: search the values it had
				s.refs -= x.purge(n)
			}
		}
		for _, v := range values {
			if x.insert(v, n) {
				s.refs++
			}
		}
	}
	clear(oldValues)
	t.oldValues = oldValues[:0]
}

// addIndexers adds indexes under names that are not taken, and indexes what the table holds.
func (t *table) addIndexers(indexers Indexers) {
	added := make([]*valueIndex, 0, len(indexers))
	for name, indexFunc := range indexers {
		x := &valueIndex{name: name, indexFunc: indexFunc, sets: map[string]slotSet{}}
		for n := range t.slots {
			for _, v := range x.valuesOf(t.slots[n].key, t.slots[n].obj) {
				x.insert(v, uint32(n))
			}
		}
		added = append(added, x)
	}
	for _, x := range added { // every index function has succeeded
		for _, set := range x.sets {
			for n := range set.all {
				t.slots[n].refs++
			}
		}
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
	return nil, fmt.Errorf("Index with name %s does not exist", name) //nolint:staticcheck // callers know this text
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
