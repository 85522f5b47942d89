// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"

	"example.com/informerstack/store"
)

// Stores that forget. Each is the type of package store.
type (
	// ExpirationCache is a Store that forgets objects some time after they were stored.
	ExpirationCache = store.ExpirationCache
	// ExpirationPolicy says which entries have expired.
	ExpirationPolicy = store.ExpirationPolicy
	// TTLPolicy lets entries expire by their age.
	TTLPolicy = store.TTLPolicy
	// TimestampedEntry is an object and the time it was stored.
	TimestampedEntry = store.TimestampedEntry
)

// NewTTLStore returns a store that forgets objects when they are older than ttl.
//
// Source: tools/cache/expiration_cache.go NewTTLStore
func NewTTLStore(keyFunc KeyFunc, ttl time.Duration) Store { return store.NewTTLStore(keyFunc, ttl) }

// NewExpirationStore returns a store that forgets what the policy says, which is asked by one goroutine at a time.
//
// Source: tools/cache/expiration_cache.go NewExpirationStore
func NewExpirationStore(keyFunc KeyFunc, expirationPolicy ExpirationPolicy) Store {
	return store.NewExpirationStore(keyFunc, &serialPolicy{ExpirationPolicy: expirationPolicy})
}

// serialPolicy is a policy that need not be safe for concurrent use.
type serialPolicy struct {
	mu sync.Mutex
	ExpirationPolicy
}

// IsExpired implements ExpirationPolicy.
func (p *serialPolicy) IsExpired(obj *TimestampedEntry) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ExpirationPolicy.IsExpired(obj)
}

// FakeExpirationPolicy lets everything expire but the keys in NeverExpire, for tests.
//
// Source: tools/cache/expiration_cache_fakes.go FakeExpirationPolicy
type FakeExpirationPolicy struct {
	NeverExpire sets.Set[string]
	// RetrieveKeyFunc gets the *TimestampedEntry.
	RetrieveKeyFunc KeyFunc
}

// IsExpired implements ExpirationPolicy.
func (p *FakeExpirationPolicy) IsExpired(obj *TimestampedEntry) bool {
	key, _ := p.RetrieveKeyFunc(obj)
	return !p.NeverExpire.Has(key)
}

// NewFakeExpirationStore returns a store for tests, which sends the key of each object that it forgot to deletedKeys, if
// that is not nil: the read that came across the object waits until the key is received.
//
// Source: tools/cache/expiration_cache_fakes.go NewFakeExpirationStore
func NewFakeExpirationStore(keyFunc KeyFunc, deletedKeys chan<- string, expirationPolicy ExpirationPolicy, cacheClock clock.Clock) Store {
	s := &tellingStore{deletedKeys: deletedKeys}
	policy := tellingPolicy{&serialPolicy{ExpirationPolicy: expirationPolicy}, func(entry *TimestampedEntry) {
		if key, err := keyFunc(entry.Obj); err == nil {
			s.note(key)
		}
	}}
	s.Store = store.NewExpirationStore(keyFunc, policy, store.WithClock(cacheClock))
	return s
}

// tellingStore is an ExpirationCache whose reads report what they made it forget.
type tellingStore struct {
	Store
	deletedKeys chan<- string

	mu      sync.Mutex
	expired []string // found expired, and not told yet
}

func (s *tellingStore) note(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expired = append(s.expired, key)
}

// tell reports what has expired. By now the store has forgotten it.
func (s *tellingStore) tell() {
	s.mu.Lock()
	keys := s.expired
	s.expired = nil
	s.mu.Unlock()
	if s.deletedKeys == nil {
		return
	}
	for _, key := range keys {
		s.deletedKeys <- key
	}
}

// Get implements Store.
func (s *tellingStore) Get(obj any) (item any, exists bool, err error) {
	defer s.tell()
	return s.Store.Get(obj)
}

// GetByKey implements Store.
func (s *tellingStore) GetByKey(key string) (item any, exists bool, err error) {
	defer s.tell()
	return s.Store.GetByKey(key)
}

// List implements Store.
func (s *tellingStore) List() []any {
	defer s.tell()
	return s.Store.List()
}

// tellingPolicy is a policy that reports what it lets expire.
type tellingPolicy struct {
	ExpirationPolicy
	expired func(*TimestampedEntry)
}

// IsExpired implements ExpirationPolicy.
func (p tellingPolicy) IsExpired(entry *TimestampedEntry) bool {
	if !p.ExpirationPolicy.IsExpired(entry) {
		return false
	}
	p.expired(entry)
	return true
}
