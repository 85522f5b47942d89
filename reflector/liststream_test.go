// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestStreamingListWatch_Requests(t *testing.T) {
	w := &wire{answer: answerWith(http.StatusOK, benchList(t, 3))}
	lw := NewStreamingListWatch(
		restClient(t, w),
		"pods",
		"ns",
		newPod,
		func(o *metav1.ListOptions) { o.LabelSelector = "a=b" },
	)
	count := 0
	m, err := lw.ListStream(
		context.Background(),
		metav1.ListOptions{ResourceVersion: "0", Limit: 500},
		func(runtime.Object) error {
			count++
			return nil
		},
	)
	require.NoError(t, err)
	require.Equal(t, "99999", m.ResourceVersion)
	require.Equal(t, 3, count)
	require.Equal(
		t,
		"http://server/api/v1/namespaces/ns/pods?labelSelector=a%3Db&limit=500&resourceVersion=0",
		w.requests[0].URL.String(),
	)
	require.Equal(t, "application/json", w.requests[0].Header.Get("Accept"))

	list, err := lw.List(metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.(*v1.PodList).Items, 3)
}

func TestStreamingListWatch_MetadataOnly(t *testing.T) {
	w := &wire{answer: answerWith(http.StatusOK, benchList(t, 1))}
	lw := NewStreamingListWatch(
		restClient(t, w),
		"pods",
		"",
		func() runtime.Object { return &metav1.PartialObjectMetadata{} },
		nil,
	)
	_, err := lw.ListStream(
		context.Background(),
		metav1.ListOptions{},
		func(obj runtime.Object) error {
			require.Equal(t, "app-7c5ddbdf54-00000", obj.(*metav1.PartialObjectMetadata).Name)
			return nil
		},
	)
	require.NoError(t, err)
	require.Equal(
		t,
		"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
		w.requests[0].Header.Get("Accept"),
	)
	watching, err := lw.Watch(metav1.ListOptions{ResourceVersion: "5"})
	require.NoError(t, err)
	watching.Stop()
	require.Equal(
		t,
		"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
		w.requests[1].Header.Get("Accept"),
	)
	require.Equal(t, "resourceVersion=5&watch=true", w.requests[1].URL.RawQuery)
}

// An error that the server answers is the same whether the list was to be streamed or not.
func TestStreamingListWatch_ServerErrors(t *testing.T) {
	status := func(err *apierrors.StatusError) []byte {
		s := err.Status()
		s.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		body, _ := json.Marshal(s)
		return body
	}
	for name, test := range map[string]struct {
		code int
		body []byte
	}{
		"expired": {410, status(apierrors.NewResourceExpired("too old"))},
		"forbidden": {
			403, status(apierrors.NewForbidden(v1.Resource("pods"), "", errors.New("no"))),
		},
		"internal":     {500, status(apierrors.NewInternalError(errors.New("boom")))},
		"not a Status": {404, []byte("404 page not found")},
		"empty":        {503, nil},
	} {
		t.Run(name, func(t *testing.T) {
			lw := NewStreamingListWatch(
				restClient(t, &wire{answer: answerWith(test.code, test.body)}),
				"pods",
				"",
				newPod,
				nil,
			)
			_, got := lw.ListStream(context.Background(), metav1.ListOptions{}, nil)
			_, want := lw.ListWithContext(context.Background(), metav1.ListOptions{})
			require.Error(t, want)
			require.Equal(t, want, got)
			var statusErr *apierrors.StatusError
			require.ErrorAs(t, got, &statusErr)
		})
	}
}

// The reflector streams each page of a LIST, and transforms each item before the next is read.
func TestStreamingListWatch_Reflector(t *testing.T) {
	var order []string
	w := &wire{}
	w.answer = func(req *http.Request) (int, io.Reader) {
		list := podList("5", "", "b@2")
		if req.URL.Query().Get("continue") == "" {
			list = podList("5", "next", "a@1")
		}
		list.Kind, list.APIVersion = "PodList", "v1"
		body, err := json.Marshal(list)
		require.NoError(t, err)
		return http.StatusOK, bytes.NewReader(body)
	}
	lw := NewStreamingListWatch(restClient(t, w), "pods", "", func() runtime.Object {
		order = append(order, "decode")
		return &v1.Pod{}
	}, nil)
	order = nil
	r := New(lw, &v1.Pod{}, nil, Options{Transform: func(obj any) (any, error) {
		order = append(order, "transform "+obj.(*v1.Pod).Name)
		return obj, nil
	}})
	got, err := r.fetch(context.Background(), "0", 500)
	require.NoError(t, err)
	require.Len(t, got.items, 2)
	require.True(t, got.paged)
	require.Equal(t, []string{"decode", "transform a", "decode", "transform b"}, order)
	require.Equal(t, "continue=next&limit=500", w.requests[1].URL.RawQuery)
}
