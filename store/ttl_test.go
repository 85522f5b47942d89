// SPDX-License-Identifier: Apache-2.0

package store

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	clientgo "k8s.io/client-go/tools/cache"
	testingclock "k8s.io/utils/clock/testing"
)

// Expiry is lazy: a read drops what it comes across, and ListKeys reads no object.
func TestTTLStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewTTLStore(MetaNamespaceKeyFunc, time.Minute)
		require.NoError(t, s.Add(pod("ns/a")))
		time.Sleep(40 * time.Second)
		require.NoError(t, s.Add(pod("ns/b")))
		require.Len(t, s.List(), 2)

		time.Sleep(20 * time.Second) // a is as old as the TTL, which is not yet too old
		_, exists, _ := s.GetByKey("ns/a")
		require.True(t, exists)

		time.Sleep(time.Second)
		require.ElementsMatch(t, []string{"ns/a", "ns/b"}, s.ListKeys(), "nobody looked")
		_, exists, err := s.Get(pod("ns/a"))
		require.NoError(t, err)
		require.False(t, exists)
		require.Equal(t, []string{"ns/b"}, s.ListKeys())
		require.Equal(t, []string{"ns/b"}, keysOf(s.List()))

		require.NoError(t, s.Update(pod("ns/b"))) // young again
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
			s := NewTTLStore(MetaNamespaceKeyFunc, ttl)
			require.NoError(t, s.Add(pod("ns/a")))
			time.Sleep(1000 * time.Hour)
			require.Len(t, s.List(), 1)
		}
	})
}

// Store and policy can follow a clock of the caller's.
func TestExpirationStoreWithClock(t *testing.T) {
	fake := testingclock.NewFakeClock(time.Unix(0, 0))
	policy := &TTLPolicy{TTL: time.Minute, Clock: fake}
	s := NewExpirationStore(MetaNamespaceKeyFunc, policy, WithClock(fake))
	require.NoError(t, s.Replace([]any{pod("ns/a"), pod("ns/b")}, "7"))
	require.Equal(t, "7", s.LastStoreSyncResourceVersion())
	fake.Step(time.Minute + 1)
	require.NoError(t, s.Add(pod("ns/b rv=8")))
	require.Equal(t, []string{"ns/b"}, keysOf(s.List()))
	require.Equal(t, "8", s.LastStoreSyncResourceVersion())
	require.NoError(t, s.Delete(pod("ns/b rv=9")))
	require.Equal(t, "9", s.LastStoreSyncResourceVersion())
	s.Bookmark("10")
	require.Equal(t, "10", s.LastStoreSyncResourceVersion())
	require.NoError(t, s.Resync())
	require.Empty(t, s.ListKeys())
}

// Readers that expire entries and writers that store them again do not block each other, nor lose what was stored.
func TestExpirationStoreConcurrently(t *testing.T) {
	s := NewExpirationStore(MetaNamespaceKeyFunc, policyFunc(func(entry *TimestampedEntry) bool {
		return entry.Obj.(interface{ GetResourceVersion() string }).GetResourceVersion() == "old"
	}))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				_ = s.Add(pod("ns/a rv=old"))
				_ = s.Add(pod("ns/b rv=new"))
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

// A TTL store knows how new it is from what is stored, like every store. client-go's learns it from deletes, Replace and
// bookmarks alone.
func TestDifference_TTLStoreReadsResourceVersions(t *testing.T) {
	s, ref := NewTTLStore(MetaNamespaceKeyFunc, 0), clientgo.NewTTLStore(clientgo.MetaNamespaceKeyFunc, 0)
	for _, s := range []Store{s, ref} {
		require.NoError(t, s.Replace(nil, "7"))
		require.NoError(t, s.Add(pod("ns/a rv=8")))
	}
	require.Equal(t, "8", s.LastStoreSyncResourceVersion())
	require.Equal(t, "7", ref.LastStoreSyncResourceVersion())
}
