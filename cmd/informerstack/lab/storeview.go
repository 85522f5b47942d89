// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"example.com/informerstack/informer"
	"example.com/informerstack/internal/helpers/printable"
	"example.com/informerstack/store"
)

// The lists of a store with more than largeStore objects are made at most once in largePeriod.
const (
	largeStore  = 500
	largePeriod = 500 * time.Millisecond
)

// storeView is the description of a store, which is kept for a while if the store is large.
type storeView struct {
	view  StoreView
	index string
	at    time.Time
}

// update returns the description of objects, with the index of this name.
func (v *storeView) update(
	objects store.Indexer, index, followed string, now time.Time,
) StoreView {
	n := store.Len(objects)
	if v.at.IsZero() || index != v.index || n <= largeStore || now.Sub(v.at) >= largePeriod {
		keys := first(objects.ListKeys(), followed)
		v.view = StoreView{Items: make([]StoreItem, 0, len(keys)), Index: indexView(objects, index)}
		for _, key := range keys {
			obj, exists, err := objects.GetByKey(key)
			if err != nil || !exists {
				continue
			}
			_, rv := identity(obj)
			v.view.Items = append(v.view.Items,
				StoreItem{printable.Short(key), rv, valuesOf(obj, objects.GetIndexers()[index])})
		}
		v.index, v.at = index, now
	}
	v.view.Objects = n
	return v.view
}

// valuesOf returns what an index function returns for an object.
func valuesOf(obj any, indexFunc store.IndexFunc) []string {
	if indexFunc == nil {
		return []string{}
	}
	values, err := indexFunc(obj)
	if err != nil {
		return []string{}
	}
	return rows(values, printable.Short)
}

// first returns the first maxRows keys in alphabetical order. The followed key is among them if it
// is in keys.
func first(keys []string, followed string) []string {
	var lowest []string
	hasFollowed := false
	for _, key := range keys {
		hasFollowed = hasFollowed || key == followed
		if len(lowest) == maxRows && key >= lowest[maxRows-1] {
			continue
		}
		at, _ := slices.BinarySearch(lowest, key)
		lowest = slices.Insert(lowest, at, key)
		lowest = lowest[:min(len(lowest), maxRows)]
	}
	if hasFollowed && !slices.Contains(lowest, followed) {
		lowest[len(lowest)-1] = followed
	}
	return lowest
}

// indexView describes an index.
func indexView(objects store.Indexer, name string) IndexView {
	v := IndexView{Name: name, Values: []IndexValue{}}
	values := objects.ListIndexFuncValues(name)
	slices.Sort(values)
	for _, value := range values[:min(len(values), maxRows)] {
		keys, err := objects.IndexKeys(name, value)
		if err != nil {
			continue
		}
		slices.Sort(keys)
		v.Values = append(v.Values, IndexValue{
			printable.Short(value), len(keys), rows(keys, printable.Short),
		})
	}
	return v
}

// labelIndex is the prefix of the name of an index by the value of a label.
const labelIndex = "label:"

// indexFunc returns the index function of a name that a reader has chosen, or nil.
func indexFunc(name string) store.IndexFunc {
	if name == ownerIndex {
		return ownersOf
	}
	label, ok := strings.CutPrefix(name, labelIndex)
	if !ok || label == "" || len(label) > 317 { // prefix, slash and name of a label's key
		return nil
	}
	return func(obj any) ([]string, error) {
		m, err := meta.Accessor(obj)
		if err != nil {
			return nil, err
		}
		value, ok := m.GetLabels()[label]
		if !ok {
			return nil, nil
		}
		return []string{value}, nil
	}
}

// maxIndexes bounds the number of indexes that readers add.
const maxIndexes = 10

// addIndex adds the index of this name, unless the informer has it.
func addIndex(indexed informer.SharedIndexInformer, name string) error {
	indexers := indexed.GetIndexer().GetIndexers()
	if indexers[name] != nil {
		return nil
	}
	f := indexFunc(name)
	switch {
	case f == nil:
		return fmt.Errorf("index %q: want namespace, owner or label:NAME", printable.Short(name))
	case len(indexers) >= maxIndexes:
		return fmt.Errorf("there are %d indexes already", len(indexers))
	}
	return indexed.AddIndexers(store.Indexers{name: f})
}
