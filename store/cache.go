// SPDX-License-Identifier: Apache-2.0

package store

// cache is the Indexer: a threadSafeMap, with keys that keyFunc computes from the objects. If
// keyFunc fails for one object, the store is as before.
//
// Source: tools/cache/store.go cache
type cache struct {
	threadSafeMap
	keyFunc KeyFunc
}

var (
	_ Indexer          = (*cache)(nil)
	_ TransactionStore = (*cache)(nil)
	_ Counter          = (*cache)(nil)
)

// Options configures a store. The zero value means a store without indexes.
type Options struct {
	// Indexers are the first indexes. AddIndexers adds others.
	Indexers Indexers
	// Metrics receives the store's numbers.
	Metrics Metrics
	// ResourceVersion, if set, returns LastStoreSyncResourceVersion, which Metrics does not receive
	// then. While known is false, that of the last Replace or Bookmark counts. An informer sets it:
	// it stores changes in another order than that of their resourceVersions.
	ResourceVersion func() (resourceVersion string, known bool)
}

// Metrics receives a store's numbers. A nil field is not measured. The functions run under the
// store's lock: they must be quick and must not call the store.
type Metrics struct {
	// ResourceVersion is called with each new LastStoreSyncResourceVersion, or the number in its
	// last 15 digits.
	ResourceVersion func(number float64)
}

// New returns an empty store. It is also a TransactionStore and a Counter.
//
// Source: tools/cache/store.go NewStore, tools/cache/store.go NewIndexer
func New(keyFunc KeyFunc, options Options) Indexer {
	return &cache{
		keyFunc: keyFunc,
		threadSafeMap: threadSafeMap{
			metrics:      options.Metrics,
			knownVersion: options.ResourceVersion,
			items:        map[string]*entry{},
			indices:      newIndices(nil, options.Indexers),
		},
	}
}

// Add stores obj.
func (c *cache) Add(obj any) error { return c.Update(obj) }

// Update stores obj.
func (c *cache) Update(obj any) error {
	key, err := c.keyFunc(obj)
	if err != nil {
		return KeyError{obj, err}
	}
	c.apply(write{key: key, obj: obj})
	return nil
}

// Delete removes the object that has obj's key.
func (c *cache) Delete(obj any) error {
	key, err := c.keyFunc(obj)
	if err != nil {
		return KeyError{obj, err}
	}
	c.apply(write{key: key, obj: obj, remove: true})
	return nil
}

// Replace makes the store hold exactly list, or leaves it as it was and returns an error.
func (c *cache) Replace(list []any, resourceVersion string) error {
	items := make(map[string]*entry, len(list))
	for _, obj := range list {
		key, err := c.keyFunc(obj)
		if err != nil {
			return KeyError{obj, err}
		}
		items[key] = &entry{key, obj}
	}
	c.replace(items, resourceVersion)
	return nil
}

// Get finds the object that has obj's key.
func (c *cache) Get(obj any) (item any, exists bool, err error) {
	key, err := c.keyFunc(obj)
	if err != nil {
		return nil, false, KeyError{obj, err}
	}
	item, exists = c.threadSafeMap.Get(key)
	return item, exists, nil
}

// GetByKey finds the object stored under key. It never fails.
func (c *cache) GetByKey(key string) (item any, exists bool, err error) {
	item, exists = c.threadSafeMap.Get(key)
	return item, exists, nil
}
