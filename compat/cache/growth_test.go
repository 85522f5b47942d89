// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	testingclock "k8s.io/utils/clock/testing"

	"example.com/informerstack/compat/cache"
	"example.com/informerstack/compat/cache/synctrack"
	"example.com/informerstack/internal/tools/measure"
)

// manyPods returns pods p0, p1, and so on.
func manyPods(n int) []any {
	pods := make([]any, n)
	for i := range pods {
		pods[i] = pod("p"+strconv.Itoa(i), i+1)
	}
	return pods
}

// A ThreadSafeStore takes linear time in the number of values of one object, stored or looked up.
func TestGrowth_ThreadSafeStore(t *testing.T) {
	values := func(n int) []string {
		values := make([]string, n)
		for i := range values {
			values[i] = strconv.Itoa(i / 2) // each twice
		}
		return values
	}
	measure.Growth(t, 1000, func(n int) {
		m := cache.NewThreadSafeStore(cache.Indexers{"many": func(any) ([]string, error) {
			return values(n), nil
		}}, nil)
		m.Add("a", pod("a", 1))
		m.Add("b", pod("b", 2))
		m.Add("a", pod("a", 3))
		require.Len(t, first(m.Index("many", nil)), 2)
		m.Delete("a")
		m.Delete("b")
	})
}

// Objects leave a Heap one by one, and an expiration store all at once.
func TestGrowth_HeapAndExpirationStore(t *testing.T) {
	all := manyPods(8 * 2000)
	older := func(a, b any) bool { return len(a.(*v1.Pod).Name) < len(b.(*v1.Pod).Name) }
	expireAll := &cache.FakeExpirationPolicy{
		NeverExpire:     sets.New("none"),
		RetrieveKeyFunc: func(any) (string, error) { return "", nil },
	}
	for name, run := range map[string]func(pods []any){
		"heap": func(pods []any) {
			h := cache.NewHeap(cache.MetaNamespaceKeyFunc, older)
			require.NoError(t, h.BulkAdd(pods))
			for range pods {
				_, err := h.Pop()
				require.NoError(t, err)
			}
		},
		"heap, deleting": func(pods []any) {
			h := cache.NewHeap(cache.MetaNamespaceKeyFunc, older)
			require.NoError(t, h.BulkAdd(pods))
			for _, p := range pods {
				require.NoError(t, h.Delete(p))
			}
		},
		"expiration store": func(pods []any) {
			clock := testingclock.NewFakeClock(time.Now())
			s := cache.NewFakeExpirationStore(cache.MetaNamespaceKeyFunc, nil, expireAll, clock)
			require.NoError(t, s.Replace(pods, "1"))
			require.Empty(t, s.List())
			require.Empty(t, s.ListKeys())
		},
		"tracker": func(pods []any) {
			a := synctrack.NewAsyncTracker[any]("all")
			for _, p := range pods {
				a.Start(p)
			}
			a.UpstreamHasSynced()
			for _, p := range pods {
				a.Finished(p)
			}
			require.True(t, a.HasSynced())
		},
	} {
		t.Run(name, func(t *testing.T) {
			measure.Growth(t, 2000, func(n int) { run(all[:n]) })
		})
	}
}

// A MutationCache takes linear time in the number of values of one write, and in the number of
// writes.
func TestGrowth_MutationCache(t *testing.T) {
	newCache := func(indexFunc cache.IndexFunc, size int) cache.MutationCache {
		backing := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{"many": indexFunc})
		return cache.NewIntegerResourceVersionMutationCacheWithOptions(klog.Background(), backing,
			cache.MutationCacheOptions{Indexer: backing, IncludeAdds: true, MaxCacheSize: size})
	}
	t.Run("values", func(t *testing.T) {
		measure.Growth(t, 5000, func(n int) {
			c := newCache(func(any) ([]string, error) {
				values := make([]string, n)
				for i := range values {
					values[i] = fmt.Sprint("value ", i)
				}
				return values, nil
			}, 10)
			c.Mutation(pod("a", 1))
			require.Len(t, first(c.ByIndex("many", fmt.Sprint("value ", n-1))), 1)
		})
	})
	t.Run("writes", func(t *testing.T) {
		all := manyPods(8 * 1000)
		measure.Growth(t, 1000, func(n int) {
			same := func(any) ([]string, error) { return []string{"same"}, nil }
			c := newCache(same, n)
			for _, p := range all[:n] {
				c.Mutation(p)
			}
			require.Len(t, first(c.ByIndex("many", "same")), n)
			for _, p := range all[:n] {
				c.OnDelete(p.(*v1.Pod))
			}
			require.Empty(t, first(c.ByIndex("many", "same")))
		})
	})
}

// A detector compares each object once in a period, and lists all that were altered.
func TestGrowth_MutationDetector(t *testing.T) {
	t.Setenv(detectorSwitch, "true")
	all := manyPods(8 * 500)
	measure.Growth(t, 500, func(n int) {
		d := cache.NewCacheMutationDetector("pods")
		for _, p := range all[:n] {
			d.AddObject(p)
		}
		stopped := make(chan struct{})
		close(stopped)
		d.Run(stopped) // compares once
	})
}
