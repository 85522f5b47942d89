// SPDX-License-Identifier: Apache-2.0

package adapt

import (
	"errors"

	"k8s.io/client-go/tools/cache"

	"example.com/informerstack/store"
)

// NewIndexer returns an empty store of ours with client-go's types. The store calls keyFunc and the
// index functions with the arguments of its methods.
//
// Source: tools/cache/store.go NewIndexer
func NewIndexer(keyFunc cache.KeyFunc, indexers cache.Indexers) cache.Indexer {
	options := store.Options{Indexers: CoreIndexers(indexers)}
	return indexer{store.New(store.KeyFunc(keyFunc), options)}
}

// Indexer returns a store of package store, such as an informer's, with client-go's types. Both may
// be used at once. The store's key function is one of package store: it gets client-go's tombstones
// and explicit keys as that package's.
func Indexer(core store.Indexer) cache.Indexer { return keyIndexer{indexer{core}} }

// CoreIndexers returns the same index functions for an informer or a store of ours.
func CoreIndexers(indexers cache.Indexers) store.Indexers {
	converted := make(store.Indexers, len(indexers))
	for name, indexFunc := range indexers {
		converted[name] = store.IndexFunc(indexFunc)
	}
	return converted
}

// indexer is a store of ours with client-go's types of index functions and errors.
type indexer struct{ store.Indexer }

// GetIndexers implements cache.Indexer.
func (i indexer) GetIndexers() cache.Indexers {
	indexers := i.Indexer.GetIndexers()
	converted := make(cache.Indexers, len(indexers))
	for name, indexFunc := range indexers {
		converted[name] = cache.IndexFunc(indexFunc)
	}
	return converted
}

// AddIndexers implements cache.Indexer.
func (i indexer) AddIndexers(newIndexers cache.Indexers) error {
	return i.Indexer.AddIndexers(CoreIndexers(newIndexers))
}

// Add implements cache.Store.
func (i indexer) Add(obj any) error { return keyError(i.Indexer.Add(obj)) }

// Update implements cache.Store.
func (i indexer) Update(obj any) error { return keyError(i.Indexer.Update(obj)) }

// Delete implements cache.Store.
func (i indexer) Delete(obj any) error { return keyError(i.Indexer.Delete(obj)) }

// Get implements cache.Store.
func (i indexer) Get(obj any) (item any, exists bool, err error) {
	item, exists, err = i.Indexer.Get(obj)
	return item, exists, keyError(err)
}

// Replace implements cache.Store.
func (i indexer) Replace(list []any, resourceVersion string) error {
	return keyError(i.Indexer.Replace(list, resourceVersion))
}

// keyError returns err, as client-go's KeyError if it is one of ours.
func keyError(err error) error {
	var noKey store.KeyError
	if err != nil && errors.As(err, &noKey) {
		return cache.KeyError(noKey)
	}
	return err
}

// keyIndexer is an indexer that also finds objects by client-go's tombstones and explicit keys.
type keyIndexer struct{ indexer }

// Delete implements cache.Store.
func (i keyIndexer) Delete(obj any) error { return i.indexer.Delete(coreKey(obj)) }

// Get implements cache.Store.
func (i keyIndexer) Get(obj any) (item any, exists bool, err error) {
	return i.indexer.Get(coreKey(obj))
}

// coreKey returns obj, as package store's type if it is a tombstone or an explicit key.
func coreKey(obj any) any {
	switch o := obj.(type) {
	case cache.DeletedFinalStateUnknown:
		return store.DeletedFinalStateUnknown(o)
	case cache.ExplicitKey:
		return store.ExplicitKey(o)
	}
	return obj
}
