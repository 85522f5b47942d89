// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/sets"
	clientgo "k8s.io/client-go/tools/cache"
	testingclock "k8s.io/utils/clock/testing"

	"example.com/informerstack/compat/cache"
)

// A read reports the keys that it made the store forget, after the store has.
func TestFakeExpirationStore(t *testing.T) {
	forgotten := make(chan string, 10)
	policy := &cache.FakeExpirationPolicy{
		NeverExpire: sets.New("keep"),
		RetrieveKeyFunc: func(obj any) (string, error) {
			return itemKey(obj.(*cache.TimestampedEntry).Obj)
		},
	}
	s := cache.NewFakeExpirationStore(itemKey, forgotten, policy,
		testingclock.NewFakeClock(time.Now()))
	require.NoError(t,
		s.Replace([]any{item{"keep", 1}, item{"a", 1}, item{"b", 1}, item{"c", 1}}, ""))
	_, exists, err := s.Get(item{"a", 0})
	require.NoError(t, err)
	require.False(t, exists)
	require.Equal(t, "a", <-forgotten)
	_, exists, _ = s.GetByKey("b")
	require.False(t, exists)
	require.Equal(t, "b", <-forgotten)
	require.Equal(t, []any{item{"keep", 1}}, s.List())
	require.Equal(t, "c", <-forgotten)
	require.Equal(t, []string{"keep"}, s.ListKeys())

}

// An expired object is forgotten once it was looked for, with or without a channel. In client-go's
// fake, without one, the key stays.
func TestDifference_FakeExpirationStoreWithoutChannel(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Now())
	theirKey := func(obj any) (string, error) {
		return itemKey(obj.(*clientgo.TimestampedEntry).Obj)
	}
	ourKey := func(obj any) (string, error) { return itemKey(obj.(*cache.TimestampedEntry).Obj) }
	never := sets.New("keep")
	for impl, s := range map[string]interface {
		Add(obj any) error
		List() []any
		ListKeys() []string
		GetByKey(key string) (any, bool, error)
	}{
		"ours": cache.NewFakeExpirationStore(itemKey, nil,
			&cache.FakeExpirationPolicy{NeverExpire: never, RetrieveKeyFunc: ourKey}, clock),
		"client-go": clientgo.NewFakeExpirationStore(itemKey, nil,
			&clientgo.FakeExpirationPolicy{NeverExpire: never, RetrieveKeyFunc: theirKey}, clock),
	} {
		t.Run("impl="+impl, func(t *testing.T) {
			for _, name := range []string{"a", "b", "keep"} {
				require.NoError(t, s.Add(item{name, 1}))
			}
			require.Equal(t, []any{item{"keep", 1}}, s.List())
			_, exists, err := s.GetByKey("a")
			require.NoError(t, err)
			require.False(t, exists)
			if impl == "ours" {
				require.Equal(t, []string{"keep"}, s.ListKeys())
			} else {
				require.ElementsMatch(t, []string{"a", "b", "keep"}, s.ListKeys())
			}
		})
	}
}

// An object that is as old as the TTL has not expired. A TTL of zero or less keeps everything.
func TestTTLStores(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Now())
	aged := func(age time.Duration) *cache.TimestampedEntry {
		return &cache.TimestampedEntry{Timestamp: clock.Now().Add(-age)}
	}
	policy := &cache.TTLPolicy{TTL: time.Minute, Clock: clock}
	for age, want := range map[time.Duration]bool{
		0: false, time.Minute: false, time.Minute + 1: true, time.Hour: true,
	} {
		require.Equal(t, want, policy.IsExpired(aged(age)), age)
	}
	for _, none := range []time.Duration{0, -1} {
		require.False(t, (&cache.TTLPolicy{TTL: none, Clock: clock}).IsExpired(aged(time.Hour)))
	}
	for _, s := range []cache.Store{
		cache.NewTTLStore(itemKey, 0), cache.NewTTLStore(itemKey, -time.Second),
		cache.NewTTLStore(itemKey, time.Hour), cache.NewExpirationStore(itemKey, policy),
	} {
		require.NoError(t, s.Add(item{"a", 1}))
		require.Len(t, s.List(), 1)
		require.Equal(t, []string{"a"}, s.ListKeys())
	}
}

// unlocked is a policy that is not safe for concurrent use.
type unlocked struct{ asked int }

func (p *unlocked) IsExpired(*cache.TimestampedEntry) bool {
	p.asked++
	return false
}

func TestExpirationStore_AsksThePolicyOneByOne(t *testing.T) {
	policy := &unlocked{}
	s := cache.NewExpirationStore(itemKey, policy)
	require.NoError(t, s.Add(item{"a", 1}))
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for range 100 {
				s.List()
			}
		})
	}
	readers.Wait()
	require.Equal(t, 400, policy.asked)
}

// The same errors at the same times lead to the same answers on both.
func TestModel_RetryWithDeadline(t *testing.T) {
	permanent := errors.New("permanent")
	retryable := func(err error) bool { return !errors.Is(err, permanent) }
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 4))
		clock := testingclock.NewFakeClock(time.Now())
		longest := time.Duration(random.IntN(5)) * time.Second
		ours := cache.NewRetryWithDeadline(longest, 2*time.Second, retryable, clock)
		theirs := clientgo.NewRetryWithDeadline(longest, 2*time.Second, retryable, clock)
		for step := range 50 {
			switch random.IntN(4) {
			case 0:
				clock.Step(time.Duration(random.IntN(3000)) * time.Millisecond)
			case 1:
				ours.After(permanent)
				theirs.After(permanent)
			case 2:
				ours.After(errors.New("passing"))
				theirs.After(errors.New("passing"))
			case 3:
				require.Equal(t, theirs.ShouldRetry(), ours.ShouldRetry(), "seed %d step %d", seed,
					step)
			}
		}
	}
}

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
	s := cache.NewTTLStore(cache.MetaNamespaceKeyFunc, 0)
	ref := clientgo.NewTTLStore(clientgo.MetaNamespaceKeyFunc, 0)
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
