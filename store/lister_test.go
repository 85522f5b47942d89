// SPDX-License-Identifier: Apache-2.0

package store

import (
	"iter"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgo "k8s.io/client-go/tools/cache"
)

func listerIndexer(indexers Indexers) Indexer {
	indexer := New(MetaNamespaceKeyFunc, Options{Indexers: indexers})
	for _, text := range []string{
		"ns/a app=web", "ns/b app=db", "other/c app=web", "node-1 app=web",
	} {
		if err := indexer.Add(pod(text)); err != nil {
			panic(err)
		}
	}
	return indexer
}

func selector(text string) labels.Selector {
	if text == "nothing" {
		return labels.Nothing()
	}
	s, err := labels.Parse(text)
	if err != nil {
		panic(err)
	}
	return s
}

// lazyIndexer makes its objects when they are read, one after the other.
type lazyIndexer struct{ Indexer }

func (x lazyIndexer) All() iter.Seq[any] { return slices.Values(x.Indexer.List()) }

func (x lazyIndexer) AllByIndex(name, value string) (iter.Seq[any], error) {
	found, err := x.Indexer.ByIndex(name, value)
	return slices.Values(found), err
}

func (lazyIndexer) List() []any { panic("all objects are made at once") }

func (lazyIndexer) ByIndex(string, string) ([]any, error) { panic("all objects are made at once") }

func (lazyIndexer) Index(string, any) ([]any, error) { panic("all objects are made at once") }

// Lists by namespace and selector, with a namespace index and without, on ours and on client-go.
func TestList(t *testing.T) {
	with := listerIndexer(Indexers{NamespaceIndex: MetaNamespaceIndexFunc})
	without := listerIndexer(nil)
	ref := clientgo.NewIndexer(clientgo.MetaNamespaceKeyFunc,
		clientgo.Indexers{NamespaceIndex: clientgo.MetaNamespaceIndexFunc})
	for _, obj := range with.List() {
		require.NoError(t, ref.Add(obj))
	}
	for _, c := range []struct {
		namespace, selector string
		want                []string
	}{
		{"", "", []string{"node-1", "ns/a", "ns/b", "other/c"}},
		{"", "app=web", []string{"node-1", "ns/a", "other/c"}},
		{"ns", "", []string{"ns/a", "ns/b"}},
		{"ns", "app!=web", []string{"ns/b"}},
		{"ns", "app=none", []string{}},
		{"none", "", []string{}},
		{"", "nothing", []string{}},
		{"ns", "nothing", []string{}},
	} {
		t.Run(c.namespace+","+c.selector, func(t *testing.T) {
			indexers := []Indexer{
				with, without, lazyIndexer{with}, NewTypedIndexer[*corev1.Pod](lazyIndexer{with}),
			}
			if c.selector == "nothing" {
				indexers = append(indexers, lazyIndexer{}) // it is not read
			}
			for _, indexer := range indexers {
				var got []any
				add := func(obj any) { got = append(got, obj) }
				require.NoError(t,
					ListAllByNamespace(indexer, c.namespace, selector(c.selector), add))
				require.Equal(t, c.want, keysOf(got))
				if c.namespace == "" {
					got = nil
					require.NoError(t, ListAll(indexer, selector(c.selector), add))
					require.Equal(t, c.want, keysOf(got))
				}
			}
			var got []any
			add := func(obj any) { got = append(got, obj) }
			require.NoError(t,
				clientgo.ListAllByNamespace(ref, c.namespace, selector(c.selector), add))
			require.Equal(t, c.want, keysOf(got))
		})
	}
}

// No selector selects everything. client-go's ListAll dereferences it.
func TestDifference_NilSelectorSelectsAll(t *testing.T) {
	for _, indexers := range []Indexers{nil, {NamespaceIndex: MetaNamespaceIndexFunc}} {
		lister := NewLister[*corev1.Pod](listerIndexer(indexers),
			schema.GroupResource{Resource: "pods"})
		pods, err := lister.List(nil)
		require.NoError(t, err)
		require.Len(t, pods, 4)
		pods, err = lister.ByNamespace("ns").List(nil)
		require.NoError(t, err)
		require.Len(t, pods, 2)
	}
	require.Panics(t, func() {
		_ = clientgo.ListAll(clientgo.NewStore(clientgo.MetaNamespaceKeyFunc), nil, func(any) {})
	})
}

// A lister calls no index function, so that of a namespace may expect the type of the store's
// objects. client-go's calls it with an *ObjectMeta that has a namespace and nothing else.
func TestDifference_ListersCallNoIndexFunc(t *testing.T) {
	ofPod := func(obj any) ([]string, error) { return []string{obj.(*corev1.Pod).Namespace}, nil }
	lister := NewLister[*corev1.Pod](listerIndexer(Indexers{NamespaceIndex: ofPod}),
		schema.GroupResource{Resource: "pods"})
	pods, err := lister.ByNamespace("ns").List(labels.Everything())
	require.NoError(t, err)
	require.Len(t, pods, 2)

	ref := clientgo.NewIndexer(clientgo.MetaNamespaceKeyFunc,
		clientgo.Indexers{NamespaceIndex: ofPod})
	require.Panics(t, func() {
		_ = clientgo.ListAllByNamespace(ref, "ns", labels.Everything(), func(any) {})
	})
}

// Get finds by namespace and name, and otherwise names the resource.
func TestListerGet(t *testing.T) {
	indexer := listerIndexer(Indexers{NamespaceIndex: MetaNamespaceIndexFunc})
	lister := NewLister[*corev1.Pod](indexer, schema.GroupResource{Resource: "pods"})
	p, err := lister.ByNamespace("ns").Get("a")
	require.NoError(t, err)
	require.Equal(t, "a", p.Name)
	p, err = lister.Get("node-1")
	require.NoError(t, err)
	require.Equal(t, "node-1", p.Name)

	_, err = lister.ByNamespace("ns").Get("none")
	require.True(t, apierrors.IsNotFound(err))
	require.EqualError(t, err, `pods "none" not found`)
	_, err = lister.Get("a")
	require.True(t, apierrors.IsNotFound(err))

	_, err = NewLister[*corev1.Pod](failingIndexer{indexer}, schema.GroupResource{}).Get("a")
	require.Equal(t, errBroken, err)
}

// failingIndexer cannot be read.
type failingIndexer struct{ Indexer }

func (failingIndexer) GetByKey(string) (any, bool, error) { return nil, false, errBroken }

// An object of another type, or one without metadata, is an error where client-go's lister panics.
func TestDifference_WrongTypeIsAListerError(t *testing.T) {
	indexer := listerIndexer(nil)
	nodes := NewLister[*corev1.Node](indexer, schema.GroupResource{Resource: "nodes"})
	list, err := nodes.List(labels.Everything())
	require.EqualError(t, err, "object is a *v1.Pod, not a *v1.Node")
	require.Empty(t, list)
	_, err = nodes.Get("node-1")
	require.EqualError(t, err, "object is a *v1.Pod, not a *v1.Node")

	odd := New(func(any) (string, error) { return "odd", nil }, Options{})
	require.NoError(t, odd.Add("text"))
	_, err = NewLister[runtime.Object](odd, schema.GroupResource{}).List(labels.Everything())
	require.EqualError(t, err, "object is a string, not a runtime.Object")
	for _, content := range []any{"text", (*corev1.Pod)(nil)} {
		require.NoError(t, odd.Add(content))
		for _, indexer := range []Indexer{odd, lazyIndexer{odd}} {
			err = ListAllByNamespace(indexer, "", selector("a!=b"), func(any) { t.Error("found") })
			require.ErrorContains(t, err, "object has no meta")
		}
		err = ListAllByNamespace(odd, "ns", selector("a!=b"), func(any) { t.Error("found") })
		require.ErrorContains(t, err, "object has no meta")
	}
}

// part is a part of an object: its metadata have no labels.
type part struct{ name string }

func (p part) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: "ns", Name: p.name}
}

type unlabeledPart struct{ part }

func (unlabeledPart) SelectorLabels() (map[string]string, error) { return nil, errBroken }

type labeledPart struct {
	unlabeledPart
	labels map[string]string
}

func (p labeledPart) GetLabels() map[string]string { return p.labels }

// A selector looks at the labels of GetLabels, then at those of SelectorLabels, then at those of
// the metadata. If they are not known, no object is found by mistake.
func TestList_LabelsOfAPart(t *testing.T) {
	for _, indexers := range []Indexers{nil, {NamespaceIndex: MetaNamespaceIndexFunc}} {
		indexer := New(MetaNamespaceKeyFunc, Options{Indexers: indexers})
		find := func(namespace string) ([]string, error) {
			lister := NewLister[any](indexer, schema.GroupResource{}).ByNamespace(namespace)
			found, err := lister.List(selector("app!=web"))
			return keysOf(found), err
		}
		web := map[string]string{"app": "web"}
		require.NoError(t, indexer.Add(labeledPart{unlabeledPart{part{"a"}}, web}))
		require.NoError(t, indexer.Add(labeledPart{unlabeledPart{part{"b"}}, nil}))
		for _, namespace := range []string{"", "ns"} {
			found, err := find(namespace)
			require.NoError(t, err)
			require.Equal(t, []string{"ns/b"}, found)
		}
		require.NoError(t, indexer.Replace([]any{unlabeledPart{part{"c"}}}, "1"))
		for _, namespace := range []string{"", "ns"} {
			found, err := find(namespace)
			require.ErrorIs(t, err, errBroken)
			require.Empty(t, found)
		}
	}
}

// The typed indexer returns typed objects, and an error when the index or the type is wrong.
func TestTypedIndexer(t *testing.T) {
	indexer := New(
		MetaNamespaceKeyFunc,
		Options{Indexers: TypedIndexersToIndexers(TypedIndexers[*corev1.Pod]{
			"node": func(p *corev1.Pod) ([]string, error) { return []string{p.Spec.NodeName}, nil },
		})},
	)
	typed := NewTypedIndexer[*corev1.Pod](indexer)
	a, b := pod("ns/a node=n1"), pod("ns/b node=n1")
	require.NoError(t, typed.Add(a))
	require.NoError(t, typed.Add(b))
	require.NoError(t, typed.AddTypedIndexers(TypedIndexers[*corev1.Pod]{
		"name": func(p *corev1.Pod) ([]string, error) { return []string{p.Name}, nil },
	}))
	pods, err := typed.TypedIndex("node", a)
	require.NoError(t, err)
	require.ElementsMatch(t, []*corev1.Pod{a, b}, pods)
	pods, err = typed.ByTypedIndex("name", "b")
	require.NoError(t, err)
	require.Equal(t, []*corev1.Pod{b}, pods)
	_, err = typed.ByTypedIndex("none", "b")
	require.EqualError(t, err, "Index with name none does not exist")

	_, err = NewTypedIndexer[*corev1.Node](indexer).ByTypedIndex("name", "b")
	require.EqualError(t, err, "object is a *v1.Pod, not a *v1.Node")
	require.PanicsWithError(
		t,
		`unable to calculate an index entry for key "n" on index "node": object is a *v1.Node, not a *v1.Pod`,
		func() { _ = typed.Add(&corev1.Node{ObjectMeta: pod("n").ObjectMeta}) },
	)
	require.Len(t, typed.List(), 2)
	require.Equal(t, 2, Len(typed))

	for whole, want := range map[bool]int{false: 0, true: 1} {
		untyped := New(MetaNamespaceKeyFunc, Options{})
		err := NewTypedIndexer[*corev1.Pod](formIndexer{untyped, whole}).AddTypedIndexers(
			TypedIndexers[*corev1.Pod]{"any": nil})
		require.Equal(t, whole, err == nil, "%v", err)
		require.Len(t, untyped.GetIndexers(), want)
	}
}

// formIndexer stores whole objects or parts of them.
type formIndexer struct {
	Indexer
	whole bool
}

func (x formIndexer) Whole() bool { return x.whole }
