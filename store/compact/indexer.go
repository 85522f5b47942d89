// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"iter"

	"example.com/informerstack/store"
)

// Indexer is a store of packed objects as its readers see it: it packs what it stores, and unpacks
// what it returns.
//
// Every read of a Compressed object that is not among the last ones decodes it, and List decodes
// all. Prefer GetByKey, an index, and ListKeys.
type Indexer struct {
	packer *Packer
	packed store.Indexer
}

var (
	_ store.Indexer = (*Indexer)(nil)
	_ store.Counter = (*Indexer)(nil)
)

// New returns an empty store that keeps objects in a form, under the keys that
// store.DeletionHandlingMetaNamespaceKeyFunc computes. An informer makes its own.
func New(form Form, options store.Options) *Indexer {
	packer := NewPacker(form, options.Indexers)
	options.Indexers = packer.Indexers()
	return packer.Reader(store.New(store.DeletionHandlingMetaNamespaceKeyFunc, options))
}

// Reader returns what readers see of a store of packed objects. The store has the index functions
// that Indexers returned, and no others.
func (p *Packer) Reader(packed store.Indexer) *Indexer { return &Indexer{p, packed} }

// Whole reports whether readers get whole objects: see Form.
func (x *Indexer) Whole() bool { return x.packer.form.Whole() }

// Packed returns the store of packed objects, to measure them.
func (x *Indexer) Packed() store.Indexer { return x.packed }

// Add packs obj and stores it.
func (x *Indexer) Add(obj any) error { return x.write(obj, x.packed.Add) }

// Update packs obj and stores it.
func (x *Indexer) Update(obj any) error { return x.write(obj, x.packed.Update) }

func (x *Indexer) write(obj any, write func(any) error) error {
	p, err := x.packer.Pack(obj)
	if err != nil {
		return err
	}
	return write(p)
}

// Delete removes the object that has obj's key.
func (x *Indexer) Delete(obj any) error { return x.packed.Delete(obj) }

// Replace makes the store hold exactly list, or leaves it as it was and returns an error.
func (x *Indexer) Replace(list []any, resourceVersion string) error {
	packed := make([]any, len(list))
	for i, obj := range list {
		var err error
		if packed[i], err = x.packer.Pack(obj); err != nil {
			return err
		}
	}
	return x.packed.Replace(packed, resourceVersion)
}

// List returns every object.
func (x *Indexer) List() []any { return x.unpack(x.packed.List()) }

// All yields every object, as List returns them, but unpacks one after the other.
func (x *Indexer) All() iter.Seq[any] { return x.each(x.packed.List()) }

// AllByIndex yields the objects that ByIndex returns, but unpacks one after the other.
func (x *Indexer) AllByIndex(indexName, indexedValue string) (iter.Seq[any], error) {
	found, err := x.packed.ByIndex(indexName, indexedValue)
	return x.each(found), err
}

func (x *Indexer) each(packed []any) iter.Seq[any] {
	return func(yield func(obj any) bool) {
		for _, obj := range packed {
			if !yield(x.packer.Unpack(obj)) {
				return
			}
		}
	}
}

// ListKeys returns every key. It unpacks nothing.
func (x *Indexer) ListKeys() []string { return x.packed.ListKeys() }

// Len is the number of objects.
func (x *Indexer) Len() int { return store.Len(x.packed) }

// Get finds the object that has obj's key.
func (x *Indexer) Get(obj any) (item any, exists bool, err error) {
	item, exists, err = x.packed.Get(obj)
	return x.packer.Unpack(item), exists, err
}

// GetByKey finds the object stored under key.
func (x *Indexer) GetByKey(key string) (item any, exists bool, err error) {
	item, exists, err = x.packed.GetByKey(key)
	return x.packer.Unpack(item), exists, err
}

// Index returns the objects that share a value with obj, which must be a whole object: an index is
// not computed from a part of one.
func (x *Indexer) Index(indexName string, obj any) ([]any, error) {
	found, err := x.packed.Index(indexName, obj)
	return x.unpack(found), err
}

// ByIndex returns the objects that have indexedValue.
func (x *Indexer) ByIndex(indexName, indexedValue string) ([]any, error) {
	found, err := x.packed.ByIndex(indexName, indexedValue)
	return x.unpack(found), err
}

// IndexKeys returns the sorted keys of the objects that have indexedValue. It unpacks nothing.
func (x *Indexer) IndexKeys(indexName, indexedValue string) ([]string, error) {
	return x.packed.IndexKeys(indexName, indexedValue)
}

// ListIndexFuncValues returns the values of the index.
func (x *Indexer) ListIndexFuncValues(indexName string) []string {
	return x.packed.ListIndexFuncValues(indexName)
}

// GetIndexers returns a copy of the index functions, which take whole objects.
func (x *Indexer) GetIndexers() store.Indexers { return x.packer.indexers() }

// AddIndexers adds all of newIndexers, or adds nothing. Unless the form is Whole, it fails once an
// object was received: what the functions would need is gone.
func (x *Indexer) AddIndexers(newIndexers store.Indexers) error {
	return x.packer.addIndexers(x.packed, newIndexers)
}

// Resync does nothing.
func (x *Indexer) Resync() error { return x.packed.Resync() }

// Bookmark notes a new resourceVersion, without a change of any object.
func (x *Indexer) Bookmark(resourceVersion string) { x.packed.Bookmark(resourceVersion) }

// LastStoreSyncResourceVersion is the resourceVersion that reached the store last.
func (x *Indexer) LastStoreSyncResourceVersion() string {
	return x.packed.LastStoreSyncResourceVersion()
}

func (x *Indexer) unpack(list []any) []any {
	for i, obj := range list { // the caller owns the slice
		list[i] = x.packer.Unpack(obj)
	}
	return list
}
