// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	clientgo "k8s.io/client-go/tools/cache"
)

// model is the plainest store with indexes: a map that is searched.
type model struct {
	items    map[string]*corev1.Pod
	indexers map[string]func(any) ([]string, error)
	rv       string
}

func (m *model) put(p *corev1.Pod) {
	key, _ := MetaNamespaceKeyFunc(p)
	m.items[key], m.rv = p, p.ResourceVersion
}

func (m *model) delete(p *corev1.Pod) {
	key, _ := MetaNamespaceKeyFunc(p)
	delete(m.items, key)
	m.rv = p.ResourceVersion
}

func (m *model) keysBy(indexName string, values ...string) []string {
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

// machine performs the same operations on our store, on client-go's and on the model.
type machine struct {
	t     *testing.T
	ours  *cache
	ref   clientgo.Indexer
	model *model
	input []byte
	rv    int
}

func newMachine(t *testing.T, input []byte) *machine {
	return &machine{
		t: t,
		ours: New(MetaNamespaceKeyFunc, Options{
			Indexers: Indexers{NamespaceIndex: MetaNamespaceIndexFunc, "tag": byTag}}).(*cache),
		ref: clientgo.NewIndexer(clientgo.MetaNamespaceKeyFunc, clientgo.Indexers{
			NamespaceIndex: clientgo.MetaNamespaceIndexFunc, "tag": byTag}),
		model: &model{
			items: map[string]*corev1.Pod{},
			indexers: map[string]func(any) ([]string, error){
				NamespaceIndex: MetaNamespaceIndexFunc, "tag": byTag},
		},
		input: input,
	}
}

// next takes a number below n from the input, 0 when the input is used up.
func (m *machine) next(n int) int {
	if len(m.input) == 0 {
		return 0
	}
	b := m.input[0]
	m.input = m.input[1:]
	return int(b) % n
}

func (m *machine) pod() *corev1.Pod {
	m.rv++
	tags := []string{
		"", "a", "b", "c", "a,b", "b,c", "a,b,c", "b,a", "a,a", "c,b,c", "b,b,a",
	}[m.next(11)]
	node := []string{"", "n1", "n2", "n3"}[m.next(4)]
	return pod(
		fmt.Sprintf("ns%d/p%d node=%s tags=%s rv=%d", m.next(3), m.next(8), node, tags, m.rv),
	)
}

func (m *machine) pods() (pods []*corev1.Pod, list []any) {
	for range m.next(12) {
		p := m.pod()
		pods, list = append(pods, p), append(list, p)
	}
	return pods, list
}

func (m *machine) step() {
	switch m.next(9) {
	case 0, 1, 2:
		p := m.pod()
		require.NoError(m.t, m.ours.Add(p))
		require.NoError(m.t, m.ref.Add(p))
		m.model.put(p)
	case 3, 4:
		p := m.pod()
		require.NoError(m.t, m.ours.Update(p))
		require.NoError(m.t, m.ref.Update(p))
		m.model.put(p)
	case 5:
		p := m.pod()
		require.NoError(m.t, m.ours.Delete(p))
		require.NoError(m.t, m.ref.Delete(p))
		m.model.delete(p)
	case 6:
		m.replace()
	case 7:
		m.transaction()
	case 8:
		m.addIndexersOrBookmark()
	}
}

func (m *machine) replace() {
	pods, list := m.pods()
	rv := fmt.Sprint(1000 + m.rv)
	require.NoError(m.t, m.ours.Replace(list, rv))
	require.NoError(m.t, m.ref.Replace(list, rv))
	clear(m.model.items)
	for _, p := range pods {
		m.model.put(p)
	}
	m.model.rv = rv
}

func (m *machine) transaction() {
	pods, _ := m.pods()
	types := []TransactionType{TransactionTypeAdd, TransactionTypeUpdate, TransactionTypeDelete}
	var ours []Transaction
	var ref []clientgo.Transaction
	for _, p := range pods {
		kind := types[m.next(3)]
		ours = append(ours, Transaction{p, kind})
		ref = append(ref, clientgo.Transaction{Object: p, Type: clientgo.TransactionType(kind)})
		if kind == TransactionTypeDelete {
			m.model.delete(p)
		} else {
			m.model.put(p)
		}
	}
	require.Nil(m.t, m.ours.Transaction(ours...))
	require.Nil(m.t, m.ref.(clientgo.TransactionStore).Transaction(ref...))
}

func (m *machine) addIndexersOrBookmark() {
	if m.next(2) == 0 {
		m.rv++
		rv := fmt.Sprint(m.rv)
		m.ours.Bookmark(rv)
		m.ref.Bookmark(rv)
		m.model.rv = rv
		return
	}
	got, want := m.ours.AddIndexers(
		Indexers{"node": byNode},
	), m.ref.AddIndexers(clientgo.Indexers{"node": byNode})
	require.Equal(m.t, want == nil, got == nil)
	if want != nil {
		require.EqualError(m.t, got, want.Error())
	}
	m.model.indexers["node"] = byNode
}

func (m *machine) check() {
	t := m.t
	checkLaws(t, &m.ours.threadSafeMap)
	want := append([]string{}, sortedKeys(m.model.items)...)
	require.ElementsMatch(t, want, m.ours.ListKeys())
	require.ElementsMatch(t, want, m.ref.ListKeys())
	require.Equal(t, want, keysOf(m.ours.List()))
	require.Equal(t, m.model.rv, m.ours.LastStoreSyncResourceVersion())
	require.Equal(t, m.model.rv, m.ref.LastStoreSyncResourceVersion())
	for key, p := range m.model.items {
		got, exists, err := m.ours.GetByKey(key)
		require.NoError(t, err)
		require.True(t, exists)
		require.Same(t, p, got)
	}
	probe := m.pod()
	key, _ := MetaNamespaceKeyFunc(probe)
	obj, exists, err := m.ours.Get(probe)
	require.NoError(t, err)
	require.Equal(t, m.model.items[key] != nil, exists)
	if exists {
		require.Same(t, m.model.items[key], obj)
	} else {
		require.Nil(t, obj)
	}
	for name, indexFunc := range m.model.indexers {
		values := m.ours.ListIndexFuncValues(name)
		require.ElementsMatch(t, m.ref.ListIndexFuncValues(name), values)
		for _, value := range append(values, "missing") {
			want := m.model.keysBy(name, value)
			got, err := m.ours.IndexKeys(name, value)
			require.NoError(t, err)
			require.Equal(t, want, got, "%s %s", name, value)
			list, err := m.ours.ByIndex(name, value)
			require.NoError(t, err)
			require.Equal(t, want, keysOf(list))
		}
		probe := m.pod()
		values, _ = indexFunc(probe)
		got, err := m.ours.Index(name, probe)
		require.NoError(t, err)
		require.Equal(t, m.model.keysBy(name, values...), keysOf(got))
		ref, err := m.ref.Index(name, probe)
		require.NoError(t, err)
		require.ElementsMatch(t, ref, got)
	}
}

func keysOf(list []any) []string {
	keys := []string{}
	for _, obj := range list {
		key, _ := MetaNamespaceKeyFunc(obj)
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// Random operations leave our store, client-go's and a searched map with the same content.
func TestModel(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 1))
		input := make([]byte, 1500)
		for i := range input {
			input[i] = byte(random.Uint32())
		}
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			m := newMachine(t, input)
			for len(m.input) > 0 {
				m.step()
				m.check()
			}
		})
	}
}
