// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"example.com/informerstack/store"
)

func labeledPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "a", ResourceVersion: "1", Labels: map[string]string{"app": "x"},
		},
		Spec: corev1.PodSpec{NodeName: "n"},
	}
}

func only(t *testing.T, form Form, obj any) any {
	t.Helper()
	s := New(form, store.Options{})
	require.NoError(t, s.Add(obj))
	return s.List()[0]
}

// A client takes a runtime.Object, or a T, which is one. Parts of objects are not, so that a client
// call with one does not compile. If it gets into JSON in another way, the encoder fails.
func TestParts_CannotBeSent(t *testing.T) {
	fields := only(t, FieldsOf[*corev1.Pod]("spec.nodeName"), labeledPod())
	summary := only(t, Summary(summarize), labeledPod())
	for _, part := range []any{fields, summary} {
		_, isObject := part.(runtime.Object)
		assert.False(t, isObject, "%T", part)
		_, hasMetadata := part.(metav1.Object)
		assert.False(t, hasMetadata, "%T", part)
	}
	_, err := json.Marshal(fields)
	require.ErrorContains(t, err,
		"ns/a@1 with spec.nodeName holds only some fields, and must not be sent to a server")
}

// No message shows a value of a Fields, which may be of a Secret, whether it has a pointer or a
// copy.
func TestFields_ValuesAreNotPrinted(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s", ResourceVersion: "1"},
		Data: map[string][]byte{"password": []byte("hidden")}}
	f := only(t, FieldsOf[*corev1.Secret]("data"), secret).(*Fields)
	value, err := Get[map[string][]byte](f, "data")
	require.NoError(t, err)
	require.Equal(t, secret.Data, value)
	for _, printed := range []any{f, *f, []Fields{*f}, struct{ F Fields }{*f},
		&struct{ F any }{*f}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
			text := fmt.Sprintf(verb, printed)
			assert.NotContains(t, text, "password", verb)
			assert.NotContains(t, text, "aGlkZGVu", verb)
			assert.NotRegexp(t, "61476c6b5a47567", text, verb)
		}
		_, err := json.Marshal(printed)
		require.ErrorContains(t, err, "holds only some fields, and must not be sent to a server")
	}
	assert.Equal(t, "s@1 with data", fmt.Sprintf("%v", f))
	assert.Equal(t, "s@1 with data", fmt.Sprintf("%#v", *f))
	assert.Equal(t, "no Fields", fmt.Sprint(Fields{}))
	var none *Fields
	assert.Equal(t, "<nil>", fmt.Sprint(none))
}

// A value that cannot be encoded fails for its readers only: the object is stored.
func TestFieldsOf_ValueCannotBeEncoded(t *testing.T) {
	broken := &lossy{widget: widget{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, broken: true}
	type outer struct {
		metav1.ObjectMeta `json:"metadata"`
		Spec              *lossy `json:"spec"`
		Title             string `json:"title"`
	}
	form := FieldsOf[*outer]("spec", "title")
	f := only(t, form, &outer{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: broken, Title: "x"})
	_, err := Get[widget](f.(*Fields), "spec")
	require.ErrorContains(t, err, "read spec of a: it could not be encoded: ")
	require.ErrorContains(t, err, "no JSON today")
	requireField(t, "x", f.(*Fields), "title")
}

// A summary that is returned for several objects is copied: each keeps its own name.
func TestSummary_SharedValue(t *testing.T) {
	shared := &podSummary{Node: "everywhere"}
	s := New(Summary(func(*corev1.Pod) *podSummary { return shared }), store.Options{})
	for _, name := range []string{"a", "b"} {
		require.NoError(t, s.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	for _, name := range []string{"a", "b"} {
		got, _, err := s.GetByKey(name)
		require.NoError(t, err)
		assert.Equal(t, &podSummary{Meta: Meta{Name: name}, Node: "everywhere"}, got)
	}
	assert.Equal(t, &podSummary{Node: "everywhere"}, shared)
}

type pointsToMeta struct{ *Meta }

// A struct that embeds a pointer to a Meta cannot be copied with it. No struct is an error, too.
func TestSummary_CannotBeCopied(t *testing.T) {
	shared := &Meta{}
	pointer := New(Summary(func(*corev1.Pod) *pointsToMeta { return &pointsToMeta{shared} }),
		store.Options{})
	require.ErrorContains(t, pointer.Add(labeledPod()), "embeds a pointer to a Meta")
	value := New(Summary(func(*corev1.Pod) pointsToMeta { return pointsToMeta{shared} }),
		store.Options{})
	require.ErrorContains(t, value.Add(labeledPod()), "is a compact.pointsToMeta, not a pointer")
	none := New(Summary(func(*corev1.Pod) *podSummary { return nil }), store.Options{})
	require.ErrorContains(t, none.Add(labeledPod()), "summary of a *v1.Pod is nil")
	assert.Zero(t, *shared)
}

// A typed index function of a projection would get whole objects: it is refused at once, not by a
// panic at the first object. Those of whole objects are added.
func TestAddTypedIndexers(t *testing.T) {
	parts := store.NewTypedIndexer[*podSummary](New(Summary(summarize), store.Options{}))
	err := parts.AddTypedIndexers(store.TypedIndexers[*podSummary]{
		"node": func(s *podSummary) ([]string, error) { return []string{s.Node}, nil }})
	require.ErrorContains(t, err,
		"index functions take whole objects, and a *compact.podSummary is a part of one")
	require.NoError(t, parts.Add(labeledPod()))
	require.NoError(t, parts.AddIndexers(nil))

	whole := store.NewTypedIndexer[*corev1.Pod](New(Compressed(), store.Options{}))
	require.NoError(t, whole.Add(labeledPod()))
	require.NoError(t, whole.AddTypedIndexers(store.TypedIndexers[*corev1.Pod]{
		"node": func(p *corev1.Pod) ([]string, error) { return []string{p.Spec.NodeName}, nil }}))
	found, err := whole.ByTypedIndex("node", "n")
	require.NoError(t, err)
	assert.Len(t, found, 1)
}

// A list through a typed indexer is as lazy as without it: objects that do not match are not in
// memory together.
func TestTypedIndexer_IsLazy(t *testing.T) {
	s := New(Compressed(), store.Options{
		Indexers: store.Indexers{store.NamespaceIndex: store.MetaNamespaceIndexFunc}})
	require.NoError(t, s.Replace([]any{labeledPod(), &corev1.Pod{}}, "1"))
	typed := store.NewTypedIndexer[*corev1.Pod](eager{s})
	n := 0
	require.NoError(t, store.ListAll(typed, labels.Everything(), func(any) { n++ }))
	require.NoError(t, store.ListAllByNamespace(typed, "ns", nil, func(any) { n++ }))
	assert.Equal(t, 3, n)
	assert.Equal(t, 2, store.Len(typed))
}

// eager fails when all objects are unpacked at once, or counted by their keys.
type eager struct{ *Indexer }

func (eager) List() []any                           { panic("List") }
func (eager) ListKeys() []string                    { panic("ListKeys") }
func (eager) ByIndex(string, string) ([]any, error) { panic("ByIndex") }

func TestGet_NotKept(t *testing.T) {
	f := only(t, FieldsOf[*corev1.Pod](".spec.nodeName", "metadata.labels"), labeledPod()).(*Fields)
	for _, path := range []string{"spec.nodeName", ".spec.nodeName"} {
		_, err := Get[string](f, path)
		require.NoError(t, err)
	}
	_, err := Get[string](f, "spec.hostname")
	var notKept *NotKeptError
	require.ErrorAs(t, err, &notKept)
	assert.Equal(t, "spec.hostname", notKept.Path)
	assert.Equal(t, []string{"spec.nodeName", "metadata.labels"}, notKept.Kept)
	_, err = Get[int](f, "spec.nodeName")
	require.ErrorContains(t, err, "read spec.nodeName of ns/a: ")
}

type labeledSummary struct {
	Meta
	labels map[string]string
}

func (s *labeledSummary) GetLabels() map[string]string { return s.labels }

// A label selector finds what it would find in whole objects, or fails.
func TestListAll_LabelSelector(t *testing.T) {
	tests := map[string]struct {
		form Form
		want string // an error, or ""
	}{
		"compressed":           {Compressed(), ""},
		"fields with labels":   {FieldsOf[*corev1.Pod]("metadata.labels"), ""},
		"fields with metadata": {FieldsOf[*corev1.Pod]("metadata"), ""},
		"fields": {FieldsOf[*corev1.Pod]("spec.nodeName"),
			"field metadata.labels of *v1.Pod is not kept"},
		"summary": {Summary(summarize),
			"labels of ns/a are not kept: a Summary needs a method GetLabels"},
		"summary with labels": {Summary(func(pod *corev1.Pod) *labeledSummary {
			return &labeledSummary{labels: pod.Labels}
		}), ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := New(test.form, store.Options{
				Indexers: store.Indexers{store.NamespaceIndex: store.MetaNamespaceIndexFunc}})
			require.NoError(t, s.Add(labeledPod()))
			list := func(text string) (int, error) {
				selector, err := labels.Parse(text)
				require.NoError(t, err)
				n, m := 0, 0
				err = store.ListAll(s, selector, func(any) { n++ })
				again := store.ListAllByNamespace(s, "ns", selector, func(any) { m++ })
				require.Equal(t, n, m)
				require.Equal(t, err, again)
				return n, err
			}
			found, err := list("app=x")
			if test.want != "" {
				require.ErrorContains(t, err, test.want)
			} else {
				require.NoError(t, err)
				require.Equal(t, 1, found)
				found, err = list("app=y")
				require.NoError(t, err)
				require.Zero(t, found)
			}
			found, err = list("")
			require.NoError(t, err)
			require.Equal(t, 1, found, "all objects need no labels")
		})
	}
}

func TestFieldsOf_WrongPath(t *testing.T) {
	for path, want := range map[string]string{
		"":                            "path is empty",
		"spec.nodename":               `v1.PodSpec has no field "nodename"`,
		"spec[*]":                     "v1.PodSpec is no list",
		"spec.containers.x":           `[]v1.Container has no field "x"`,
		"spec..nodeName":              "cannot read",
		"metadata.labels['a":          "cannot read",
		"metadata.labels['']":         "cannot read",
		"spec.node Name":              "cannot read",
		"spec.nodeName'":              "cannot read",
		"spec.nodeName]":              "cannot read",
		"metadata.labels['a']x":       "cannot read",
		"[*]":                         "cannot read",
		"metadata.labels[*]":          "map[string]string is no list",
		"spec.overhead['cpu'].Format": `resource.Quantity has no field "Format"`,
		"labels":                      `v1.Pod has no field "labels"`,
		"annotations['x']":            `v1.Pod has no field "annotations"`,
	} {
		func() {
			defer func() {
				err, _ := recover().(error)
				require.ErrorContains(t, err, want, path)
			}()
			FieldsOf[*corev1.Pod](path)
		}()
	}
	assert.Panics(t, func() { FieldsOf[*gadget]("ports['80']") }, "its keys are numbers")
	type Itself struct {
		corev1.Pod
		*Itself
	}
	assert.Panics(t, func() { FieldsOf[*Itself]("missing") }, "it ends, without the field")
	type Text string
	type Open struct {
		corev1.Pod
		Text
		Any   any `json:"any"`
		Place struct{ X string }

		hidden string
	}
	assert.Empty(t, Open{}.hidden)
	assert.Panics(t, func() { FieldsOf[*Open]("hidden") }, "it is not in the JSON")
	assert.NotPanics(t, func() { FieldsOf[*Open]("any.x[*].y") }, "nothing is known of it")
	assert.NotPanics(t, func() { FieldsOf[*Open]("Text", "Place.X") }, "fields without a tag")
}

// Objects without a Go type have a form in JSON.
func TestUnstructured(t *testing.T) {
	content := map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"namespace": "ns", "name": "a", "resourceVersion": "1"},
		"spec": map[string]any{
			"size": int64(1 << 60), "ports": []any{map[string]any{"n": int64(1)}},
		},
	}
	u := &unstructured.Unstructured{Object: content}
	assert.Equal(t, u, only(t, Compressed(), u))
	form := FieldsOf[*unstructured.Unstructured]("spec.size", "spec.ports[*].n", "spec.missing",
		"spec[*].size", "spec.ports.n", "spec.size.x")
	f := only(t, form, u).(*Fields)
	requireField(t, int64(1<<60), f, "spec.size")
	requireField(t, []int64{1}, f, "spec.ports[*].n")
	for _, path := range []string{
		"spec.missing", "spec[*].size", "spec.ports.n", "spec.size.x",
	} {
		requireField(t, "", f, path)
	}
}

// An index of a part cannot be looked up with a part: it is computed from whole objects.
func TestIndex_NeedsWholeObject(t *testing.T) {
	s := New(Summary(summarize), store.Options{Indexers: store.Indexers{"image": byImage}})
	require.NoError(t, s.Add(labeledPod()))
	_, err := s.Index("image", s.List()[0])
	require.ErrorContains(t, err, `index "image" is computed from whole objects`)
}

// An object of another type than the form's is an error, not a panic of the reflector's goroutine.
func TestAdd_OtherType(t *testing.T) {
	s := New(Summary(summarize), store.Options{})
	err := s.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
	require.EqualError(t, err, "pack n: object is a *v1.Node, not a *v1.Pod")
}

// The reads and writes of one object, in each form.
func TestIndexer_OneObject(t *testing.T) {
	byNode := store.Indexers{"node": func(obj any) ([]string, error) {
		return []string{obj.(*corev1.Pod).Spec.NodeName}, nil
	}}
	for _, form := range []Form{Compressed(), Summary(summarize)} {
		s := New(form, store.Options{Indexers: byNode})
		a, b := labeledPod(), labeledPod()
		b.Name = "b"
		require.NoError(t, s.Replace([]any{a, b}, "5"))
		require.Error(t, s.Replace([]any{"no object"}, "6"))
		require.Equal(t, 2, s.Len())
		require.Equal(t, "5", s.LastStoreSyncResourceVersion())
		s.Bookmark("7")
		require.Equal(t, "7", s.LastStoreSyncResourceVersion())
		for range s.All() {
			break
		}
		all, err := s.AllByIndex("node", a.Spec.NodeName)
		require.NoError(t, err)
		for range all {
			break
		}
		require.NoError(t, s.Delete(a))
		for _, pod := range []*corev1.Pod{a, b} {
			got, exists, err := s.Get(pod)
			require.NoError(t, err)
			require.Equal(t, pod == b, exists)
			require.Equal(t, exists, got != nil)
			got, exists, err = s.GetByKey("ns/" + pod.Name)
			require.NoError(t, err)
			require.Equal(t, pod == b, exists)
			require.Equal(t, exists, got != nil)
		}
	}
}
