// SPDX-License-Identifier: Apache-2.0

// Package storemodel performs the same operations on several stores with indexes and on the
// plainest one, a map that is searched, and compares what they contain. The stores of this module
// and client-go's all run the same machine. For tests only.
//
// Read machine.go, then laws.go.
//
// Source: tools/cache/index.go Indexer
package storemodel

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Unindexed has the methods of a store that have the same types in every package.
type Unindexed interface {
	Add(obj any) error
	Update(obj any) error
	Delete(obj any) error
	Replace(list []any, resourceVersion string) error
	Bookmark(resourceVersion string)
	LastStoreSyncResourceVersion() string
	Get(obj any) (item any, exists bool, err error)
	GetByKey(key string) (item any, exists bool, err error)
	List() []any
	ListKeys() []string
}

// Store is a store with indexes.
type Store interface {
	Unindexed
	Lookups
}

// Lookups are the methods of a Store that are also those of a store by key.
type Lookups interface {
	List() []any
	ListKeys() []string
	Index(indexName string, obj any) ([]any, error)
	IndexKeys(indexName, indexedValue string) ([]string, error)
	ListIndexFuncValues(indexName string) []string
	ByIndex(indexName, indexedValue string) ([]any, error)
}

// Change is a part of a transaction. Its Type is "Add", "Update" or "Delete".
type Change struct {
	Pod  *corev1.Pod
	Type string
}

// Subject is a store with the indexes First.
type Subject struct {
	Store
	// AddIndexers is the store's. The index ByNode is added if no subject lacks it.
	AddIndexers func(map[string]IndexFunc) error
	// Transact applies the changes. Nil: one after the other.
	Transact func([]Change)
	// Same compares an object that was read with the stored one. Nil: they are the same.
	Same func(t testing.TB, want *corev1.Pod, got any)
	// Laws checks invariants of the store's own. It may be nil.
	Laws func()
}

// First are the indexes that a store has from the start.
var First = map[string]IndexFunc{"namespace": ByNamespace, "tag": ByTag}

// Machine performs the same operations on the subjects and on the map.
type Machine struct {
	T        testing.TB
	subjects []Subject
	items    map[string]*corev1.Pod
	indexers map[string]IndexFunc
	version  string
	input    []byte
	count    int // of pods
}

// New returns a machine that takes its operations from the input.
func New(t testing.TB, input []byte, subjects ...Subject) *Machine {
	return &Machine{
		T: t, subjects: subjects, input: input,
		items: map[string]*corev1.Pod{}, indexers: maps.Clone(First),
	}
}

// Play performs random operations of each seed on the subjects that start makes, and checks them
// after each.
func Play(t *testing.T, seeds uint64, inputLen int, start func(t *testing.T) []Subject) {
	for seed := range seeds {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			input := make([]byte, inputLen)
			for i := range input {
				input[i] = byte(random.Uint32())
			}
			New(t, input, start(t)...).Run()
		})
	}
}

// Run performs the operations of the input, and checks the subjects after each.
func (m *Machine) Run() {
	for len(m.input) > 0 {
		m.step()
		m.check()
	}
}

// next takes a number below n from the input, 0 when the input is used up.
func (m *Machine) next(n int) int {
	if len(m.input) == 0 {
		return 0
	}
	b := m.input[0]
	m.input = m.input[1:]
	return int(b) % n
}

func (m *Machine) pod() *corev1.Pod {
	m.count++
	tags := []string{
		"", "a", "b", "c", "a,b", "b,c", "a,b,c", "b,a", "a,a", "c,b,c", "b,b,a",
	}[m.next(11)]
	node := []string{"", "n1", "n2", "n3"}[m.next(4)]
	p := Pod(fmt.Sprintf("ns%d/p%d node=%s tags=%s rv=%d",
		m.next(3), m.next(8), node, tags, m.count))
	p.UID = "uid"
	switch m.next(8) {
	case 0:
		p.Kind = "two\nlines"
	case 1:
		p.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	case 2:
		p.Spec.Hostname = strings.Repeat("x", 400)
	case 3:
		p.Labels["line"] = "a\nb\"c"
	case 4:
		p.Spec.Containers = []corev1.Container{{Image: "image-1"}, {Image: "image-2"}}
		p.Status.Phase = corev1.PodRunning
	}
	return p
}

func (m *Machine) pods() (pods []*corev1.Pod, list []any) {
	for range m.next(12) {
		p := m.pod()
		pods, list = append(pods, p), append(list, p)
	}
	return pods, list
}

func (m *Machine) put(p *corev1.Pod) { m.items[Key(p)], m.version = p, p.ResourceVersion }

func (m *Machine) delete(p *corev1.Pod) {
	delete(m.items, Key(p))
	m.version = p.ResourceVersion
}

// each performs an operation on each subject.
func (m *Machine) each(do func(s Subject) error) {
	for i, s := range m.subjects {
		require.NoError(m.T, do(s), "subject %d", i)
	}
}

func (m *Machine) step() {
	switch op := m.next(9); op {
	case 0, 1, 2:
		p := m.pod()
		m.each(func(s Subject) error { return s.Add(p) })
		m.put(p)
	case 3, 4:
		p := m.pod()
		m.each(func(s Subject) error { return s.Update(p) })
		m.put(p)
	case 5:
		p := m.pod()
		m.each(func(s Subject) error { return s.Delete(p) })
		m.delete(p)
	case 6:
		pods, list := m.pods()
		version := fmt.Sprint(1000 + m.count)
		m.each(func(s Subject) error { return s.Replace(list, version) })
		clear(m.items)
		for _, p := range pods {
			m.put(p)
		}
		m.version = version
	case 7:
		m.transaction()
	case 8:
		if m.next(2) == 0 {
			m.addIndexers()
			return
		}
		m.count++
		m.version = fmt.Sprint(m.count)
		m.each(func(s Subject) error { s.Bookmark(m.version); return nil })
	}
}

func (m *Machine) transaction() {
	pods, _ := m.pods()
	var changes []Change
	for _, p := range pods {
		change := Change{p, []string{"Add", "Update", "Delete"}[m.next(3)]}
		changes = append(changes, change)
		if change.Type == "Delete" {
			m.delete(p)
		} else {
			m.put(p)
		}
	}
	m.each(func(s Subject) error {
		if s.Transact != nil {
			s.Transact(changes)
			return nil
		}
		for _, c := range changes {
			do := map[string]func(any) error{"Add": s.Add, "Update": s.Update, "Delete": s.Delete}
			if err := do[c.Type](c.Pod); err != nil {
				return err
			}
		}
		return nil
	})
}

func (m *Machine) addIndexers() {
	if slices.ContainsFunc(m.subjects, func(s Subject) bool { return s.AddIndexers == nil }) {
		return
	}
	m.each(func(s Subject) error {
		err := s.AddIndexers(map[string]IndexFunc{"node": ByNode})
		if m.indexers["node"] == nil {
			return err
		}
		require.EqualError(m.T, err, "indexer conflict: map[node:{}]")
		return nil
	})
	m.indexers["node"] = ByNode
}

// keysBy returns the sorted keys of the pods that have one of the values.
func (m *Machine) keysBy(indexName string, values ...string) []string {
	keys := []string{}
	for key, p := range m.items {
		has, _ := m.indexers[indexName](p)
		if slices.ContainsFunc(values, func(v string) bool { return slices.Contains(has, v) }) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// values returns each value that a pod has.
func (m *Machine) values(indexName string) []string {
	values := map[string]bool{}
	for _, p := range m.items {
		has, _ := m.indexers[indexName](p)
		for _, value := range has {
			values[value] = true
		}
	}
	return slices.Sorted(maps.Keys(values))
}

func (m *Machine) check() {
	probe := m.pod()
	for i, s := range m.subjects {
		m.checkObjects(s, probe)
		for name := range m.indexers {
			m.checkIndex(s, name, probe)
		}
		require.Equal(m.T, m.version, s.LastStoreSyncResourceVersion(), "subject %d", i)
		if s.Laws != nil {
			s.Laws()
		}
	}
}

func (m *Machine) checkObjects(s Subject, probe *corev1.Pod) {
	keys := slices.Sorted(maps.Keys(m.items))
	require.ElementsMatch(m.T, keys, s.ListKeys())
	m.requireObjects(s, keys, s.List())
	for _, key := range append(keys, Key(probe), "ns0/other") {
		want := m.items[key]
		got, exists, err := s.GetByKey(key)
		m.requireObject(s, want, got, exists, err)
		if key == Key(probe) {
			got, exists, err = s.Get(probe)
			m.requireObject(s, want, got, exists, err)
		}
	}
}

func (m *Machine) checkIndex(s Subject, name string, probe *corev1.Pod) {
	values := m.values(name)
	got := s.ListIndexFuncValues(name)
	slices.Sort(got)
	require.True(m.T, slices.Equal(values, got), "%s: %q, not %q", name, got, values)
	for _, value := range append(values, "missing") {
		want := m.keysBy(name, value)
		keys, err := s.IndexKeys(name, value)
		require.NoError(m.T, err)
		require.True(m.T, slices.Equal(want, keys), "%s %s: %q, not %q", name, value, keys, want)
		found, err := s.ByIndex(name, value)
		require.NoError(m.T, err)
		m.requireObjects(s, want, found)
	}
	has, _ := m.indexers[name](probe)
	found, err := s.Index(name, probe)
	require.NoError(m.T, err)
	m.requireObjects(s, m.keysBy(name, has...), found)
}

func (m *Machine) requireObject(s Subject, want *corev1.Pod, got any, exists bool, err error) {
	m.T.Helper()
	require.NoError(m.T, err)
	require.Equal(m.T, want != nil, exists)
	if want == nil {
		require.Nil(m.T, got)
		return
	}
	m.requireSame(s, want, got)
}

func (m *Machine) requireSame(s Subject, want *corev1.Pod, got any) {
	m.T.Helper()
	if s.Same == nil {
		require.Same(m.T, want, got)
		return
	}
	s.Same(m.T, want, got)
}

// requireObjects requires the objects of the keys, each once and in any order.
func (m *Machine) requireObjects(s Subject, keys []string, got []any) {
	m.T.Helper()
	found := map[string]any{}
	for _, obj := range got {
		found[Key(obj)] = obj
	}
	require.Len(m.T, got, len(found), "an object twice")
	has := slices.Sorted(maps.Keys(found))
	require.True(m.T, slices.Equal(keys, has), "%q, not %q", has, keys)
	for _, key := range keys {
		m.requireSame(s, m.items[key], found[key])
	}
}
