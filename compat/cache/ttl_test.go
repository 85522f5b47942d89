// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	clientgo "k8s.io/client-go/tools/cache"
	testingclock "k8s.io/utils/clock/testing"

	"example.com/informerstack/compat/cache"
)

// Expiry is lazy: a read drops the expired objects that it finds, and ListKeys reads no object.
func TestTTLStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := cache.NewTTLStore(cache.MetaNamespaceKeyFunc, time.Minute)
		require.NoError(t, s.Add(parsePod("ns/a")))
		time.Sleep(40 * time.Second)
		require.NoError(t, s.Add(parsePod("ns/b")))
		require.Len(t, s.List(), 2)

		time.Sleep(20 * time.Second) // a is as old as the TTL, which is not yet too old
		_, exists, _ := s.GetByKey("ns/a")
		require.True(t, exists)

		time.Sleep(time.Second)
		require.ElementsMatch(t, []string{"ns/a", "ns/b"}, s.ListKeys(), "no lookup has removed a")
		_, exists, err := s.Get(parsePod("ns/a"))
		require.NoError(t, err)
		require.False(t, exists)
		require.Equal(t, []string{"ns/b"}, s.ListKeys())
		require.Equal(t, []string{"ns/b"}, keysOf(s.List()))

		require.NoError(t, s.Update(parsePod("ns/b"))) // young again
		time.Sleep(time.Minute)
		require.Len(t, s.List(), 1)
		time.Sleep(time.Second)
		require.Empty(t, s.List())
		require.Empty(t, s.ListKeys())
	})
}

// A TTL of zero or less keeps everything.
func TestTTLStoreWithoutTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, ttl := range []time.Duration{0, -time.Second} {
			s := cache.NewTTLStore(cache.MetaNamespaceKeyFunc, ttl)
			require.NoError(t, s.Add(parsePod("ns/a")))
			time.Sleep(1000 * time.Hour)
			require.Len(t, s.List(), 1)
		}
	})
}

// cache.Store and policy can follow a clock of the caller's.
func TestExpirationStoreWithClock(t *testing.T) {
	fake := testingclock.NewFakeClock(time.Unix(0, 0))
	policy := &cache.TTLPolicy{TTL: time.Minute, Clock: fake}
	s := cache.NewFakeExpirationStore(cache.MetaNamespaceKeyFunc, nil, policy, fake)
	require.NoError(t, s.Replace([]any{parsePod("ns/a"), parsePod("ns/b")}, "7"))
	require.Equal(t, "7", s.LastStoreSyncResourceVersion())
	fake.Step(time.Minute + 1)
	require.NoError(t, s.Add(parsePod("ns/b rv=8")))
	require.Equal(t, []string{"ns/b"}, keysOf(s.List()))
	require.Equal(t, "8", s.LastStoreSyncResourceVersion())
	require.NoError(t, s.Delete(parsePod("ns/b rv=9")))
	require.Equal(t, "9", s.LastStoreSyncResourceVersion())
	s.Bookmark("10")
	require.Equal(t, "10", s.LastStoreSyncResourceVersion())
	require.NoError(t, s.Resync())
	require.Empty(t, s.ListKeys())
}

// Readers that expire entries and writers that store them again do not block each other, and no
// stored object is lost.
func TestExpirationStoreConcurrently(t *testing.T) {
	s := cache.NewExpirationStore(
		cache.MetaNamespaceKeyFunc,
		policyFunc(func(entry *cache.TimestampedEntry) bool {
			obj := entry.Obj.(interface{ GetResourceVersion() string })
			return obj.GetResourceVersion() == "old"
		}),
	)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				_ = s.Add(parsePod("ns/a rv=old"))
				_ = s.Add(parsePod("ns/b rv=new"))
				s.List()
				if _, exists, _ := s.GetByKey("ns/a"); exists {
					t.Error("an expired object was returned")
				}
				if _, exists, _ := s.GetByKey("ns/b"); !exists {
					t.Error("a stored object was lost")
				}
				s.ListKeys()
			}
		})
	}
	wg.Wait()
}

// A TTL store takes its resourceVersion from the stored objects, like every store. client-go's
// takes it from deletes, Replace and bookmarks only.
func TestDifference_TTLStoreReadsResourceVersions(t *testing.T) {
	s, ref := cache.NewTTLStore(
		cache.MetaNamespaceKeyFunc,
		0,
	), clientgo.NewTTLStore(clientgo.MetaNamespaceKeyFunc, 0)
	for _, s := range []cache.Store{s, ref} {
		require.NoError(t, s.Replace(nil, "7"))
		require.NoError(t, s.Add(parsePod("ns/a rv=8")))
	}
	require.Equal(t, "8", s.LastStoreSyncResourceVersion())
	require.Equal(t, "7", ref.LastStoreSyncResourceVersion())
}

// kubernetes/kubernetes#80658: a List over expired entries dropped an object that was stored again
// meanwhile, or blocked.
func TestRegress80658_ListKeepsWhatIsStoredAgain(t *testing.T) {
	var s cache.Store
	again := parsePod("ns/a rv=2")
	readd := func() { require.NoError(t, s.Add(again)) } // while the policy looks at the old entry
	s = cache.NewExpirationStore(
		cache.MetaNamespaceKeyFunc,
		policyFunc(func(entry *cache.TimestampedEntry) bool {
			if entry.Obj == any(again) {
				return false
			}
			readd()
			return true
		}),
	)
	require.NoError(t, s.Add(parsePod("ns/a rv=1")))
	require.Empty(t, s.List(), "the old entry has expired")
	require.Equal(t, []any{again}, s.List())
}

type policyFunc func(*cache.TimestampedEntry) bool

func (f policyFunc) IsExpired(entry *cache.TimestampedEntry) bool { return f(entry) }

// An object that was not stored again for a while is forgotten.
func ExampleNewTTLStore() {
	seen := cache.NewTTLStore(cache.MetaNamespaceKeyFunc, time.Hour)
	_ = seen.Add(parsePod("ns/a"))
	_, exists, _ := seen.GetByKey("ns/a")
	fmt.Println(exists)
	// Output: true
}
