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
	indices []*index
}

// newTable returns a table of objects with indexes over them.
func newTable(objects items, indexers Indexers) *table {
	t := &table{items: objects}
	t.addIndexers(indexers)
	return t
}

// write stores an object under its key, or removes the object that has the key.
type write struct {
	key    string
	obj    any // of a removal: the last state, of which only the resourceVersion counts
	remove bool
}

// apply makes the writes in order. All index functions run before the first write, on the old
// objects too, so one that panics leaves the table as it was.
func (t *table) apply(writes []write) {
	var buffer [8][]string // saves an allocation for one write and up to four indexes
	values := t.appendOldAndNew(buffer[:0], writes)
	n := len(t.indices)
	for i := range writes {
		var e *entry
		if w := &writes[i]; w.remove {
			e = t.items.remove(w.key)
		} else {
			e = t.items.put(w.key, w.obj)
		}
		oldValues, newValues := values[:n], values[n:2*n]
		values = values[2*n:]
		for j, x := range t.indices {
			x.move(e, oldValues[j], newValues[j])
		}
	}
}

// appendOldAndNew appends, for each write, the values of the object under its key in each index:
// those before the write, then those after it.
func (t *table) appendOldAndNew(values [][]string, writes []write) [][]string {
	n := len(t.indices)
	if n == 0 {
		return values
	}
	var after map[string]int // key -> position of the values after the key's last write
	if len(writes) > 1 {
		after = make(map[string]int, len(writes))
	}
	for i := range writes {
		w := &writes[i]
		if last, written := after[w.key]; written {
			values = append(values, values[last:last+n]...)
		} else {
			oldObj, _ := t.items.get(w.key)
			values = t.appendValues(values, w.key, oldObj)
		}
		if after != nil {
			after[w.key] = len(values)
		}
		newObj := w.obj
		if w.remove {
			newObj = nil
		}
		values = t.appendValues(values, w.key, newObj)
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

// addIndexers adds indexes under names that are not taken, and indexes the objects of the table.
func (t *table) addIndexers(indexers Indexers) {
	if len(indexers) == 0 {
		return
	}
	t.items.makeEntries()
	added := make([]*index, 0, len(indexers))
	for name, indexFunc := range indexers {
		added = append(added, &index{name, indexFunc, map[string]entrySet{}})
	}
	for e := range t.items.entries {
		for _, x := range added {
			x.move(e, nil, x.valuesOf(e.key, e.obj))
		}
	}
	t.indices = append(t.indices, added...) // only now: no index function has panicked
}

// lookup returns the index called name.
func (t *table) lookup(name string) (*index, error) {
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
