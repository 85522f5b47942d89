// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// unstructuredList is an empty list, as a dynamic client returns it.
func unstructuredList(kind, resourceVersion string) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{Object: map[string]any{}}
	list.SetResourceVersion(resourceVersion)
	if kind != "" {
		list.SetAPIVersion("v1")
		list.SetKind(kind)
	}
	return list
}

// A list of something else is an error, even if it is empty. Otherwise it would delete all objects
// of the store.
func TestList_OfSomethingElse(t *testing.T) {
	foo := &unstructured.Unstructured{}
	foo.SetAPIVersion("v1")
	foo.SetKind("Foo")
	anything := &unstructured.Unstructured{}
	otherVersion := unstructuredList("FooList", "5")
	otherVersion.SetAPIVersion("v2")
	bars := unstructuredList("FooList", "5")
	bars.Items = []unstructured.Unstructured{{
		Object: map[string]any{"kind": "Bar", "apiVersion": "v1"},
	}}
	herd := unstructuredList("Herd", "5")
	herd.Items = []unstructured.Unstructured{*foo}

	for name, test := range map[string]struct {
		expected any
		list     runtime.Object
		want     string // "" is no error
	}{
		"typed, empty": {
			&v1.Pod{}, &v1.SecretList{},
			"expected a list of *v1.Pod, got one of *v1.Secret",
		},
		"typed for dynamic": {anything, &v1.SecretList{}, "got one of *v1.Secret"},
		"dynamic for typed": {&v1.Pod{}, bars, "expected *v1.Pod"},
		"another kind": {
			foo, unstructuredList("BarList", "5"),
			"expected a list of /v1, Kind=Foo, got /v1, Kind=BarList",
		},
		"one object": {
			foo, unstructuredList("Foo", "5"),
			"expected a list of /v1, Kind=Foo, got /v1, Kind=Foo",
		},
		"another version": {foo, otherVersion, "got /v2, Kind=FooList"},
		"items":           {foo, bars, "expected /v1, Kind=Foo, got /v1, Kind=Bar"},
		"resources": {
			anything, unstructuredList("APIResourceList", ""),
			"got /v1, Kind=APIResourceList",
		},
		"groups": {
			anything, unstructuredList("APIGroupList", ""),
			"got /v1, Kind=APIGroupList",
		},

		"right":                {foo, unstructuredList("FooList", "5"), ""},
		"no kind":              {foo, unstructuredList("", "5"), ""},
		"a name of its own":    {foo, herd, ""},
		"its name, empty":      {foo, unstructuredList("Herd", "5"), ""},
		"any kind":             {anything, unstructuredList("BarList", "5"), ""},
		"any type":             {nil, &v1.SecretList{}, ""},
		"typed":                {&v1.Pod{}, &v1.PodList{}, ""},
		"a list of everything": {&v1.Pod{}, &metav1.List{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			lw := &ListWatch{ListWithContextFunc: func(
				context.Context, metav1.ListOptions,
			) (runtime.Object, error) {
				return test.list, nil
			}}
			_, err := New(lw, test.expected, nil, Options{}).fetch(t.Context(), "0", 0)
			if test.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, test.want)
		})
	}
}

// A dynamic client takes the answer to a question about resources for an empty list. client-go's
// informer then deletes all objects.
func TestDifference_DiscoveryIsNoList(t *testing.T) {
	const body = `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[]}`
	server := &roundTripper{answer: func(*http.Request) (int, io.Reader) {
		return http.StatusOK, strings.NewReader(body)
	}}
	client, err := dynamic.NewForConfig(&rest.Config{Host: "http://server", Transport: server})
	require.NoError(t, err)
	list, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).
		List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, list.Items)

	differ(t, func(t *testing.T, s *script) string {
		s.start()
		s.take()
		s.answerList(list, nil)
		return s.take()[0]
	},
		"reported: failed to list *v1.Pod: expected a list of *v1.Pod, "+
			"got /v1, Kind=APIResourceList",
		"replace rv=",
	)
}

// An event of another type is skipped, and Status shows it until another watch opens. The store is
// not called current because of it.
func TestStatus_SkippedEvents(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		s.watching()
		before := s.ours.Status()
		s.event(watch.Event{Type: watch.Modified, Object: &v1.Node{}})
		after := s.ours.Status()
		require.ErrorContains(t, after.LastError, "unexpected watch event MODIFIED: "+
			"expected *v1.Pod, got *v1.Node")
		require.Equal(t, before.ConsecutiveFailures+1, after.ConsecutiveFailures)
		require.Equal(t, before.CurrentAsOf, after.CurrentAsOf)
		require.Equal(t, before.ResourceVersion, after.ResourceVersion)
	})
}

// A streaming list that brings another type ends, and a LIST decides.
func TestStream_OfSomethingElse(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		s.streaming()
		s.take()
		s.event(watch.Event{Type: watch.Added, Object: &v1.Node{}})
		log := strings.Join(s.take(), "\n")
		require.Contains(t, log, "LIST rv=0")
		require.NotContains(t, log, "replace")
	})
}
