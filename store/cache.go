// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
)

// cache is the Indexer: a threadSafeMap whose keys are computed from the objects.
//
// An object passes keyFunc, then the transformer, then it is stored. If one of the first two fails, the store is as
// before.
//
// Source: tools/cache/store.go cache
type cache struct {
	keyFunc     KeyFunc
	transformer TransformFunc // nil: store what comes
	storage     *threadSafeMap
}

var (
	_ Indexer          = (*cache)(nil)
	_ TransactionStore = (*cache)(nil)
	_ Snapshotter      = (*cache)(nil)
)

// Option changes how New and NewIndexer build a store.
type Option = func(*cache)

// WithTransformer passes each object that is stored, though not what Delete is given, through transform first. The
// key is computed before.
func WithTransformer(transform TransformFunc) Option {
	return func(c *cache) { c.transformer = transform }
}

// WithStoreMetrics reports each new LastStoreSyncResourceVersion to gauge, or the number in its last 15 digits.
func WithStoreMetrics(gauge GaugeMetric) Option {
	return func(c *cache) { c.storage.gauge = gauge }
}

// WithResourceVersionHidden makes LastStoreSyncResourceVersion "" whenever hidden says so: for a store that is filled object
// by object even when a whole list comes, and so has no one resourceVersion meanwhile.
func WithResourceVersionHidden(hidden func() bool) Option {
	return func(c *cache) { c.storage.hidden = hidden }
}

// WithoutObjectVersions makes only Replace and Bookmark set LastStoreSyncResourceVersion, not the objects that
// are stored: for a store that receives changes in another order than that of their resourceVersions.
func WithoutObjectVersions() Option {
	return func(c *cache) { c.storage.ignoreObjectVersions = true }
}

// New returns an empty store without indexes. It is also a TransactionStore and a Snapshotter.
//
// Source: tools/cache/store.go NewStore
func New(keyFunc KeyFunc, opts ...Option) Store {
	return newCache(keyFunc, nil, opts)
}

// NewIndexer returns an empty store with indexes. It is also a TransactionStore and a Snapshotter.
//
// Source: tools/cache/store.go NewIndexer
func NewIndexer(keyFunc KeyFunc, indexers Indexers, opts ...Option) Indexer {
	return newCache(keyFunc, indexers, opts)
}

func newCache(keyFunc KeyFunc, indexers Indexers, opts []Option) *cache {
	c := &cache{keyFunc: keyFunc, storage: newThreadSafeMap(indexers)}
	for _, opt := range opts {
		opt(c)
	}
	return c
}

// Add stores obj.
func (c *cache) Add(obj any) error { return c.Update(obj) }

// Update stores obj.
func (c *cache) Update(obj any) error {
	key, obj, err := c.keyAndTransform(obj)
	if err != nil {
		return err
	}
	c.storage.Update(key, obj)
	return nil
}

// Delete removes the object that has obj's key.
func (c *cache) Delete(obj any) error {
	key, err := c.key(obj)
	if err != nil {
		return err
	}
	c.storage.DeleteWithObject(key, obj)
	return nil
}

// Replace makes the store hold exactly list, or, on an error, what it held.
func (c *cache) Replace(list []any, resourceVersion string) error {
	all := make([]keyed, len(list))
	for i, obj := range list {
		key, obj, err := c.keyAndTransform(obj)
		if err != nil {
			return err
		}
		all[i] = keyed{key, obj}
	}
	c.storage.replace(all, resourceVersion)
	return nil
}

func (c *cache) key(obj any) (string, error) {
	key, err := c.keyFunc(obj)
	if err != nil {
		return "", KeyError{obj, err}
	}
	return key, nil
}

var errTransformedToNil = errors.New("the result is nil")

func (c *cache) keyAndTransform(obj any) (key string, transformed any, err error) {
	key, err = c.key(obj)
	if err != nil || c.transformer == nil {
		return key, obj, err
	}
	transformed, err = c.transformer(obj)
	if err == nil && isNil(transformed) {
		err = errTransformedToNil
	}
	if err != nil {
		return "", nil, fmt.Errorf("transforming: %w", err)
	}
	return key, transformed, nil
}

// Get finds the object that has obj's key.
func (c *cache) Get(obj any) (item any, exists bool, err error) {
	key, err := c.key(obj)
	if err != nil {
		return nil, false, err
	}
	return c.GetByKey(key)
}

// GetByKey finds the object stored under key. It never fails.
func (c *cache) GetByKey(key string) (item any, exists bool, err error) {
	item, exists = c.storage.Get(key)
	return item, exists, nil
}

// The rest is the map's.

// List returns every object.
func (c *cache) List() []any { return c.storage.List() }

// ListKeys returns every key.
func (c *cache) ListKeys() []string { return c.storage.ListKeys() }

// Resync does nothing.
func (c *cache) Resync() error { return nil }

// Bookmark notes a resourceVersion at which no object changed.
func (c *cache) Bookmark(resourceVersion string) { c.storage.Bookmark(resourceVersion) }

// LastStoreSyncResourceVersion is the newest resourceVersion that reached the store.
func (c *cache) LastStoreSyncResourceVersion() string {
	return c.storage.LastStoreSyncResourceVersion()
}

// GetIndexers returns a copy of the index functions.
func (c *cache) GetIndexers() Indexers { return c.storage.GetIndexers() }

// AddIndexers adds all of newIndexers, or none.
func (c *cache) AddIndexers(newIndexers Indexers) error { return c.storage.AddIndexers(newIndexers) }

// Index returns the objects that share a value with obj.
func (c *cache) Index(indexName string, obj any) ([]any, error) {
	return c.storage.Index(indexName, obj)
}

// ByIndex returns the objects that have indexedValue.
func (c *cache) ByIndex(indexName, indexedValue string) ([]any, error) {
	return c.storage.ByIndex(indexName, indexedValue)
}

// IndexKeys returns the sorted keys of the objects that have indexedValue.
func (c *cache) IndexKeys(indexName, indexedValue string) ([]string, error) {
	return c.storage.IndexKeys(indexName, indexedValue)
}

// ListIndexFuncValues returns the values of the index.
func (c *cache) ListIndexFuncValues(indexName string) []string {
	return c.storage.ListIndexFuncValues(indexName)
}

// Snapshot copies the three maps.
func (c *cache) Snapshot() Snapshot { return c.storage.Snapshot() }
