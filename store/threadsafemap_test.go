// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	clientgo "k8s.io/client-go/tools/cache"

	"example.com/informerstack/internal/tools/storemodel"
)

// The metric is the number in the last 15 digits, which a float64 holds exactly. It is 0 without a
// resourceVersion, and a resourceVersion that is not a number is not reported.
func TestMetrics(t *testing.T) {
	var got []float64
	s := New(MetaNamespaceKeyFunc, Options{Metrics: Metrics{
		ResourceVersion: func(number float64) { got = append(got, number) }}})
	require.NoError(t, s.Add(pod("ns/a rv=7")))
	require.NoError(t, s.Delete(pod("ns/a rv=8")))
	s.Bookmark("9123456789012345678") // 15 digits: 456789012345678
	s.Bookmark("not-a-number")
	s.Bookmark("-5")
	s.Bookmark("")
	require.NoError(t, s.Replace(nil, "10"))
	require.NoError(t, s.Delete(ExplicitKey("ns/a"))) // has no version
	require.Equal(t, []float64{7, 8, 456_789_012_345_678, 0, 10}, got)
}

// A write computes the values of the new and of the old object, once each.
func TestIndexFuncCalls(t *testing.T) {
	calls := 0
	m := newMap(Indexers{"node": func(obj any) ([]string, error) { calls++; return byNode(obj) }})
	counted := func(what string, want int, do func()) {
		t.Helper()
		calls = 0
		do()
		require.Equal(t, want, calls, what)
	}
	counted("add", 1, func() { m.Update("k", pod("ns/k node=a")) })
	counted("update", 2, func() { m.Update("k", pod("ns/k node=a")) })
	counted("move", 2, func() { m.Update("k", pod("ns/k node=b")) })
	counted("index", 1, func() { _, _ = m.Index("node", pod("ns/k node=b")) })
	counted("byindex", 0, func() { _, _ = m.ByIndex("node", "b") })
	counted("delete", 1, func() { m.DeleteWithObject("k", nil) })
}

// The index function of a lookup runs without the lock: it may even use the store. In client-go it
// runs under the read lock, where a waiting writer makes this a deadlock.
func TestDifference_IndexFuncOfAReaderRunsUnlocked(t *testing.T) {
	var m *threadSafeMap
	m = newMap(Indexers{"fellows": func(obj any) ([]string, error) {
		if p := obj.(*corev1.Pod); p.Name == "probe" {
			m.Update("ns/late", pod("ns/late node=n1"))
		}
		return byNode(obj)
	}})
	m.Update("ns/a", pod("ns/a node=n1"))
	list, err := m.Index("fellows", pod("ns/probe node=n1"))
	require.NoError(t, err)
	require.Equal(t, []string{"ns/a", "ns/late"}, keysOf(list))
}

// GetIndexers returns a copy. In client-go it is the live map, read and written without the lock.
func TestDifference_GetIndexersReturnsACopy(t *testing.T) {
	mine := Indexers{"node": byNode}
	m := newMap(mine)
	m.GetIndexers()["tag"] = byTag
	mine["tag"] = byTag
	require.Equal(t, []string{"node"}, sortedKeys(m.GetIndexers()))
	m.Update("ns/a", pod("ns/a tags=x"))
	_, err := m.IndexKeys("tag", "x")
	require.EqualError(t, err, "Index with name tag does not exist")

	ref := clientgo.NewThreadSafeStore(clientgo.Indexers{"node": byNode}, clientgo.Indices{})
	ref.GetIndexers()["tag"] = byTag
	require.Equal(t, []string{"node", "tag"}, sortedKeys(ref.GetIndexers()))
}

// An object that was changed in place can stay under an indexed value that it no longer has. Once
// it is removed, it is found there no more and can be collected. In client-go the key stays under
// that value: it finds a nil, and later whatever else is stored under the key.
func TestDifference_ChangedInPlace(t *testing.T) {
	for _, stored := range []string{"x", "x,y", "x,x", "y"} {
		for _, changed := range []string{"", "y", "x,y,z", "z"} {
			m := newMap(Indexers{"tag": byTag, NamespaceIndex: MetaNamespaceIndexFunc})
			gone := storeAndChangeInPlace(m.Update, "ns/p", stored, changed)
			m.Update("ns/p", pod("ns/p tags=v"))
			require.Equal(t, []string{"ns/p"}, first(m.IndexKeys("tag", "v")))
			m.DeleteWithObject("ns/p", nil)
			m.Update("ns/p", pod("ns/p tags=w"))
			for _, value := range []string{"v", "x", "y", "z"} {
				require.Empty(t, first(m.ByIndex("tag", value)), "%s -> %s", stored, changed)
				require.Empty(t, first(m.IndexKeys("tag", value)))
				require.Empty(t, first(m.Index("tag", pod("ns/q tags=u,"+value))))
			}
			runtime.GC()
			require.Nil(t, gone.Value())
			replaceBy(m, []entry{{"ns/p", pod("ns/p tags=w")}}, "1")
			checkLaws(t, m)
		}
	}

	ref := clientgo.NewThreadSafeStore(clientgo.Indexers{"tag": byTag}, clientgo.Indices{})
	storeAndChangeInPlace(ref.Add, "ns/p", "x", "y")
	ref.Delete("ns/p")
	require.Equal(t, []any{nil}, first(ref.ByIndex("tag", "x")))
	p := pod("ns/p tags=w")
	ref.Add("ns/p", p)
	require.Equal(t, []any{p}, first(ref.ByIndex("tag", "x")))
}

func storeAndChangeInPlace(
	put func(key string, obj any), key, tags, changedTags string,
) weak.Pointer[corev1.Pod] {
	p := pod(key + " tags=" + tags)
	put(key, p)
	p.Annotations["tags"] = changedTags
	return weak.Make(p)
}

// An old object that can no longer be indexed, because it was changed in place, makes the write
// panic before it changed anything.
func TestOldObjectCannotBeIndexed(t *testing.T) {
	m := newMap(Indexers{"node": byNode, "picky": playerIndexes["picky"]})
	p := pod("ns/p node=n1 broken=no")
	m.Update("ns/p", p)
	p.Annotations["broken"] = "error"
	require.Panics(t, func() { m.Update("ns/p", pod("ns/p node=n2")) })
	require.Panics(t, func() { m.DeleteWithObject("ns/p", nil) })
	require.Equal(t, []any{p}, m.List())
	p.Annotations["broken"] = "no"
	keys, err := m.IndexKeys("node", "n1")
	require.NoError(t, err)
	require.Equal(t, []string{"ns/p"}, keys)
	m.Update("ns/p", pod("ns/p node=n2"))
	require.Equal(t, []string{"n2"}, m.ListIndexFuncValues("node"))
	checkLaws(t, m)
}

// Transactions are all or nothing for readers, Replace keeps indexes that are added while it works,
// and nothing races.
func TestConcurrentUse(t *testing.T) {
	m := newMap(Indexers{NamespaceIndex: MetaNamespaceIndexFunc, "node": byNode})
	var wg sync.WaitGroup
	for w := range 3 {
		wg.Go(func() {
			for i := range 60 {
				key := fmt.Sprintf("ns/w%d-%d", w, i%7)
				m.Update(key, pod(fmt.Sprintf("%s node=n%d tags=a,b", key, i%3)))
				if i%20 == w {
					replaceBy(m, []entry{
						{"ns/x", pod("ns/x node=n1 tags=a")}, {"ns/y", pod("ns/y node=n2")}}, "1")
				}
				m.DeleteWithObject(key, nil)
			}
		})
	}
	wg.Go(func() {
		for i := range 20 {
			node := fmt.Sprint("pair", i%2)
			m.apply( // the pair is always on one node
				write{key: "p/1", obj: pod("p/1 node=" + node)},
				write{key: "p/2", obj: pod("p/2 node=" + node)})
			m.Bookmark(fmt.Sprint(i))
			late := Indexers{fmt.Sprint("late", i): byTag}
			if err := m.AddIndexers(late); err != nil {
				t.Error(err)
			}
		}
	})
	for range 4 {
		wg.Go(func() {
			for range 60 {
				for _, node := range []string{"pair0", "pair1"} {
					keys, _ := m.IndexKeys("node", node)
					if len(keys) == 1 {
						t.Errorf("only %v is on %s", keys, node)
					}
				}
				m.Get("ns/w0-0")
				m.List()
				m.ListKeys()
				m.Len()
				_, _ = m.Index("node", pod("ns/any node=n1"))
				_, _ = m.ByIndex("node", "n1")
				m.ListIndexFuncValues("node")
				m.GetIndexers()
				m.LastStoreSyncResourceVersion()
			}
		})
	}
	wg.Wait()
	checkLaws(t, m)
	require.Len(t, m.GetIndexers(), 2+20)
}

// An index that is added while a Replace computes the values of the others is there afterwards.
func TestReplaceKeepsALateIndex(t *testing.T) {
	var m *threadSafeMap
	late := Indexers{}
	m = newMap(Indexers{"node": func(obj any) ([]string, error) {
		if len(late) > 0 {
			require.NoError(t, m.AddIndexers(late))
			clear(late)
		}
		return byNode(obj)
	}})
	m.Update("ns/a", pod("ns/a node=n1 tags=x"))
	late["picky"] = playerIndexes["picky"]
	require.Panics(t, func() { // S3, even if the late index fails
		replaceBy(m, []entry{{"ns/b", pod("ns/b broken=error")}, {"ns/c", pod("ns/c")}}, "1")
	})
	checkLaws(t, m)
	require.Equal(t, []string{"ns/a"}, m.ListKeys())
	require.Empty(t, m.LastStoreSyncResourceVersion())

	late["tag"], late[NamespaceIndex] = byTag, MetaNamespaceIndexFunc
	replaceBy(m, []entry{{"ns/b", pod("ns/b node=n2 tags=y")}}, "2")
	for name, value := range map[string]string{"node": "n2", "tag": "y", NamespaceIndex: "ns"} {
		require.Equal(t, []string{"ns/b"}, first(m.IndexKeys(name, value)))
	}
	checkLaws(t, m)
}

// checked checks its laws after each change.
type checked struct {
	*threadSafeMap
	t *testing.T
}

func (c checked) Update(key string, obj any) {
	c.threadSafeMap.Update(key, obj)
	checkLaws(c.t, c.threadSafeMap)
}

func (c checked) DeleteWithObject(key string, obj any) {
	c.threadSafeMap.DeleteWithObject(key, obj)
	checkLaws(c.t, c.threadSafeMap)
}

// The laws of a store with keys that its callers compute.
func TestKeyedLaws(t *testing.T) {
	for name, law := range storemodel.KeyedLaws {
		t.Run(name, func(t *testing.T) {
			indexed, plain := newMap(Indexers{"node": byNode}), newMap(nil)
			law(t, checked{indexed, t}, checked{plain, t})
			require.NoError(t, plain.AddIndexers(nil))
		})
	}
}

func first[T any](value T, _ error) T { return value }
