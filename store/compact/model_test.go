// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/store"
)

// forms are the forms that the model test runs with. same compares an object that a reader got with
// the whole object that was stored.
var forms = []struct {
	name string
	form Form
	same func(t *testing.T, want *corev1.Pod, got any)
}{
	{"compressed", Compressed(), func(t *testing.T, want *corev1.Pod, got any) {
		require.True(t, apiequality.Semantic.DeepEqual(want, got), "%v\n%v", want, got)
	}},
	{"fields", FieldsOf[*corev1.Pod]("spec.nodeName", "metadata.labels"),
		func(t *testing.T, want *corev1.Pod, got any) {
			f := got.(*Fields)
			require.Equal(t, metaOf(want), f.Meta)
			requireField(t, want.Spec.NodeName, f, "spec.nodeName")
			requireField(t, want.Labels, f, "metadata.labels")
		}},
	{"summary", Summary(summarize), func(t *testing.T, want *corev1.Pod, got any) {
		require.Equal(t, &podSummary{Meta: metaOf(want), Node: want.Spec.NodeName}, got)
	}},
}

func metaOf(pod *corev1.Pod) Meta {
	return Meta{pod.Namespace, pod.Name, pod.UID, pod.ResourceVersion}
}

func requireField[V any](t *testing.T, want V, f *Fields, path string) {
	t.Helper()
	got, err := Get[V](f, path)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

type podSummary struct {
	Meta
	Node string
}

func summarize(pod *corev1.Pod) *podSummary { return &podSummary{Node: pod.Spec.NodeName} }

// byImage has any number of values, computed from fields that no projection here keeps.
func byImage(obj any) (images []string, err error) {
	for _, c := range obj.(*corev1.Pod).Spec.Containers {
		images = append(images, c.Image)
	}
	return images, nil
}

func byPhase(obj any) ([]string, error) {
	return []string{string(obj.(*corev1.Pod).Status.Phase)}, nil
}

// model is the plainest store: a map that is searched.
type model struct {
	items    map[string]*corev1.Pod
	indexers store.Indexers
	version  string
}

func (m *model) keysBy(indexName string, values ...string) []string {
	keys := []string{}
	for _, key := range slices.Sorted(maps.Keys(m.items)) {
		has, _ := m.indexers[indexName](m.items[key])
		if slices.ContainsFunc(values, func(v string) bool { return slices.Contains(has, v) }) {
			keys = append(keys, key)
		}
	}
	return keys
}

// machine performs the same operations on an Indexer and on the model.
type machine struct {
	t       *testing.T
	indexer *Indexer
	whole   bool
	same    func(t *testing.T, want *corev1.Pod, got any)
	model   model
	random  *rand.Rand
	version int
	stored  bool // an object was packed
}

func (m *machine) pod() *corev1.Pod {
	m.version++
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: fmt.Sprint("ns", m.random.IntN(3)), Name: fmt.Sprint("p", m.random.IntN(8)),
			UID: "uid", ResourceVersion: fmt.Sprint(m.version),
		},
		Spec: corev1.PodSpec{NodeName: fmt.Sprint("node-", m.random.IntN(4))},
		Status: corev1.PodStatus{
			Phase: []corev1.PodPhase{corev1.PodPending, corev1.PodRunning}[m.random.IntN(2)],
		},
	}
	if m.random.IntN(2) == 0 {
		pod.Labels = map[string]string{"app": fmt.Sprint(m.random.IntN(9)), "line": "a\nb\"c"}
	}
	switch m.random.IntN(8) {
	case 0:
		pod.Kind = "two\nlines" // it cannot be compressed
	case 1:
		pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	case 2:
		pod.Spec.Hostname = strings.Repeat("x", maxRecentBytes) // it is not kept decoded
	}
	for range m.random.IntN(4) {
		pod.Spec.Containers = append(pod.Spec.Containers,
			corev1.Container{Image: fmt.Sprint("image-", m.random.IntN(3))})
	}
	return pod
}

func keyOf(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

func (m *machine) step() {
	pod := m.pod()
	switch m.random.IntN(8) {
	case 0, 1:
		require.NoError(m.t, m.indexer.Add(pod))
		m.put(pod)
	case 2, 3:
		require.NoError(m.t, m.indexer.Update(pod))
		m.put(pod)
	case 4:
		require.NoError(m.t, m.indexer.Delete(pod))
		delete(m.model.items, keyOf(pod))
		m.model.version = pod.ResourceVersion
	case 5:
		var list []any
		clear(m.model.items)
		for range m.random.IntN(12) {
			pod := m.pod()
			list = append(list, pod)
			m.put(pod)
		}
		m.model.version = fmt.Sprint(1000 + m.version)
		require.NoError(m.t, m.indexer.Replace(list, m.model.version))
	case 6:
		m.model.version = fmt.Sprint(m.version)
		m.indexer.Bookmark(m.model.version)
	case 7:
		m.addIndexers()
	}
}

func (m *machine) put(pod *corev1.Pod) {
	m.model.items[keyOf(pod)] = pod
	m.model.version, m.stored = pod.ResourceVersion, true
}

func (m *machine) addIndexers() {
	err := m.indexer.AddIndexers(store.Indexers{"phase": byPhase})
	switch {
	case !m.whole && m.stored:
		require.ErrorContains(m.t, err,
			"indexes were added after the first object was received: phase")
	case m.model.indexers["phase"] != nil:
		require.ErrorContains(m.t, err, "indexer conflict")
	default:
		require.NoError(m.t, err)
		m.model.indexers["phase"] = byPhase
	}
}

func (m *machine) check() {
	t := m.t
	want := slices.Sorted(maps.Keys(m.model.items))
	require.ElementsMatch(t, want, m.indexer.ListKeys())
	require.Equal(t, len(want), m.indexer.Len())
	require.Equal(t, m.model.version, m.indexer.LastStoreSyncResourceVersion())
	m.requireObjects(want, m.indexer.List())
	m.requireObjects(want, slices.Collect(m.indexer.All()))
	for key, pod := range m.model.items {
		got, exists, err := m.indexer.GetByKey(key)
		require.NoError(t, err)
		require.True(t, exists)
		m.same(t, pod, got)
		again, _, _ := m.indexer.Get(got)
		require.Equal(t, got, again, "a reader's object has the key of the whole object")
	}
	_, exists, err := m.indexer.GetByKey("ns0/other")
	require.NoError(t, err)
	require.False(t, exists)
	require.ElementsMatch(t, slices.Collect(maps.Keys(m.model.indexers)),
		slices.Collect(maps.Keys(m.indexer.GetIndexers())))
	for name, indexFunc := range m.model.indexers {
		for _, value := range append(m.indexer.ListIndexFuncValues(name), "missing") {
			want := m.model.keysBy(name, value)
			keys, err := m.indexer.IndexKeys(name, value)
			require.NoError(t, err)
			require.Equal(t, want, keys, "%s %s", name, value)
			found, err := m.indexer.ByIndex(name, value)
			require.NoError(t, err)
			m.requireObjects(want, found)
			all, err := m.indexer.AllByIndex(name, value)
			require.NoError(t, err)
			m.requireObjects(want, slices.Collect(all))
		}
		probe := m.pod()
		values, _ := indexFunc(probe)
		found, err := m.indexer.Index(name, probe)
		require.NoError(t, err)
		m.requireObjects(m.model.keysBy(name, values...), found)
	}
}

// requireObjects requires the objects of the keys, in any order.
func (m *machine) requireObjects(keys []string, got []any) {
	m.t.Helper()
	require.Len(m.t, got, len(keys))
	byKey := map[string]any{}
	for _, obj := range got {
		key, err := store.MetaNamespaceKeyFunc(obj)
		require.NoError(m.t, err)
		byKey[key] = obj
	}
	for _, key := range keys {
		require.Contains(m.t, byKey, key)
		m.same(m.t, m.model.items[key], byKey[key])
	}
}

// Random operations leave a store of each form and a searched map with the same content. Indexes
// are those of the whole objects. The limits are small: the dictionary changes after some objects,
// few stay decoded, and some are too large to.
func TestModel(t *testing.T) {
	setLimits(t, 3, 300, 1<<10)
	for _, f := range forms {
		for seed := range uint64(30) {
			t.Run(fmt.Sprintf("form=%s/seed=%d", f.name, seed), func(t *testing.T) {
				indexers := store.Indexers{
					store.NamespaceIndex: store.MetaNamespaceIndexFunc, "image": byImage,
				}
				m := &machine{
					t: t, whole: f.form.Whole(), same: f.same,
					random:  rand.New(rand.NewPCG(seed, 3)),
					indexer: New(f.form, store.Options{Indexers: indexers}),
					model:   model{items: map[string]*corev1.Pod{}, indexers: maps.Clone(indexers)},
				}
				for range 60 {
					m.step()
					m.check()
				}
			})
		}
	}
}

// A Form has no state: two stores of one Form, with other indexes, do not share any.
func TestForm_SharedByStores(t *testing.T) {
	for _, f := range forms {
		a := New(f.form, store.Options{Indexers: store.Indexers{"image": byImage}})
		b := New(f.form, store.Options{Indexers: store.Indexers{"phase": byPhase}})
		m := &machine{t: t, random: rand.New(rand.NewPCG(1, 1))}
		pod := m.pod()
		require.NoError(t, a.Add(pod))
		assert.Zero(t, b.Len())
		require.NoError(t, b.Add(pod))
		got, err := b.ByIndex("phase", string(pod.Status.Phase))
		require.NoError(t, err)
		f.same(t, pod, got[0])
	}
}
