// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"sync"
	"time"

	"k8s.io/utils/clock"

	"example.com/informerstack/internal/helpers/objects"
)

// ExpirationCache is a Store that forgets objects some time after they were stored.
//
//	entries[key] = object and the time it was stored
//
// A read drops the expired objects that it finds. Nothing happens in the background, and ListKeys,
// which reads no object, still returns their keys. The policy is called by one goroutine at a time,
// without the cache's lock: an object that is stored under the key meanwhile stays.
//
// Source: tools/cache/expiration_cache.go ExpirationCache
type ExpirationCache struct {
	keyFunc KeyFunc
	clock   clock.PassiveClock

	policyMu sync.Mutex
	policy   ExpirationPolicy

	mu              sync.Mutex
	entries         map[string]*TimestampedEntry
	resourceVersion string
}

var _ Store = (*ExpirationCache)(nil)

// ExpirationPolicy decides which entries have expired.
//
// Source: tools/cache/expiration_cache.go ExpirationPolicy
type ExpirationPolicy interface {
	IsExpired(entry *TimestampedEntry) bool
}

// TimestampedEntry is an object and the time it was stored, by the cache's clock.
//
// Source: tools/cache/expiration_cache.go TimestampedEntry
type TimestampedEntry struct {
	Obj       any
	Timestamp time.Time
	key       string
}

// TTLPolicy expires the entries that are older than TTL. A TTL of 0 or less keeps everything.
//
// Source: tools/cache/expiration_cache.go TTLPolicy
type TTLPolicy struct {
	TTL   time.Duration
	Clock clock.Clock // nil: package time
}

// IsExpired reports whether the entry is older than TTL.
func (p *TTLPolicy) IsExpired(entry *TimestampedEntry) bool {
	var now clock.PassiveClock = clock.RealClock{}
	if p.Clock != nil {
		now = p.Clock
	}
	return p.TTL > 0 && now.Since(entry.Timestamp) > p.TTL
}

// NewTTLStore returns an ExpirationCache that forgets objects when they are older than ttl. 0 or
// less keeps everything.
//
// Source: tools/cache/expiration_cache.go NewTTLStore
func NewTTLStore(keyFunc KeyFunc, ttl time.Duration) Store {
	return NewExpirationStore(keyFunc, &TTLPolicy{TTL: ttl})
}

// NewExpirationStore returns an ExpirationCache that forgets the objects that the policy expires.
//
// Source: tools/cache/expiration_cache.go NewExpirationStore
func NewExpirationStore(keyFunc KeyFunc, expirationPolicy ExpirationPolicy) Store {
	return newExpirationCache(keyFunc, expirationPolicy, clock.RealClock{})
}

func newExpirationCache(
	keyFunc KeyFunc, policy ExpirationPolicy, clock clock.PassiveClock,
) *ExpirationCache {
	return &ExpirationCache{
		keyFunc: keyFunc,
		policy:  policy,
		clock:   clock,
		entries: map[string]*TimestampedEntry{},
	}
}

// Add stores obj, with the current time.
func (c *ExpirationCache) Add(obj any) error {
	key, err := c.key(obj)
	if err != nil {
		return err
	}
	entry := &TimestampedEntry{Obj: obj, Timestamp: c.clock.Now(), key: key}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries[key] = entry
	c.noteLocked(obj)
	return nil
}

// Update does the same as Add: the object's age starts again.
func (c *ExpirationCache) Update(obj any) error { return c.Add(obj) }

// Delete removes the object that has obj's key.
func (c *ExpirationCache) Delete(obj any) error {
	key, err := c.key(obj)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries, key)
	c.noteLocked(obj)
	return nil
}

// Replace makes the store hold exactly list, stored now, or leaves it as it was and returns an
// error.
func (c *ExpirationCache) Replace(list []any, resourceVersion string) error {
	entries := make(map[string]*TimestampedEntry, len(list))
	now := c.clock.Now()
	for _, obj := range list {
		key, err := c.key(obj)
		if err != nil {
			return err
		}
		entries[key] = &TimestampedEntry{Obj: obj, Timestamp: now, key: key}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries = entries
	c.resourceVersion = resourceVersion
	return nil
}

// Get finds the object that has obj's key, unless it has expired.
func (c *ExpirationCache) Get(obj any) (item any, exists bool, err error) {
	key, err := c.key(obj)
	if err != nil {
		return nil, false, err
	}
	return c.GetByKey(key)
}

// GetByKey finds the object stored under key, unless it has expired. It never fails.
func (c *ExpirationCache) GetByKey(key string) (item any, exists bool, err error) {
	c.mu.Lock()
	entry, exists := c.entries[key]
	c.mu.Unlock()
	if !exists || c.expired(entry) {
		return nil, false, nil
	}
	return entry.Obj, true, nil
}

// List returns every object that has not expired.
func (c *ExpirationCache) List() []any {
	c.mu.Lock()
	entries := make([]*TimestampedEntry, 0, len(c.entries))
	for _, entry := range c.entries {
		entries = append(entries, entry)
	}
	c.mu.Unlock()

	list := make([]any, 0, len(entries))
	for _, entry := range entries {
		if !c.expired(entry) {
			list = append(list, entry.Obj)
		}
	}
	return list
}

// expired reports whether the entry has expired, and drops it if so.
func (c *ExpirationCache) expired(entry *TimestampedEntry) bool {
	if !c.isExpired(entry) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries[entry.key] == entry {
		delete(c.entries, entry.key)
	}
	return true
}

func (c *ExpirationCache) isExpired(entry *TimestampedEntry) bool {
	c.policyMu.Lock()
	defer c.policyMu.Unlock()
	return c.policy.IsExpired(entry)
}

// ListKeys returns every key, also those of expired objects that no read has found yet.
func (c *ExpirationCache) ListKeys() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	keys := make([]string, 0, len(c.entries))
	for key := range c.entries {
		keys = append(keys, key)
	}
	return keys
}

// Resync does nothing.
func (c *ExpirationCache) Resync() error { return nil }

// Bookmark notes a new resourceVersion, without a change of any object.
func (c *ExpirationCache) Bookmark(resourceVersion string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resourceVersion = resourceVersion
}

// LastStoreSyncResourceVersion is the resourceVersion that reached the store last.
func (c *ExpirationCache) LastStoreSyncResourceVersion() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.resourceVersion
}

func (c *ExpirationCache) key(obj any) (string, error) {
	key, err := c.keyFunc(obj)
	if err != nil {
		return "", KeyError{Obj: obj, Err: err}
	}
	return key, nil
}

func (c *ExpirationCache) noteLocked(obj any) {
	if m, err := objects.Meta(obj); err == nil {
		c.resourceVersion = m.GetResourceVersion()
	}
}
