// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"example.com/informerstack/internal/tools/answers"
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
			anything, unstructuredList("APIResourceList", ""), "got /v1, Kind=APIResourceList",
		},
		"groups": {anything, unstructuredList("APIGroupList", ""), "got /v1, Kind=APIGroupList"},

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
			lw := &ListWatch{ListWithContextFunc: listing(test.list)}
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
	server := &answers.Server{Answer: answers.With(http.StatusOK, []byte(body))}
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

// Objects that are half there, or not at all, are reported and skipped.
func TestWatch_HalfEvents(t *testing.T) {
	for name, test := range map[string]struct {
		expected any
		object   runtime.Object
	}{
		"no object":             {&v1.Pod{}, nil},
		"no object, any type":   {nil, nil},
		"typed nil":             {&v1.Pod{}, (*v1.Pod)(nil)},
		"typed nil, any type":   {nil, (*v1.Pod)(nil)},
		"no metadata, any type": {nil, &metav1.Status{}},
		"a Table, any type":     {nil, &metav1.Table{}},
		"a Table, unstructured": {
			&unstructured.Unstructured{},
			&unstructured.Unstructured{
				Object: map[string]any{"kind": "Table", "apiVersion": "meta.k8s.io/v1"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			on(t, "ours", func(t *testing.T, s *script) {
				go New(s, test.expected, scriptStore{s}, s.opts).Run(s.hearing)
				var list runtime.Object = podList("5", "")
				if _, ok := test.expected.(*unstructured.Unstructured); ok {
					list = unstructuredList("", "5")
				}
				s.answerList(list, nil)
				s.answerWatch(nil)
				s.take()
				s.event(watch.Event{Type: watch.Modified, Object: test.object})
				log := s.take()
				require.Len(t, log, 1)
				require.Contains(t, log[0], "reported: ")
				close(s.open.events)
				s.after(time.Second)
				require.Contains(t, s.take(), "800ms later: LIST rv=5", "it counts as no event")
			})
		})
	}
}

// An unstructured expected type is also checked by apiVersion and kind.
func TestWatch_UnstructuredKind(t *testing.T) {
	foo := func(kind string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion("x/v1")
		u.SetKind(kind)
		u.SetName("a")
		u.SetResourceVersion("6")
		return u
	}
	on(t, "ours", func(t *testing.T, s *script) {
		go New(s, foo("Foo"), scriptStore{s}, s.opts).Run(s.hearing)
		s.answerList(unstructuredList("", "5"), nil)
		s.answerWatch(nil)
		s.take()
		s.event(watch.Event{Type: watch.Added, Object: foo("Bar")})
		s.event(watch.Event{Type: watch.Added, Object: foo("Foo")})
		s.saw("reported: expected x/v1, Kind=Foo, got x/v1, Kind=Bar", "add a@6")
	})
}

func TestList_Odd(t *testing.T) {
	for name, test := range map[string]struct {
		list runtime.Object
		want string
	}{
		"nil":       {nil, "ListerWatcher returned no list: result is nil"},
		"typed nil": {(*v1.PodList)(nil), "ListerWatcher returned no list: result is nil"},
		"no list": {
			&v1.Pod{}, "understand list *v1.Pod: object does not implement the List interfaces",
		},
		"no items": {&metav1.Status{}, "*v1.Status is not a list: no Items field in this object"},
	} {
		t.Run(name, func(t *testing.T) {
			lw := &ListWatch{ListWithContextFunc: listing(test.list)}
			_, err := New(lw, &v1.Pod{}, nil, Options{}).fetch(context.Background(), "0", 0)
			require.EqualError(t, err, test.want)
		})
	}
}

func TestTransform_Results(t *testing.T) {
	boom := errors.New("boom")
	for name, test := range map[string]struct {
		result any
		err    error
		want   string
	}{
		"error":       {nil, boom, "transform a: boom"},
		"nil":         {nil, nil, "transform a: result is nil"},
		"typed nil":   {(*v1.Pod)(nil), nil, "transform a: result is nil"},
		"another":     {&v1.Node{}, nil, ""},
		"any at all":  {"a", nil, ""},
		"error + obj": {&v1.Pod{}, boom, "transform a: boom"},
	} {
		t.Run(name, func(t *testing.T) {
			transform := func(any) (any, error) { return test.result, test.err }
			r := New(nil, nil, nil, Options{Transform: transform})
			got, err := r.transformed(t.Context(), pod("a@1"))
			if test.want == "" {
				require.NoError(t, err)
				require.Equal(t, test.result, got)
				return
			}
			require.EqualError(t, err, test.want)
			require.Nil(t, got)
		})
	}
}

// A transform that keeps nothing but the name, in place, saves memory. The reflector still knows
// how far it has come: where it forgot, a delete would be lost while no watch is open.
func TestTransform_MayDropTheResourceVersion(t *testing.T) {
	strip := func(obj any) (any, error) {
		p := obj.(*v1.Pod)
		p.ObjectMeta = metav1.ObjectMeta{Name: p.Name}
		return p, nil
	}
	for name, start := range map[string]func(s *script){
		"after a LIST": func(s *script) { s.watching() },
		"after a streaming list": func(s *script) {
			s.streaming()
			s.added("a@1")
			s.event(bookmark("5", "true"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, s *script) {
				s.opts.Transform = strip
				start(s)
				s.modified("a@8")
				s.event(deleted("b@9"))
				if s.ours != nil {
					require.Equal(t, "9", s.ours.LastSyncResourceVersion())
				}
				s.take()
				close(s.open.events)
				s.saw("watch stopped", "WATCH rv=9 bookmarks")
			})
		})
	}
}

// An ApplyError is not an answer of the server, even if its cause looks like one.
func TestApplyError_CauseIsNotTheServers(t *testing.T) {
	for _, cause := range []string{"429", "expired", "refused", "500"} {
		on(t, "ours", func(t *testing.T, s *script) {
			s.opts.MaxInternalErrorRetryDuration = time.Minute
			s.watching()
			s.fail("add", apiErrors[cause])
			s.added("b@6")
			require.Equal(t, "800ms later: LIST rv=5", s.lastAfter(800*time.Millisecond))
		})
	}
}

// The same for one that happens while a watch is being opened.
func TestApplyError_OfAResyncWhileOpening(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		s.opts.ResyncPeriod = time.Minute
		s.start()
		s.answerList(podList("5", ""), nil)
		s.take()
		s.fail("resync", apiErrors["429"])
		s.after(time.Minute + 800*time.Millisecond)
		s.saw("1m0s later: resync: slow down", "reported: resync: slow down",
			"800ms later: LIST rv=5")
	})
}
