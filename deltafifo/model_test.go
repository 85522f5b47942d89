// SPDX-License-Identifier: Apache-2.0

package deltafifo

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/cache"

	"example.com/informerstack/store"
)

// naive is a third implementation of both queues: a slice, searched from end to end.
const naive = "naive"

type model struct {
	kind
	known     KeyListerGetter
	transform store.TransformFunc

	waiting []waiting
	begun   bool
	first   int // number of the oldest items that belong to the first list
	closed  bool
}

type waiting struct {
	key    string
	deltas Deltas
}

func newModel(k kind, known KeyListerGetter, transform store.TransformFunc) *model {
	return &model{kind: k, known: known, transform: transform}
}

func (m *model) receive(obj any) (string, any, error) {
	if tombstone, ok := obj.(store.DeletedFinalStateUnknown); ok {
		return tombstone.Key, obj, nil
	}
	key, err := store.MetaNamespaceKeyFunc(obj)
	if err != nil {
		return "", nil, store.KeyError{Obj: obj, Err: err}
	}
	if m.transform != nil {
		obj, err = m.transform(obj)
	}
	return key, obj, err
}

func (m *model) find(key string) int {
	return slices.IndexFunc(m.waiting, func(w waiting) bool { return w.key == key })
}

func (m *model) append(t DeltaType, key string, obj any) {
	i := m.find(key)
	if i < 0 || m.real {
		m.waiting = append(m.waiting, waiting{key, Deltas{{t, obj}}})
		return
	}
	deltas := &m.waiting[i].deltas
	newest := deltas.Newest()
	if t != Deleted || newest.Type != Deleted {
		*deltas = append(*deltas, Delta{t, obj})
	} else if _, ok := newest.Object.(store.DeletedFinalStateUnknown); ok {
		newest.Object = obj
	}
}

func (m *model) change(t DeltaType, obj any) error {
	key, obj, err := m.receive(obj)
	m.begun = true
	if err == nil {
		m.append(t, key, obj)
	}
	return err
}

func (m *model) Add(obj any) error    { return m.change(Added, obj) }
func (m *model) Update(obj any) error { return m.change(Updated, obj) }

func (m *model) Delete(obj any) error {
	if m.real {
		return m.change(Deleted, obj)
	}
	key, obj, err := m.receive(obj)
	if key == "" {
		return err
	}
	m.begun = true
	known := false
	if m.known != nil {
		_, known, _ = m.known.GetByKey(key)
	}
	if !known && m.find(key) < 0 {
		return nil
	}
	if err == nil {
		m.append(Deleted, key, obj)
	}
	return err
}

func (m *model) Replace(list []any, rv string) error {
	var keys []string
	var objs []any
	for _, obj := range list {
		key, obj, err := m.receive(obj)
		if err != nil {
			return err
		}
		keys, objs = append(keys, key), append(objs, obj)
	}
	before := slices.Clone(m.waiting)
	addListed := func(t DeltaType) {
		for i := range objs {
			m.append(t, keys[i], objs[i])
		}
	}
	switch {
	case m.atomic:
		m.append(ReplacedAll, "", ReplacedAllInfo{ResourceVersion: rv, Objects: objs})
	case m.real:
		m.addGone(keys, before)
		addListed(Replaced)
	case m.replaced:
		addListed(Replaced)
		m.addGone(keys, before)
	default:
		addListed(Sync)
		m.addGone(keys, before)
	}
	if !m.begun {
		m.begun, m.first = true, len(m.waiting)
	}
	return nil
}

// addGone queues tombstones for objects that are not listed.
func (m *model) addGone(listed []string, before []waiting) {
	done := map[string]bool{}
	for _, w := range before {
		if slices.Contains(listed, w.key) || done[w.key] {
			continue
		}
		done[w.key] = true
		newest := w.deltas.Newest()
		for _, later := range before {
			if later.key == w.key {
				newest = later.deltas.Newest()
			}
		}
		if m.real && newest.Type == Deleted {
			continue
		}
		obj := newest.Object
		if tombstone, ok := obj.(store.DeletedFinalStateUnknown); ok {
			obj = tombstone.Obj
		}
		m.append(Deleted, w.key, store.DeletedFinalStateUnknown{Key: w.key, Obj: obj})
	}
	if m.known == nil {
		return
	}
	for _, key := range m.known.ListKeys() {
		isQueued := slices.ContainsFunc(before, func(w waiting) bool { return w.key == key })
		if !isQueued && !slices.Contains(listed, key) {
			obj, _, _ := m.known.GetByKey(key)
			m.append(Deleted, key, store.DeletedFinalStateUnknown{Key: key, Obj: obj})
		}
	}
}

func (m *model) Resync() error {
	if m.atomic {
		m.append(SyncAll, "", SyncAllInfo{})
		return nil
	}
	if m.known == nil {
		return nil
	}
	before := slices.Clone(m.waiting)
	for _, key := range m.known.ListKeys() {
		if !slices.ContainsFunc(before, func(w waiting) bool { return w.key == key }) {
			obj, _, _ := m.known.GetByKey(key)
			m.append(Sync, key, obj)
		}
	}
	return nil
}

func (m *model) Bookmark(rv string) error {
	if m.bookmarks {
		m.append(Bookmark, "", BookmarkInfo{ResourceVersion: rv})
	}
	return nil
}

func (m *model) take(n int) []Delta {
	var deltas []Delta
	for _, w := range m.waiting[:n] {
		deltas = append(deltas, w.deltas...)
	}
	m.waiting = m.waiting[n:]
	return deltas
}

func (m *model) Pop(process PopProcessFunc) (any, error) {
	if len(m.waiting) == 0 {
		return nil, ErrFIFOClosed
	}
	initial := !m.HasSynced()
	deltas := Deltas(m.take(1))
	err := process(deltas, initial)
	m.first = max(m.first-1, 0)
	return deltas, err
}

func (m *model) PopBatch(batch ProcessBatchFunc, single PopProcessFunc) error {
	if len(m.waiting) == 0 {
		return ErrFIFOClosed
	}
	n := 1
	for n < len(m.waiting) && m.continuesBatch(n) {
		n++
	}
	initial := !m.HasSynced()
	deltas := m.take(n)
	var err error
	if n == 1 {
		err = single(Deltas(deltas), initial)
	} else {
		err = batch(deltas, initial)
	}
	m.first = max(m.first-n, 0)
	return err
}

// continuesBatch reports whether item n can join those before it.
func (m *model) continuesBatch(n int) bool {
	isBroken := func(w waiting) bool {
		_, err := store.DeletionHandlingMetaNamespaceKeyFunc(w.deltas[0].Object)
		return err != nil
	}
	alone := func(w waiting) bool { return w.key == "" }
	sameKey := func(w waiting) bool { return w.key == m.waiting[n].key }
	return n != m.first && n < maxBatchLen && !isBroken(m.waiting[n-1]) && !alone(m.waiting[n-1]) &&
		!alone(m.waiting[n]) &&
		(isBroken(m.waiting[n]) || !slices.ContainsFunc(m.waiting[:n], sameKey))
}

func (m *model) HasSynced() bool               { return m.begun && m.first == 0 }
func (m *model) HasSyncedChecker() DoneChecker { panic("not modelled") }
func (m *model) Close()                        { m.closed = true }

// kinds are the queues that the model tests run on.
var kinds = map[string]kind{
	"deltafifo":                 {},
	"deltafifo known":           {known: true, replaced: true},
	"deltafifo transform":       {known: true, replaced: true, transform: true},
	"realfifo":                  {real: true, known: true},
	"realfifo transform":        {real: true, known: true, transform: true},
	"realfifo lost keys":        {real: true, known: true, transform: true, losing: true},
	"realfifo atomic":           {real: true, atomic: true, unlock: true, bookmarks: true},
	"realfifo atomic transform": {real: true, atomic: true, transform: true},
}

// compare runs a script on several implementations, step by step, and then drains them.
func compare(t testing.TB, k kind, impls []string, script []operation) {
	t.Helper()
	var worlds []*world
	for _, impl := range impls {
		w := newWorld(t, impl, k)
		w.queue.Close() // so that no Pop blocks
		w.losing["ns/e"] = k.losing
		worlds = append(worlds, w)
	}
	for i, op := range script {
		want := worlds[0].step(op, k)
		for j, w := range worlds[1:] {
			require.Equal(t, want, w.step(op, k), "%s, unlike %s, at the end of %v", impls[j+1],
				impls[0], script[:i+1])
		}
	}
	want := worlds[0].drain()
	for j, w := range worlds[1:] {
		require.Equal(t, want, w.drain(), "%s, unlike %s, after %v", impls[j+1], impls[0], script)
		w.laws(t)
	}
}

// compareRandom compares random scripts on the naive model, on ours and on client-go.
func compareRandom(t *testing.T, seeds uint64, script func(rnd *rand.Rand) []operation) {
	for name, k := range kinds {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			impls := []string{naive, ours, clientGo}
			if k.losing {
				impls = impls[:2] // TestDifference_LostKeyFailsNoReplace
			}
			for seed := range seeds {
				compare(t, k, impls, script(rand.New(rand.NewPCG(seed, 1))))
			}
		})
	}
}

// Random scripts have the same outcome on ours, on a naive model and on client-go.
func TestModel(t *testing.T) {
	compareRandom(t, 60, func(rnd *rand.Rand) []operation {
		script := make([]operation, 60)
		for i := range script {
			script[i] = operationOf(byte(rnd.Uint32()), byte(rnd.Uint32()), byte(i))
		}
		return script
	})
}

// smallLimits lowers the limits of the queues until the test ends, so that a few objects cross
// them.
func smallLimits(t testing.TB) {
	long, batch := longQueue, maxBatchLen
	t.Cleanup(func() { longQueue, maxBatchLen = long, batch })
	longQueue, maxBatchLen = 2, 3
}

// limitBatches gives a queue of client-go the same limit.
func limitBatches(q *cache.RealFIFO) *cache.RealFIFO {
	size := reflect.ValueOf(q).Elem().FieldByName("batchSize")
	*(*int)(unsafe.Pointer(size.UnsafeAddr())) = maxBatchLen
	return q
}

// Scripts that fill and drain the queue again and again cross each limit, and have the same outcome
// as on the model and on client-go.
func TestModel_CrossesLimits(t *testing.T) {
	smallLimits(t)
	compareRandom(t, 20, func(rnd *rand.Rand) (script []operation) {
		for range 6 {
			for range 1 + rnd.IntN(20) {
				script = append(script, operationOf(
					byte(rnd.IntN(13)), byte(rnd.Uint32()), byte(len(script))))
			}
			for range rnd.IntN(25) {
				pops := []string{"pop", "batch"}
				script = append(script, op(pops[rnd.IntN(2)]))
			}
		}
		return script
	})
}

// script reads operations from bytes, two for each operation.
func script(data []byte) []operation {
	var ops []operation
	for i := 0; i+1 < len(data) && len(ops) < 200; i += 2 {
		ops = append(ops, operationOf(data[i], data[i+1], byte(i/2)))
	}
	return ops
}

// fuzz compares scripts on our queues and on the model. All keep the laws.
func fuzz(f *testing.F, real bool) {
	smallLimits(f)
	f.Add([]byte{0, 0, 4, 0, 0, 0, 13, 0})                    // add, delete, add, pop
	f.Add([]byte{7, 3, 13, 0, 7, 2, 13, 0, 13, 0})            // two lists, the second smaller
	f.Add([]byte{11, 1, 8, 0, 2, 1, 8, 0, 13, 0})             // resyncs
	f.Add([]byte{0, 0, 0, 1, 2, 0, 10, 0, 9, 0, 10, 0, 7, 0}) // batches
	f.Add([]byte{6, 0, 4, 0, 6, 0, 7, 35, 12, 0, 13, 0})      // tombstones, duplicates, no key
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, k := range kinds {
			if k.real == real {
				compare(t, k, []string{naive, ours}, script(data))
			}
		}
	})
}

func FuzzDeltaFIFO(f *testing.F) { fuzz(f, false) }
func FuzzRealFIFO(f *testing.F)  { fuzz(f, true) }
