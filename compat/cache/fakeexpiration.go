// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
)

// FakeExpirationPolicy expires everything but the keys in NeverExpire, for tests.
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

// NewFakeExpirationStore returns a store for tests, which sends the key of each object that it
// forgot to deletedKeys, if that is not nil. The read that finds an expired object waits until its
// key is received.
//
// Source: tools/cache/expiration_cache_fakes.go NewFakeExpirationStore
func NewFakeExpirationStore(
	keyFunc KeyFunc, deletedKeys chan<- string, expirationPolicy ExpirationPolicy,
	cacheClock clock.Clock,
) Store {
	s := &notifyingStore{deletedKeys: deletedKeys}
	policy := notifyingPolicy{expirationPolicy, func(entry *TimestampedEntry) {
		if key, err := keyFunc(entry.Obj); err == nil {
			s.note(key)
		}
	}}
	s.Store = newExpirationCache(keyFunc, policy, cacheClock)
	return s
}

// notifyingStore is an ExpirationCache. Its reads send the keys of the objects that they expired.
type notifyingStore struct {
	Store
	deletedKeys chan<- string

	mu      sync.Mutex
	expired []string // not sent yet
}

func (s *notifyingStore) note(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expired = append(s.expired, key)
}

// notify sends the keys of the expired objects. By now the store has forgotten them.
func (s *notifyingStore) notify() {
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
func (s *notifyingStore) Get(obj any) (item any, exists bool, err error) {
	defer s.notify()
	return s.Store.Get(obj)
}

// GetByKey implements Store.
func (s *notifyingStore) GetByKey(key string) (item any, exists bool, err error) {
	defer s.notify()
	return s.Store.GetByKey(key)
}

// List implements Store.
func (s *notifyingStore) List() []any {
	defer s.notify()
	return s.Store.List()
}

// notifyingPolicy is a policy that reports the entries that it expires.
type notifyingPolicy struct {
	ExpirationPolicy
	expired func(*TimestampedEntry)
}

// IsExpired implements ExpirationPolicy.
func (p notifyingPolicy) IsExpired(entry *TimestampedEntry) bool {
	if !p.ExpirationPolicy.IsExpired(entry) {
		return false
	}
	p.expired(entry)
	return true
}
