// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"iter"
	"slices"
)

// valueIndex is one index: a function, and the entries by the values that it computes from their
// objects.
type valueIndex struct {
	name      string
	indexFunc IndexFunc
	sets      map[string]entrySet
}

// valuesOf computes the values of obj; a nil obj has none. An index function that fails is a
// programming error: no caller could decide what to do with the object.
func (x *valueIndex) valuesOf(key string, obj any) []string {
	if obj == nil {
		return nil
	}
	values, err := x.indexFunc(obj)
	if err != nil {
		panic(fmt.Errorf("unable to calculate an index entry for key %q on index %q: %w", key, x.name, err))
	}
	return values
}

// move takes e out of the sets of the old values and puts it into those of the new ones. A value
// may occur twice.
func (x *valueIndex) move(e *entry, oldValues, newValues []string) {
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

func (x *valueIndex) insert(value string, e *entry) {
	set := x.sets[value]
	set.insert(e)
	x.sets[value] = set
}

func (x *valueIndex) remove(value string, e *entry) {
	set := x.sets[value]
	set.remove(e)
	if set.len() == 0 {
		delete(x.sets, value)
		return
	}
	x.sets[value] = set
}

// entries returns the entries that have the value.
func (x *valueIndex) entries(value string) iter.Seq[*entry] {
	return func(yield func(e *entry) bool) {
		for e := range x.sets[value].all {
			if !e.isRemoved() && !yield(e) {
				return
			}
		}
	}
}

// objects returns the objects that have the value.
func (x *valueIndex) objects(value string) []any {
	set := x.sets[value]
	objects := make([]any, 0, set.len())
	for e := range set.all {
		if !e.isRemoved() {
			objects = append(objects, e.obj)
		}
	}
	return objects
}

// keys returns the keys of the objects that have the value.
func (x *valueIndex) keys(value string) []string {
	keys := []string{}
	for e := range x.entries(value) {
		keys = append(keys, e.key)
	}
	return keys
}
