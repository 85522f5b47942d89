// SPDX-License-Identifier: Apache-2.0

package store

import "fmt"

// table is a map of objects with indexes over it, without a lock.
//
//	items[key]                       = object, and its entry
//	indices[index name].sets[value]  = set of entries; an entry is a key and its object
//
// Laws:
//
//	S1  e in indices[i].sets[v]  <=>  v in indices[i].indexFunc(e.obj)
//	S2  no set is empty
//
// S1 holds as long as no stored object is changed in place. An object that was changed can stay
// under a value that it no longer has, until it is removed; a removed entry is never returned.
type table struct {
	items   items
	indices []*valueIndex
}

// newTable returns an empty table with room for size objects.
func newTable(size int, indexers Indexers) *table {
	t := &table{items: newItems(size, len(indexers) > 0)}
	t.addIndexers(indexers)
	return t
}

// put stores obj under key.
func (t *table) put(key string, obj any) {
	t.apply([]ThreadSafeStoreTransaction{{Transaction{obj, TransactionTypeUpdate}, key}})
}

// apply makes the changes in order. All index functions run before the first change, on the old
// objects too, so one that panics leaves the table as it was.
func (t *table) apply(txns []ThreadSafeStoreTransaction) {
	var buffer [8][]string // saves an allocation for one change and up to four indexes
	values := t.appendOldAndNew(buffer[:0], txns)
	n := len(t.indices)
	for i := range txns {
		var e *entry
		switch txn := &txns[i]; {
		case txn.stores():
			e = t.items.put(txn.Key, txn.Object)
		case txn.Type == TransactionTypeDelete:
			e = t.items.remove(txn.Key)
		}
		oldValues, newValues := values[:n], values[n:2*n]
		values = values[2*n:]
		for j, x := range t.indices {
			x.move(e, oldValues[j], newValues[j])
		}
	}
}

// appendOldAndNew appends, for each change, the values of the object under its key in each index:
// those before the change, then those after it.
func (t *table) appendOldAndNew(values [][]string, txns []ThreadSafeStoreTransaction) [][]string {
	n := len(t.indices)
	if n == 0 {
		return values
	}
	var after map[string]int // key -> position of the values after the key's last change
	if len(txns) > 1 {
		after = make(map[string]int, len(txns))
	}
	for i := range txns {
		txn, at := &txns[i], len(values)
		if last, changed := after[txn.Key]; changed {
			values = append(values, values[last:last+n]...)
		} else {
			oldObj, _ := t.items.get(txn.Key)
			values = t.appendValues(values, txn.Key, oldObj)
		}
		switch {
		case txn.stores():
			values = t.appendValues(values, txn.Key, txn.Object)
		case txn.Type == TransactionTypeDelete:
			values = t.appendValues(values, txn.Key, nil)
		default: // changes nothing
			values = append(values, values[at:at+n]...)
		}
		if after != nil {
			after[txn.Key] = at + n
		}
	}
	return values
}

// appendValues appends the values of obj in each index.
func (t *table) appendValues(values [][]string, key string, obj any) [][]string {
	for _, x := range t.indices {
		values = append(values, x.valuesOf(key, obj))
	}
	return values
}

// addIndexers adds indexes under names that are not taken, and indexes what the table holds.
func (t *table) addIndexers(indexers Indexers) {
	if len(indexers) == 0 {
		return
	}
	t.items.makeEntries()
	added := make([]*valueIndex, 0, len(indexers))
	for name, indexFunc := range indexers {
		added = append(added, &valueIndex{name: name, indexFunc: indexFunc, sets: map[string]entrySet{}})
	}
	for e := range t.items.entries {
		for _, x := range added {
			x.move(e, nil, x.valuesOf(e.key, e.obj))
		}
	}
	t.indices = append(t.indices, added...) // only now: no index function has panicked
}

// lookup returns the index called name.
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
		return x.objects(values[0]), nil
	}
	objects, seen := []any{}, map[*entry]bool{}
	for _, value := range values {
		for e := range x.entries(value) {
			if !seen[e] {
				seen[e] = true
				objects = append(objects, e.obj)
			}
		}
	}
	return objects, nil
}
