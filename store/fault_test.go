// SPDX-License-Identifier: Apache-2.0

package store

import (
	"testing"

	"github.com/stretchr/testify/require"
	clientgo "k8s.io/client-go/tools/cache"
)

// failing is an index function that fails once, at a given call.
type failing struct {
	inner  IndexFunc
	callNo int // of the call that fails; 0: no call fails
	err    error
}

func (f *failing) index(obj any) ([]string, error) {
	if f.callNo--; f.callNo == 0 {
		if f.err != nil {
			return nil, f.err
		}
		panic(errBroken)
	}
	return f.inner(obj)
}

// An index function that fails at any of its calls, on a new object or on an old one, leaves the
// store as it was, whatever the write.
func TestIndexFuncFailsAtAnyCall(t *testing.T) {
	put := func(key, text string) write { return write{key: key, obj: pod(text)} }
	drop := func(key string) write { return write{key, pod(key + " rv=9"), true} }
	for name, write := range map[string]struct {
		calls int // of each index function
		do    func(m *threadSafeMap, f *failing)
	}{
		"add": {1, func(m *threadSafeMap, _ *failing) {
			m.Update("ns/new", pod("ns/new node=n1 rv=9"))
		}},
		"update": {2, func(m *threadSafeMap, _ *failing) {
			m.Update("ns/a", pod("ns/a node=n3 tags=z rv=9"))
		}},
		"delete": {1, func(m *threadSafeMap, _ *failing) {
			m.DeleteWithObject("ns/a", pod("ns/a rv=9"))
		}},
		"transaction": {4, func(m *threadSafeMap, _ *failing) {
			m.apply(put("ns/a", "ns/a node=n3 rv=9"), drop("ns/b"),
				put("ns/new", "ns/new node=n1 rv=9"))
		}},
		"transaction that changes a key several times": {2, func(m *threadSafeMap, _ *failing) {
			m.apply(lastOfEachKey([]write{
				put("ns/a", "ns/a node=n3 rv=9"), drop("ns/a"), put("ns/a", "ns/a node=n4 rv=9"),
				put("ns/new", "ns/new tags=z rv=9"), put("ns/new", "ns/new tags=x rv=9"),
				drop("ns/new")})...)
		}},
		"replace": {2, func(m *threadSafeMap, _ *failing) {
			replaceBy(m, []entry{
				{"ns/a", pod("ns/a node=n3")}, {"ns/new", pod("ns/new tags=z")},
			}, "9")
		}},
		"addindexers": {2, func(m *threadSafeMap, f *failing) {
			require.NoError(t, m.AddIndexers(Indexers{"again": f.index, "also": byTag}))
		}},
	} {
		for _, err := range []error{nil, errBroken} {
			t.Run(name, func(t *testing.T) {
				for callNo := 1; ; callNo++ {
					f := &failing{inner: byNode, err: err}
					m := newMap(Indexers{"node": f.index, "tag": byTag})
					replaceBy(m, []entry{
						{
							"ns/a",
							pod("ns/a node=n1 tags=x"),
						}, {"ns/b", pod("ns/b node=n1 tags=x,y")}}, "1")
					before := snapshot(m)
					f.callNo = callNo
					if callNo > write.calls {
						require.NotPanics(t, func() { write.do(m, f) })
						f.callNo = 0
						require.NotEqual(t, before, snapshot(m))
						require.NotEqual(t, name != "addindexers",
							m.LastStoreSyncResourceVersion() == "1")
						checkLaws(t, m)
						return
					}
					require.Panics(t, func() { write.do(m, f) }, "call %d", callNo)
					require.Equal(t, before, snapshot(m), "call %d", callNo)
					require.Equal(t, "1", m.LastStoreSyncResourceVersion(), "call %d", callNo)
					checkLaws(t, m)
					m.Update("ns/c", pod("ns/c node=n1")) // the lock is free
				}
			})
		}
	}
}

// An old object was changed in place and can no longer be indexed: no part of a batch with it is
// applied. client-go applies the changes before that object.
func TestDifference_BatchIsNotAppliedInPart(t *testing.T) {
	s := New(MetaNamespaceKeyFunc,
		Options{Indexers: Indexers{"node": byNode, "picky": playerIndexes["picky"]}})
	b := pod("ns/b node=n1 broken=no")
	require.NoError(t, s.Replace([]any{pod("ns/a node=n1"), b}, "1"))
	b.Annotations["broken"] = "error"
	require.Panics(t, func() {
		s.(TransactionStore).Transaction(
			Transaction{pod("ns/a node=n2 rv=2"), TransactionTypeUpdate},
			Transaction{pod("ns/b rv=3"), TransactionTypeDelete})
	})
	require.Equal(t, "1", s.LastStoreSyncResourceVersion())
	require.Equal(t, []string{"ns/a", "ns/b"}, first(s.IndexKeys("node", "n1")))
	b.Annotations["broken"] = "no"
	checkLaws(t, lawsOf(s))
}

// A metric that panics does so after the change, which is complete. The lock is free.
func TestMetricPanics(t *testing.T) {
	measured := New(MetaNamespaceKeyFunc, Options{
		Indexers: Indexers{"node": byNode},
		Metrics:  Metrics{ResourceVersion: func(float64) { panic(errBroken) }},
	})
	good := pod("ns/b node=n1 rv=2")
	require.PanicsWithValue(t, errBroken, func() { _ = measured.Replace([]any{good}, "2") })
	require.PanicsWithValue(t, errBroken, func() { _ = measured.Add(pod("ns/c node=n1 rv=3")) })
	require.PanicsWithValue(t, errBroken, func() { measured.Bookmark("4") })
	require.Equal(t, []string{"ns/b", "ns/c"}, first(measured.IndexKeys("node", "n1")))
	require.Equal(t, "4", measured.LastStoreSyncResourceVersion())
	checkLaws(t, lawsOf(measured))
}

// A transaction writes one key twice, and an index function fails for the first object: client-go
// indexes both, and panics with the first one stored. Ours indexes the last one alone.
func TestDifference_TransactionIndexesTheLastWriteOfAKey(t *testing.T) {
	broken, whole := pod("ns/p node=n1 broken=error"), pod("ns/p node=n2")
	ours := New(MetaNamespaceKeyFunc,
		Options{Indexers: Indexers{"picky": playerIndexes["picky"]}}).(TransactionStore)
	theirs := clientgo.NewIndexer(clientgo.MetaNamespaceKeyFunc,
		clientgo.Indexers{"picky": clientgo.IndexFunc(playerIndexes["picky"])},
	).(clientgo.TransactionStore)
	require.Nil(t, ours.Transaction(
		Transaction{broken, TransactionTypeAdd}, Transaction{whole, TransactionTypeUpdate}))
	require.Panics(t, func() {
		theirs.Transaction(clientgo.Transaction{Object: broken, Type: clientgo.TransactionTypeAdd},
			clientgo.Transaction{Object: whole, Type: clientgo.TransactionTypeUpdate})
	})
	require.Equal(t, []any{whole}, ours.(Store).List())
	require.Equal(t, []any{broken}, theirs.(clientgo.Store).List())
}
