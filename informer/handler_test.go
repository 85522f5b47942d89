// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"example.com/informerstack/store"
)

// Our handlers satisfy client-go's interface, and client-go's satisfy ours.
var (
	_ cache.ResourceEventHandler = ResourceEventHandlerFuncs{}
	_ cache.ResourceEventHandler = FilteringResourceEventHandler{}
	_ ResourceEventHandler       = cache.ResourceEventHandlerDetailedFuncs{}
	_ ResourceEventHandler       = ResourceEventHandler(nil)
)

func pod(name string, labels ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	for _, label := range labels {
		metav1.SetMetaDataLabel(&p.ObjectMeta, label, "")
	}
	return p
}

// A nil function is not called.
func TestHandlerFuncs_Nil(t *testing.T) {
	for _, h := range []ResourceEventHandler{
		ResourceEventHandlerFuncs{}, ResourceEventHandlerDetailedFuncs{},
		Untyped[*corev1.Pod](TypedResourceEventHandlerFuncs[*corev1.Pod]{}),
	} {
		h.OnAdd(pod("a"), true)
		h.OnUpdate(pod("a"), pod("a"))
		h.OnDelete(pod("a"))
	}
}

func TestHandlerFuncs(t *testing.T) {
	var got []string
	note := func(s string) { got = append(got, s) }
	for _, h := range []ResourceEventHandler{
		ResourceEventHandlerFuncs{
			AddFunc:    func(any) { note("add") },
			UpdateFunc: func(_, _ any) { note("update") },
			DeleteFunc: func(any) { note("delete") },
		},
		ResourceEventHandlerDetailedFuncs{
			AddFunc: func(_ any, initial bool) {
				note(map[bool]string{true: "initial"}[initial])
			},
			UpdateFunc: func(_, _ any) { note("update") },
			DeleteFunc: func(any) { note("delete") },
		},
		Untyped[*corev1.Pod](TypedResourceEventHandlerFuncs[*corev1.Pod]{
			AddFunc:    func(*corev1.Pod) { note("add") },
			UpdateFunc: func(_, _ *corev1.Pod) { note("update") },
			DeleteFunc: func(DeletedObject[*corev1.Pod]) { note("delete") },
		}),
	} {
		h.OnAdd(pod("a"), true)
		h.OnUpdate(pod("a"), pod("a"))
		h.OnDelete(pod("a"))
	}
	assert.Equal(t, "add update delete initial update delete add update delete",
		strings.Join(got, " "))
}

// A filter turns some updates into adds or deletes. client-go's does the same.
func TestFiltering(t *testing.T) {
	in, out := pod("a", "in"), pod("a")
	passes := func(obj any) bool {
		p, ok := obj.(*corev1.Pod)
		return !ok || len(p.Labels) > 0 // tombstones pass
	}
	for name, filtered := range map[string]func(r *recorder) ResourceEventHandler{
		"ours": func(r *recorder) ResourceEventHandler {
			return FilteringResourceEventHandler{FilterFunc: passes, Handler: r}
		},
		"client-go": func(r *recorder) ResourceEventHandler {
			return cache.FilteringResourceEventHandler{FilterFunc: passes, Handler: r}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRecorder()
			h := filtered(r)
			h.OnAdd(out, true)
			h.OnAdd(in, true)
			h.OnUpdate(in, in)
			h.OnUpdate(in, out)
			h.OnUpdate(out, out)
			h.OnUpdate(out, in)
			h.OnDelete(out)
			h.OnDelete(in)
			h.OnDelete(store.DeletedFinalStateUnknown{Key: "ns/b"})
			assert.Equal(t, "initial a, resync a, delete a, add a, delete a, tombstone b",
				strings.Join(r.take(), ", "))
		})
	}
}

// A typed handler gets the object inside a tombstone, or the zero value if it has no object. Type
// assertions in delete handlers often forget tombstones.
func TestUntyped_Tombstones(t *testing.T) {
	for _, tc := range []struct {
		name    string
		deleted any
		obj     bool
		key     string
	}{
		{"the object", pod("a"), true, "ns/a"},
		{"a tombstone", store.DeletedFinalStateUnknown{Key: "ns/a", Obj: pod("a")}, true, "ns/a"},
		{"a tombstone without object", store.DeletedFinalStateUnknown{Key: "ns/a"}, false, "ns/a"},
		{"a tombstone of another type",
			store.DeletedFinalStateUnknown{Key: "ns/a", Obj: &corev1.Node{}}, false, "ns/a"},
		{"a tombstone with an odd key", store.DeletedFinalStateUnknown{Key: "ns/a/b"}, false,
			"ns/a/b"},
		{"a cluster-wide one", store.DeletedFinalStateUnknown{Key: "a"}, false, "a"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []DeletedObject[*corev1.Pod]
			Untyped[*corev1.Pod](TypedResourceEventHandlerFuncs[*corev1.Pod]{
				DeleteFunc: func(obj DeletedObject[*corev1.Pod]) { got = append(got, obj) },
			}).OnDelete(tc.deleted)
			require.Len(t, got, 1)
			assert.Equal(t, tc.obj, got[0].OptionalObj != nil)
			assert.Equal(t, tc.key, got[0].GetKey())
			namespace, name, slash := strings.Cut(tc.key, "/")
			if !slash {
				namespace, name = "", tc.key
			}
			assert.Equal(t, store.ObjectName{Namespace: namespace, Name: name},
				got[0].GetObjectName())
			assert.Equal(t, name, got[0].GetName())
			assert.Equal(t, namespace, got[0].GetNamespace())
		})
	}
	assert.Equal(t, store.ObjectName{}, DeletedObject[*corev1.Pod]{}.GetObjectName(),
		"nothing known")
	assert.Empty(t, DeletedObject[*corev1.Pod]{}.GetKey())
}

// An object of another type is reported and skipped; client-go's typed handlers panic.
func TestDifference_UntypedSkipsOtherTypes(t *testing.T) {
	h := Untyped[*corev1.Pod](TypedResourceEventHandlerFuncs[*corev1.Pod]{
		AddFunc:    func(*corev1.Pod) { t.Error("called") },
		UpdateFunc: func(_, _ *corev1.Pod) { t.Error("called") },
		DeleteFunc: func(DeletedObject[*corev1.Pod]) { t.Error("called") },
	})
	h.OnAdd(&corev1.Node{}, false)
	h.OnUpdate(&corev1.Node{}, pod("a"))
	h.OnUpdate(pod("a"), nil)
	h.OnDelete(&corev1.Node{})
	assert.Nil(t, Untyped[*corev1.Pod](nil))
}

// wrapper is a handler around another.
type wrapper struct{ ResourceEventHandler }

func (w wrapper) Unwrap() ResourceEventHandler { return w.ResourceEventHandler }

// Handler names identify handlers in messages. That of a wrapped handler is the inner handler's.
func TestHandlerName(t *testing.T) {
	funcs := ResourceEventHandlerFuncs{UpdateFunc: namedUpdate}
	detailed := ResourceEventHandlerDetailedFuncs{UpdateFunc: namedUpdate}
	for _, tc := range []struct {
		handler ResourceEventHandler
		want    string
	}{
		{newRecorder(), "*informer.recorder"},
		{ResourceEventHandlerFuncs{}, "informer.ResourceEventHandlerFuncs"},
		{funcs, "informer.namedUpdate"},
		{&funcs, "informer.namedUpdate"},
		{detailed, "informer.namedUpdate"},
		{&detailed, "informer.namedUpdate"},
		{FilteringResourceEventHandler{Handler: funcs}, "informer.namedUpdate"},
		{&FilteringResourceEventHandler{Handler: funcs}, "informer.namedUpdate"},
		{wrapper{FilteringResourceEventHandler{Handler: wrapper{newRecorder()}}},
			"*informer.recorder"},
	} {
		assert.Equal(t, tc.want, handlerName(tc.handler))
	}
}

func namedUpdate(_, _ any) {}
