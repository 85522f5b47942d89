// SPDX-License-Identifier: Apache-2.0

package store

import "fmt"

// valueIndex is one index: a function, and for each value that it computed the objects that have it.
type valueIndex struct {
	name      string
	indexFunc IndexFunc
	sets      map[string]slotSet
}

// valuesOf computes the values of obj, none if obj is nil. An index function that fails is a programming error, as nobody
// is left who could decide what to do with the object.
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

// insertAll returns under how many of the values slot n was new.
func (x *valueIndex) insertAll(values []string, n uint32) (inserted uint32) {
	for _, v := range values {
		if x.insert(v, n) {
			inserted++
		}
	}
	return inserted
}

// insert reports whether slot n was new under value.
func (x *valueIndex) insert(value string, n uint32) bool {
	set, exists := x.sets[value]
	switch {
	case !exists:
		x.sets[value] = slotSet{one: n}
		return true
	case set.many != nil:
		return set.many.insert(n)
	case set.one == n:
		return false
	}
	both := newSlotTable(minCells)
	both.insert(set.one)
	both.insert(n)
	x.sets[value] = slotSet{many: both}
	return true
}

// deleteAll returns under how many of the values slot n was.
func (x *valueIndex) deleteAll(values []string, n uint32) (deleted uint32) {
	for _, v := range values {
		if x.delete(v, n) {
			deleted++
		}
	}
	return deleted
}

// delete reports whether slot n was there under value.
func (x *valueIndex) delete(value string, n uint32) bool {
	set, exists := x.sets[value]
	switch {
	case !exists || !set.has(n):
		return false
	case set.many == nil:
		delete(x.sets, value)
		return true
	}
	set.many.delete(n)
	if set.many.count == 1 {
		for last := range set.all {
			x.sets[value] = slotSet{one: last}
		}
	}
	return true
}

// purge takes slot n out of every set, and returns how many held it. It reads the whole index.
func (x *valueIndex) purge(n uint32) uint32 {
	var purged uint32
	for value := range x.sets {
		if x.delete(value, n) {
			purged++
		}
	}
	return purged
}
