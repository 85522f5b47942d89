// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
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

func TestTTLStores(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Now())
	policy := &cache.TTLPolicy{TTL: time.Minute, Clock: clock}
	require.False(t, policy.IsExpired(&cache.TimestampedEntry{Timestamp: clock.Now()}))
	clock.Step(time.Hour)
	require.True(t,
		policy.IsExpired(&cache.TimestampedEntry{Timestamp: clock.Now().Add(-2 * time.Minute)}))
	aged := &cache.TimestampedEntry{Timestamp: clock.Now().Add(-time.Minute)}
	require.False(t, policy.IsExpired(aged), "it is as old as the TTL, and no older")
	clock.Step(1)
	require.True(t, policy.IsExpired(aged))
	for _, none := range []time.Duration{0, -1} {
		require.False(t, (&cache.TTLPolicy{TTL: none, Clock: clock}).IsExpired(aged))
	}
	for _, s := range []cache.Store{
		cache.NewTTLStore(itemKey, time.Hour),
		cache.NewExpirationStore(itemKey, policy),
	} {
		require.NoError(t, s.Add(item{"a", 1}))
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
