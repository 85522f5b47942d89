// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"example.com/informerstack/compat/internal/found"
	"example.com/informerstack/informer"
)

// readCache is the store of an informer as the program gets it if it has package devtools. It notes
// that the program has read it. The informer itself uses the store inside.
type readCache struct {
	coreStore
	read atomic.Bool
}

// newReadCache returns nil if the program does not have package devtools, and for metadata alone:
// it is what an informer without readers should hold.
func newReadCache(exampleObject runtime.Object, indexer Indexer) *readCache {
	_, metadata := exampleObject.(*metav1.PartialObjectMetadata)
	if metadata || found.Journal() == nil {
		return nil
	}
	return &readCache{coreStore: indexer.(coreStore)}
}

// note notes a read. It writes once, so that readers share no changing memory.
func (c *readCache) note() coreStore {
	if !c.read.Load() {
		c.read.Store(true)
	}
	return c.coreStore
}

// Get implements Store.
func (c *readCache) Get(obj any) (item any, exists bool, err error) { return c.note().Get(obj) }

// GetByKey implements Store.
func (c *readCache) GetByKey(key string) (item any, exists bool, err error) {
	return c.note().GetByKey(key)
}

// List implements Store.
func (c *readCache) List() []any { return c.note().List() }

// ListKeys implements Store.
func (c *readCache) ListKeys() []string { return c.note().ListKeys() }

// Index implements Indexer.
func (c *readCache) Index(indexName string, obj any) ([]any, error) {
	return c.note().Index(indexName, obj)
}

// IndexKeys implements Indexer.
func (c *readCache) IndexKeys(indexName, indexedValue string) ([]string, error) {
	return c.note().IndexKeys(indexName, indexedValue)
}

// ListIndexFuncValues implements Indexer.
func (c *readCache) ListIndexFuncValues(indexName string) []string {
	return c.note().ListIndexFuncValues(indexName)
}

// ByIndex implements Indexer.
func (c *readCache) ByIndex(indexName, indexedValue string) ([]any, error) {
	return c.note().ByIndex(indexName, indexedValue)
}

// Len implements store.Counter.
func (c *readCache) Len() int { return c.note().Len() }

// viewed is what package devtools may read of an informer.
type viewed struct {
	core
	reads    *readCache // nil: not known
	selected *selection // nil: not known
}

// Unread reports that the program has not read the store.
func (v viewed) Unread() bool { return v.reads != nil && !v.reads.read.Load() }

// Selection returns the resource, the namespace and the selectors, if they are known.
func (v viewed) Selection() (selection informer.Collection, known bool) {
	return v.selected.known()
}
