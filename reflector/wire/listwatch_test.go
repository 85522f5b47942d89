// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"example.com/informerstack/internal/tools/answers"
)

// A ListWatch sends what client-go's ListWatch sends, except that its watch prefers protobuf.
func TestListWatch_RequestsAreClientGos(t *testing.T) {
	w := &answers.Server{Answer: answers.With(http.StatusOK, answers.Pods(t, 1))}
	client := answers.Client(t, w)
	selector := fields.OneTermEqualSelector("spec.nodeName", "n")
	selectFields := func(options *metav1.ListOptions) { options.FieldSelector = selector.String() }
	options := metav1.ListOptions{ResourceVersion: "0", Limit: 500}

	send := func(lw cache.ListerWatcherWithContext) {
		got, err := lw.ListWithContext(context.Background(), options)
		require.NoError(t, err)
		require.Len(t, got.(*v1.PodList).Items, 1)
		watching, err := lw.WatchWithContext(context.Background(), options)
		require.NoError(t, err)
		watching.Stop()
	}
	for _, namespace := range []string{"", "ns"} {
		w.Requests = nil
		send(NewListWatch(client, "pods", namespace, newPod, Options{Modify: selectFields}))
		send(cache.NewListWatchFromClient(client, "pods", namespace, selector))
		require.Len(t, w.Requests, 4)
		for i := range 2 {
			require.Equal(t, w.Requests[i+2].URL.String(), w.Requests[i].URL.String())
			want := w.Requests[i+2].Header
			if i == 1 {
				want.Set("Accept", "application/vnd.kubernetes.protobuf,application/json")
			}
			require.Equal(t, want, w.Requests[i].Header)
		}
	}
	send(NewListWatch(client, "pods", "", newPod, Options{}))
}

func TestListWatch_Requests(t *testing.T) {
	w := &answers.Server{Answer: answers.With(http.StatusOK, answers.Pods(t, 3))}
	options := Options{Modify: func(o *metav1.ListOptions) { o.LabelSelector = "a=b" }}
	lw := NewListWatch(answers.Client(t, w), "pods", "ns", newPod, options)
	var items []runtime.Object
	asked := metav1.ListOptions{ResourceVersion: "0", Limit: 500}
	m, err := lw.ListStream(context.Background(), asked, collect(&items))
	require.NoError(t, err)
	require.Equal(t, "5", m.ResourceVersion)
	require.Len(t, items, 3)
	require.Equal(t, "http://server/api/v1/namespaces/ns/pods"+
		"?labelSelector=a%3Db&limit=500&resourceVersion=0", w.Requests[0].URL.String())
	require.Equal(t, "application/vnd.kubernetes.protobuf,application/json",
		w.Requests[0].Header.Get("Accept"))

	list, err := lw.List(metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.(*v1.PodList).Items, 3)
}

func TestListWatch_MetadataOnly(t *testing.T) {
	w := &answers.Server{Answer: answers.With(http.StatusOK, answers.Pods(t, 1))}
	lw := NewListWatch(answers.Client(t, w), "pods", "", newMetadata, Options{})
	items, err := listed(lw)
	require.NoError(t, err)
	require.Equal(t, "pod-0", items[0].(*metav1.PartialObjectMetadata).Name)
	watching, err := lw.Watch(metav1.ListOptions{ResourceVersion: "5"})
	require.NoError(t, err)
	watching.Stop()
	for i, kind := range []string{"PartialObjectMetadataList", "PartialObjectMetadata"} {
		as := ";as=" + kind + ";g=meta.k8s.io;v=v1,"
		require.Equal(t, "application/vnd.kubernetes.protobuf"+as+"application/json"+as+
			"application/json", w.Requests[i].Header.Get("Accept"))
	}
	require.Equal(t, "resourceVersion=5&watch=true", w.Requests[1].URL.RawQuery)
}

// A server answers with a list of another kind. A clientset of client-go takes it for an empty
// list, so an informer would delete all its objects.
func TestDifference_ListOfAnotherKind(t *testing.T) {
	ctx := context.Background()
	namespaces := &v1.NamespaceList{Items: []v1.Namespace{
		{ObjectMeta: metav1.ObjectMeta{Name: "n"}},
	}}
	for _, contentType := range []string{answers.JSON, answers.Protobuf} {
		body := answers.List(t, contentType, namespaces)
		contentType, _, _ := strings.Cut(contentType, ";")
		client := answers.Client(t, &answers.Server{
			Answer: answers.With(http.StatusOK, body), ContentType: contentType,
		})
		var theirs v1.PodList
		require.NoError(t, client.Get().Resource("pods").Do(ctx).Into(&theirs))
		require.Empty(t, theirs.Items)

		_, err := listed(NewListWatch(client, "pods", "", newPod, Options{}))
		require.EqualError(t, err, `list /api/v1/pods: read list after 0 items: expected a list `+
			`of kind "PodList" of "v1", got "NamespaceList" of "v1"`)
	}
}

// A server that does not know of PartialObjectMetadata sends whole objects. client-go's metadata
// client reads the list, and no event.
func TestDifference_MetadataOfWholeObjects(t *testing.T) {
	body := answers.Events(t, answers.JSON, answers.Samples()[:4]...)
	w := &answers.Server{Answer: answers.With(http.StatusOK, body)}
	theirs, err := metadata.NewForConfigAndClient(&rest.Config{Host: "http://server", QPS: -1},
		&http.Client{Transport: w})
	require.NoError(t, err)
	watching, err := theirs.Resource(v1.SchemeGroupVersion.WithResource("pods")).
		Watch(context.Background(), metav1.ListOptions{})
	require.NoError(t, err)
	events := answers.Receive(watching)
	require.Len(t, events, 1)
	require.Equal(t, watch.Error, events[0].Type)

	ours := NewListWatch(answers.Client(t, w), "pods", "", newMetadata, Options{})
	watching, err = ours.Watch(metav1.ListOptions{})
	require.NoError(t, err)
	events = answers.Receive(watching)
	require.Len(t, events, 4)
	for i, e := range events {
		want := answers.Samples()[i]
		require.Equal(t, want.Type, e.Type)
		m := want.Object.(*v1.Pod).ObjectMeta
		require.Equal(t, &metav1.PartialObjectMetadata{ObjectMeta: m}, e.Object)
	}
}

// An error that the server answers is the same whether the list was to be streamed or not. It names
// the collection once, and is still the error that client-go's predicates know.
func TestListWatch_ServerErrors(t *testing.T) {
	status := func(err *apierrors.StatusError) []byte {
		s := err.Status()
		s.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		body, _ := json.Marshal(s)
		return body
	}
	for code, body := range map[int][]byte{
		410: status(apierrors.NewResourceExpired("too old")),
		403: status(apierrors.NewForbidden(v1.Resource("pods"), "", errors.New("no"))),
		500: status(apierrors.NewInternalError(errors.New("boom"))),
		404: []byte("404 page not found"), // no Status
		503: nil,
	} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			server := &answers.Server{Answer: answers.With(code, body)}
			lw := NewListWatch(answers.Client(t, server), "pods", "ns", newPod, Options{})
			_, got := lw.ListStream(context.Background(), metav1.ListOptions{}, nil)
			_, want := lw.ListWithContext(context.Background(), metav1.ListOptions{})
			require.Error(t, want)
			require.Equal(t, want, got)
			_, watched := lw.WatchWithContext(t.Context(), metav1.ListOptions{})
			for verb, err := range map[string]error{"list": got, "watch": watched} {
				const path = "/api/v1/namespaces/ns/pods"
				require.ErrorContains(t, err, verb+" "+path+": ")
				require.Equal(t, 1, strings.Count(err.Error(), path), err)
				var statusErr *apierrors.StatusError
				require.ErrorAs(t, err, &statusErr)
				require.Equal(t, code, int(statusErr.ErrStatus.Code))
				require.Equal(t, code == 403, apierrors.IsForbidden(err))
				require.Equal(t, code == 410, apierrors.IsResourceExpired(err))
			}
		})
	}
}

// An error that has the URL has the path already. The errors of each stay as they are.
func TestListWatch_OtherErrors(t *testing.T) {
	lw := func(answer http.RoundTripper) *ListWatch {
		return NewListWatch(answers.Client(t, answer), "pods", "ns", newPod, Options{})
	}
	lost := lw(&losing{err: errors.New("no route"), times: 99})
	_, err := listed(lost)
	require.ErrorContains(t, err, "no route")
	require.Equal(t, 1, strings.Count(err.Error(), "/namespaces/ns/pods"), err)

	bad := lw(&answers.Server{Answer: answers.With(200, []byte(`{"items":[1]}`))})
	_, err = listed(bad)
	require.ErrorContains(t, err, "list /api/v1/namespaces/ns/pods: read list after 0 items: ")
	w, err := bad.WatchWithContext(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	e := answers.Receive(w)[0]
	require.Contains(t, e.Object.(*metav1.Status).Message,
		"read watch /api/v1/namespaces/ns/pods after 0 events: ")

	refusal := errors.New("refused")
	good := lw(&answers.Server{Answer: answers.With(200, answers.Pods(t, 3))})
	_, err = good.ListStream(t.Context(), metav1.ListOptions{}, func(runtime.Object) error {
		return refusal
	})
	require.True(t, err == refusal, err)
}

// closing answers with one body.
type closing struct{ body io.ReadCloser }

func (c closing) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {runtime.ContentTypeJSON}},
		Body: c.body, Request: req,
	}, nil
}

// A list that is refused in the middle leaves no open body.
func TestListWatch_ClosesTheBody(t *testing.T) {
	body := &closeCounter{Reader: bytes.NewReader(answers.Pods(t, 2))}
	lw := NewListWatch(answers.Client(t, closing{body}), "pods", "", newPod, Options{})
	refusal := errors.New("refused")
	_, err := lw.ListStream(t.Context(), metav1.ListOptions{}, func(runtime.Object) error {
		return refusal
	})
	require.Equal(t, refusal, err)
	require.EqualValues(t, 1, body.count.Load())
}

// The version of the client is a default, and a client may lack it.
func TestNewListWatch_Kind(t *testing.T) {
	client := answers.Client(t, &answers.Server{})
	for _, test := range []struct {
		client      Getter
		given, want schema.GroupVersionKind
	}{
		{client, schema.GroupVersionKind{}, schema.GroupVersionKind{Version: "v1"}},
		{struct{ Getter }{client}, schema.GroupVersionKind{}, schema.GroupVersionKind{}},
		{
			client, schema.GroupVersionKind{Group: "x", Version: "v2", Kind: "Foo"},
			schema.GroupVersionKind{Group: "x", Version: "v2", Kind: "Foo"},
		},
	} {
		lw := NewListWatch(test.client, "pods", "", newPod, Options{Kind: test.given})
		require.Equal(t, test.want, lw.options.Kind)
	}
}
