// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"iter"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"example.com/informerstack/internal/tools/storemodel"
	"example.com/informerstack/store"
)

// forms are the forms that the model test runs with. same compares an object that a reader got with
// the whole object that was stored.
var forms = []struct {
	name string
	form Form
	same func(t testing.TB, want *corev1.Pod, got any)
}{
	{"compressed", Compressed(), func(t testing.TB, want *corev1.Pod, got any) {
		require.True(t, apiequality.Semantic.DeepEqual(want, got), "%v\n%v", want, got)
	}},
	{"fields", FieldsOf[*corev1.Pod]("spec.nodeName", "metadata.labels"),
		func(t testing.TB, want *corev1.Pod, got any) {
			f := got.(*Fields)
			require.Equal(t, metaOf(want), f.Meta)
			requireField(t, want.Spec.NodeName, f, "spec.nodeName")
			requireField(t, want.Labels, f, "metadata.labels")
		}},
	{"summary", Summary(summarize), func(t testing.TB, want *corev1.Pod, got any) {
		require.Equal(t, &podSummary{Meta: metaOf(want), Node: want.Spec.NodeName}, got)
	}},
}

func metaOf(pod *corev1.Pod) Meta {
	return Meta{pod.Namespace, pod.Name, pod.UID, pod.ResourceVersion}
}

func requireField[V any](t testing.TB, want V, f *Fields, path string) {
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

// subjectOf is a store of a form. A reader's object has the key of the whole object, and the lazy
// reads find what the others find.
func subjectOf(
	t *testing.T, s *Indexer, same func(testing.TB, *corev1.Pod, any),
) storemodel.Subject {
	subject := storemodel.Subject{Store: s, Same: same, Laws: func() {
		list := s.List()
		require.Len(t, list, s.Len())
		requireEach(t, list, s.All())
		for _, got := range list {
			again, exists, err := s.Get(got)
			require.NoError(t, err)
			require.True(t, exists)
			require.Equal(t, got, again)
		}
		for name := range s.GetIndexers() {
			for _, value := range append(s.ListIndexFuncValues(name), "missing") {
				found, err := s.ByIndex(name, value)
				require.NoError(t, err)
				all, err := s.AllByIndex(name, value)
				require.NoError(t, err)
				requireEach(t, found, all)
			}
		}
	}}
	if s.Whole() {
		subject.AddIndexers = func(funcs map[string]storemodel.IndexFunc) error {
			return s.AddIndexers(storemodel.Indexers[store.Indexers](funcs))
		}
	}
	return subject
}

// requireEach requires the objects of the list, in any order.
func requireEach(t *testing.T, list []any, all iter.Seq[any]) {
	t.Helper()
	want := map[string]any{}
	for _, obj := range list {
		want[storemodel.Key(obj)] = obj
	}
	for obj := range all {
		require.Equal(t, want[storemodel.Key(obj)], obj)
		delete(want, storemodel.Key(obj))
	}
	require.Empty(t, want)
}

// Random operations leave a store of each form and a searched map with the same content. Indexes
// are those of the whole objects. The limits are small: the dictionary changes after some objects,
// few stay decoded, and some are too large to.
func TestModel(t *testing.T) {
	setLimits(t, 3, 300, 1<<10)
	for _, f := range forms {
		t.Run("form="+f.name, func(t *testing.T) {
			storemodel.Play(t, 30, 1000, func(t *testing.T) []storemodel.Subject {
				indexers := storemodel.Indexers[store.Indexers](storemodel.First)
				s := New(f.form, store.Options{Indexers: indexers})
				return []storemodel.Subject{subjectOf(t, s, f.same)}
			})
		})
	}
}

// The indexes of whole objects can be added at any time, those of parts before the first object.
func TestAddIndexers(t *testing.T) {
	for _, f := range forms {
		s := New(f.form, store.Options{Indexers: store.Indexers{"image": byImage}})
		require.NoError(t, s.AddIndexers(store.Indexers{"node": storemodel.ByNode}))
		require.ErrorContains(t, s.AddIndexers(store.Indexers{"image": byImage}),
			"indexer conflict")
		require.NoError(t, s.Add(labeledPod()))
		err := s.AddIndexers(store.Indexers{"phase": byPhase})
		if f.form.Whole() {
			require.NoError(t, err)
			require.Equal(t, []string{""}, s.ListIndexFuncValues("phase"))
			require.Len(t, s.GetIndexers(), 3)
			continue
		}
		require.ErrorContains(t, err,
			"indexes were added after the first object was received: phase")
		require.Len(t, s.GetIndexers(), 2)
	}
}

// A Form has no state: two stores of one Form, with other indexes, do not share any.
func TestForm_SharedByStores(t *testing.T) {
	for _, f := range forms {
		a := New(f.form, store.Options{Indexers: store.Indexers{"image": byImage}})
		b := New(f.form, store.Options{Indexers: store.Indexers{"phase": byPhase}})
		pod := labeledPod()
		pod.Status.Phase = corev1.PodRunning
		require.NoError(t, a.Add(pod))
		assert.Zero(t, b.Len())
		require.NoError(t, b.Add(pod))
		got, err := b.ByIndex("phase", "Running")
		require.NoError(t, err)
		f.same(t, pod, got[0])
	}
}
