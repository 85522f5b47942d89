// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
)

// index is one index: a function, and the entries by the values that it computes from their
// objects.
//
//	sets["node-1"] = {entry of ns/a, entry of ns/b}
//
// Source: tools/cache/index.go index
type index struct {
	name      string
	indexFunc IndexFunc
	sets      map[string]entrySet
}

// newIndices returns indexes over items.
func newIndices(items map[string]*entry, indexers Indexers) []*index {
	indices := make([]*index, 0, len(indexers))
	for name, indexFunc := range indexers {
		indices = append(indices, &index{name, indexFunc, map[string]entrySet{}})
	}
	for _, e := range items {
		for _, x := range indices {
			x.move(e, nil, x.valuesOf(e.key, e.obj))
		}
	}
	return indices
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

// entries returns the entries that have the value, without those that were removed: see S1.
func (x *index) entries(value string) iter.Seq[*entry] {
	return func(yield func(e *entry) bool) {
		for e := range x.sets[value].all {
			if e.obj != (removed{}) && !yield(e) {
				return
			}
		}
	}
}

// objects returns, each once, the objects that have one of the values.
func (x *index) objects(values ...string) []any {
	if len(values) == 1 {
		objects := make([]any, 0, x.sets[values[0]].len())
		for e := range x.entries(values[0]) {
			objects = append(objects, e.obj)
		}
		return objects
	}
	objects, seen := []any{}, map[*entry]bool{}
	for value := range sets.New(values...) {
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
