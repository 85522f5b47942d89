// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"iter"
	"slices"

	"example.com/informerstack/internal/objects"
)

// IndexFunc computes the values under which an object can be found in one index: none, one, or
// several. It must compute the same values from the same object every time, and must not call the
// store.
//
// Source: tools/cache/index.go IndexFunc
type IndexFunc func(obj any) ([]string, error)

// Indexers holds the index functions by index name.
//
//	indexers["byNode"](pod ns/a) = ["node-1"]
//
// Source: tools/cache/index.go Indexers
type Indexers map[string]IndexFunc

// NamespaceIndex is the usual name of the index by namespace.
const NamespaceIndex = "namespace"

// MetaNamespaceIndexFunc is the usual function of the index by namespace.
//
// Source: tools/cache/index.go MetaNamespaceIndexFunc
func MetaNamespaceIndexFunc(obj any) ([]string, error) {
	m, err := objects.Meta(obj)
	if err != nil {
		return nil, err
	}
	return []string{m.GetNamespace()}, nil
}

// index is one index: a function, and the entries by the values that it computes from their
// objects.
//
//	indices["byNode"].sets["node-1"] = {entry of ns/a, entry of ns/b}
//
// Source: tools/cache/index.go index
type index struct {
	name      string
	indexFunc IndexFunc
	sets      map[string]entrySet
}

// valuesOf computes the values of obj; a nil obj has none. An index function that fails is a
// programming error: no caller could decide what to do with the object.
func (x *index) valuesOf(key string, obj any) []string {
	if obj == nil {
		return nil
	}
	values, err := x.indexFunc(obj)
	if err != nil {
		const text = "unable to calculate an index entry for key %q on index %q: %w"
		panic(fmt.Errorf(text, key, x.name, err))
	}
	return values
}

// move takes e out of the sets of the old values and puts it into those of the new ones. A value
// may occur twice.
func (x *index) move(e *entry, oldValues, newValues []string) {
	if slices.Equal(oldValues, newValues) {
		return // the usual update
	}
	for _, value := range oldValues {
		x.remove(value, e)
	}
	for _, value := range newValues {
		x.insert(value, e)
	}
}

func (x *index) insert(value string, e *entry) {
	set := x.sets[value]
	set.insert(e)
	x.sets[value] = set
}

func (x *index) remove(value string, e *entry) {
	set := x.sets[value]
	set.remove(e)
	if set.len() == 0 {
		delete(x.sets, value)
		return
	}
	x.sets[value] = set
}

// entries returns the entries that have the value.
func (x *index) entries(value string) iter.Seq[*entry] {
	return func(yield func(e *entry) bool) {
		for e := range x.sets[value].all {
			if !e.isRemoved() && !yield(e) {
				return
			}
		}
	}
}

// objects returns the objects that have the value.
func (x *index) objects(value string) []any {
	set := x.sets[value]
	objects := make([]any, 0, set.len())
	for e := range set.all {
		if !e.isRemoved() {
			objects = append(objects, e.obj)
		}
	}
	return objects
}

// objectsOfAny returns, each once, the objects that have one of the values.
func (x *index) objectsOfAny(values []string) []any {
	if len(values) == 1 {
		return x.objects(values[0])
	}
	objects, seen, looked := []any{}, map[*entry]bool{}, map[string]bool{}
	for _, value := range values {
		if looked[value] {
			continue
		}
		looked[value] = true
		for e := range x.entries(value) {
			if !seen[e] {
				seen[e] = true
				objects = append(objects, e.obj)
			}
		}
	}
	return objects
}

// keys returns the keys of the objects that have the value.
func (x *index) keys(value string) []string {
	keys := []string{}
	for e := range x.entries(value) {
		keys = append(keys, e.key)
	}
	return keys
}
