// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

func newUnstructured() runtime.Object { return &unstructured.Unstructured{} }

// decodeAll collects what DecodeList hands over.
func decodeAll(body io.Reader, newItem func() runtime.Object) (items []runtime.Object, m metav1.ListMeta, err error) {
	m, err = DecodeList(body, newItem, func(obj runtime.Object) error {
		items = append(items, obj)
		return nil
	})
	return items, m, err
}

func TestDecodeList_LikeAWholeDecode(t *testing.T) {
	body := benchList(t, 40)
	for name, in := range map[string]io.Reader{
		"at once":     bytes.NewReader(body),
		"byte a read": iotest.OneByteReader(bytes.NewReader(body)),
		"half reads":  iotest.HalfReader(bytes.NewReader(body)),
		"data + EOF":  iotest.DataErrReader(bytes.NewReader(body)),
	} {
		t.Run(name, func(t *testing.T) {
			items, m, err := decodeAll(in, newPod)
			require.NoError(t, err)
			var whole v1.PodList
			require.NoError(t, utiljson.Unmarshal(body, &whole))
			require.Equal(t, whole.ListMeta, m)
			require.Len(t, items, len(whole.Items))
			for i, item := range items {
				require.Equal(t, &whole.Items[i], item)
			}
		})
	}
}

func TestDecodeList_UnstructuredLikeAWholeDecode(t *testing.T) {
	body := benchList(t, 5)
	items, m, err := decodeAll(bytes.NewReader(body), newUnstructured)
	require.NoError(t, err)
	obj, _, err := unstructured.UnstructuredJSONScheme.Decode(body, nil, nil)
	require.NoError(t, err)
	whole := obj.(*unstructured.UnstructuredList)
	require.Equal(t, whole.GetResourceVersion(), m.ResourceVersion)
	require.Len(t, items, len(whole.Items))
	for i, item := range items {
		require.Equal(t, &whole.Items[i], item)
		require.Equal(t, "Pod", item.GetObjectKind().GroupVersionKind().Kind)
	}
}

func TestDecodeList_Forms(t *testing.T) {
	for name, test := range map[string]struct {
		body  string
		names string
		meta  metav1.ListMeta
	}{
		"usual order":           {`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"5","continue":"t"},"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]}`, "v1/Pod a, v1/Pod b", metav1.ListMeta{ResourceVersion: "5", Continue: "t"}},
		"custom resources":      {`{"apiVersion":"x/v1","items":[{"apiVersion":"x/v1","kind":"Foo","metadata":{"name":"a"}}],"kind":"FooList","metadata":{"resourceVersion":"5"}}`, "x/v1/Foo a", metav1.ListMeta{ResourceVersion: "5"}},
		"kind after the items":  {`{"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}],"kind":"PodList","apiVersion":"v1"}`, "v1/Pod a, v1/Pod b", metav1.ListMeta{}},
		"no items":              {`{"kind":"PodList","apiVersion":"v1","items":[]}`, "", metav1.ListMeta{}},
		"null items":            {`{"kind":"PodList","apiVersion":"v1","items":null}`, "", metav1.ListMeta{}},
		"items left out":        {`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"5"}}`, "", metav1.ListMeta{ResourceVersion: "5"}},
		"blanks everywhere":     {" { \"kind\" :\n\"PodList\" , \"apiVersion\":\t\"v1\", \"items\" : [ { \"metadata\" : { \"name\" : \"a\" } } ] } \n", "v1/Pod a", metav1.ListMeta{}},
		"brackets in a string":  {`{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"a","x":"]}\"{["}},{"metadata":{"name":"b\\"}}]}`, `v1/Pod a, v1/Pod b\`, metav1.ListMeta{}},
		"unknown fields, any":   {`{"a":1,"b":[{}],"c":null,"d":-1.5e3,"e":true,"kind":"PodList","apiVersion":"v1","items":[]}`, "", metav1.ListMeta{}},
		"escaped field names":   {`{"kind":"PodList","apiVersion":"v1","it\u0065ms":[{"metadata":{"name":"a"}}]}`, "v1/Pod a", metav1.ListMeta{}},
		"an item of many bytes": {`{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"` + strings.Repeat(`\\n`, 100_000) + `"}}]}`, "v1/Pod " + strings.Repeat(`\n`, 100_000), metav1.ListMeta{}},
	} {
		t.Run(name, func(t *testing.T) {
			items, m, err := decodeAll(iotest.HalfReader(strings.NewReader(test.body)), newUnstructured)
			require.NoError(t, err)
			var names []string
			for _, item := range items {
				u := item.(*unstructured.Unstructured)
				names = append(names, fmt.Sprintf("%s/%s %s", u.GetAPIVersion(), u.GetKind(), u.GetName()))
			}
			require.Equal(t, test.names, strings.Join(names, ", "))
			require.Equal(t, test.meta, m)
		})
	}
}

func TestDecodeList_Bad(t *testing.T) {
	for name, test := range map[string]struct{ body, want string }{
		"nothing":             {``, "read list after 0 items: unexpected EOF"},
		"cut between items":   {`{"kind":"PodList","items":[{},{}`, "read list after 2 items: unexpected EOF"},
		"cut inside an item":  {`{"kind":"PodList","items":[{},{"metadata":{"na`, "read list after 1 items: unexpected EOF"},
		"cut after a slash":   {`{"kind":"PodList","items":[{"a":"\`, "read list after 0 items: unexpected EOF"},
		"cut in a number":     {`{"a":12`, "read list after 0 items: unexpected EOF"},
		"cut before the end":  {`{"kind":"PodList","items":[]`, "read list after 0 items: unexpected EOF"},
		"protobuf":            {"k8s\x00\n\x0c", `read list after 0 items: not JSON: expected '{', got "k8s\x00\n\f"`},
		"a page of a proxy":   {`<html>`, `read list after 0 items: not JSON: expected '{', got "<html>"`},
		"an array":            {`[]`, `read list after 0 items: not JSON: expected '{', got "[]"`},
		"more after the end":  {`{"kind":"PodList"} {`, `read list after 0 items: not JSON: more after the end: "{"`},
		"no comma":            {`{"kind":"PodList","items":[{}{}]}`, `read list after 1 items: not JSON: expected ',', got "{}]}"`},
		"comma at the end":    {`{"kind":"PodList","items":[{},]}`, `read list after 1 items: not JSON: expected a value, got "]}"`},
		"no colon":            {`{"kind" "PodList"}`, `read list after 0 items: not JSON: expected ':', got "\"PodList\"}"`},
		"no field name":       {`{1:2}`, `read list after 0 items: not JSON: field name "1": json: cannot unmarshal number into Go value of type string`},
		"items is an object":  {`{"kind":"PodList","items":{}}`, `read list after 0 items: not JSON: expected '[', got "{}}"`},
		"null item":           {`{"kind":"PodList","items":[null]}`, `read list after 0 items: item 0 is no object: "null"`},
		"item of wrong shape": {`{"kind":"PodList","items":[{"metadata":[]}]}`, `read list after 0 items: decode item 0 into *v1.Pod: json: cannot unmarshal array into Go struct field Pod.metadata of type v1.ObjectMeta`},
		"item is no JSON":     {`{"kind":"PodList","items":[{"metadata"}]}`, `read list after 0 items: decode item 0 into *v1.Pod: invalid character '}' after object key`},
		"mixed brackets":      {`{"kind":"PodList","items":[{"a":[}]}]}`, `read list after 0 items: decode item 0 into *v1.Pod: invalid character '}' looking for beginning of value`},
		"kind is a number":    {`{"kind":1}`, `read list after 0 items: json: cannot unmarshal number into Go value of type string`},
		"one object":          {`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}`, `read list: got a v1 "Pod" instead`},
		"success":             {`{"kind":"Status","apiVersion":"v1","status":"Success"}`, `read list: got a Status "Success" instead`},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := decodeAll(strings.NewReader(test.body), newPod)
			require.EqualError(t, err, test.want)
		})
	}
}

func TestDecodeList_Status(t *testing.T) {
	body, err := json.Marshal(apierrors.NewResourceExpired("too old").Status())
	require.NoError(t, err)
	body = append([]byte(`{"kind":"Status","apiVersion":"v1",`), body[1:]...)
	_, _, err = decodeAll(bytes.NewReader(body), newPod)
	require.True(t, apierrors.IsResourceExpired(err), "%v", err)
}

func TestDecodeList_ReadError(t *testing.T) {
	in := io.MultiReader(strings.NewReader(`{"kind":"PodList","items":[{}`), iotest.ErrReader(io.ErrClosedPipe))
	items, _, err := decodeAll(in, newPod)
	require.ErrorIs(t, err, io.ErrClosedPipe)
	require.Len(t, items, 1)
}

func TestDecodeList_StopsAtTheFirstError(t *testing.T) {
	stop := errors.New("stop")
	for name, body := range map[string]string{
		"known kind": `{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"a"}},{}]}`,
		"late kind":  `{"items":[{"metadata":{"name":"a"}},{}],"kind":"PodList","apiVersion":"v1"}`,
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			_, err := DecodeList(strings.NewReader(body), newUnstructured, func(runtime.Object) error {
				calls++
				return stop
			})
			require.ErrorIs(t, err, stop)
			require.Equal(t, 1, calls)
		})
	}
}

// Whatever a server sends, DecodeList and a decode of the whole agree on it, however it is cut into reads.
func FuzzDecodeList(f *testing.F) {
	f.Add([]byte(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[{"metadata":{"name":"a"}},{"x":"\"]}"}]}`), 3)
	f.Add([]byte(`{"items":null,"kind":"List"}`), 1)
	f.Add([]byte(`{"items":[{"a":{"b":[1,2.5,"c",null,true]}}]} `), 7)
	f.Fuzz(func(t *testing.T, body []byte, chunk int) {
		in := &chunked{data: body, size: 1 + max(chunk, -chunk)%64}
		var items []map[string]any
		m, err := DecodeList(in, newUnstructured, func(obj runtime.Object) error {
			items = append(items, obj.(*unstructured.Unstructured).Object)
			return nil
		})
		if err != nil {
			return
		}
		var whole struct {
			metav1.ListMeta `json:"metadata"`
			Items           []json.RawMessage `json:"items"`
		}
		require.NoError(t, utiljson.Unmarshal(body, &whole), "accepted %q", body)
		if bytes.Count(body, []byte("items"))+bytes.Count(body, []byte("metadata")) > 2 || bytes.Contains(body, []byte(`\u`)) {
			return // a repeated field: the last wins there, both are taken here
		}
		require.Equal(t, whole.ListMeta, m)
		require.Len(t, items, len(whole.Items))
	})
}

// chunked reads size bytes at a time.
type chunked struct {
	data []byte
	size int
}

func (c *chunked) Read(p []byte) (int, error) {
	if len(c.data) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), c.size)], c.data)
	c.data = c.data[n:]
	return n, nil
}

func TestStreamingListWatch_Requests(t *testing.T) {
	w := &wire{answer: answerWith(http.StatusOK, benchList(t, 3))}
	lw := NewStreamingListWatch(restClient(t, w), "pods", "ns", newPod, func(o *metav1.ListOptions) { o.LabelSelector = "a=b" })
	count := 0
	m, err := lw.ListStream(context.Background(), metav1.ListOptions{ResourceVersion: "0", Limit: 500}, func(runtime.Object) error {
		count++
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, "99999", m.ResourceVersion)
	require.Equal(t, 3, count)
	require.Equal(t, "http://server/api/v1/namespaces/ns/pods?labelSelector=a%3Db&limit=500&resourceVersion=0", w.requests[0].URL.String())
	require.Equal(t, "application/json", w.requests[0].Header.Get("Accept"))

	lw.DisableChunking = true
	_, err = lw.ListStream(context.Background(), metav1.ListOptions{Limit: 500}, func(runtime.Object) error { return nil })
	require.NoError(t, err)
	require.Empty(t, w.requests[1].URL.Query().Get("limit"))

	list, err := lw.List(metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.(*v1.PodList).Items, 3)
}

func TestStreamingListWatch_MetadataOnly(t *testing.T) {
	w := &wire{answer: answerWith(http.StatusOK, benchList(t, 1))}
	lw := NewStreamingListWatch(restClient(t, w), "pods", "", func() runtime.Object { return &metav1.PartialObjectMetadata{} }, nil)
	_, err := lw.ListStream(context.Background(), metav1.ListOptions{}, func(obj runtime.Object) error {
		require.Equal(t, "app-7c5ddbdf54-00000", obj.(*metav1.PartialObjectMetadata).Name)
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json", w.requests[0].Header.Get("Accept"))
	watching, err := lw.Watch(metav1.ListOptions{ResourceVersion: "5"})
	require.NoError(t, err)
	watching.Stop()
	require.Equal(t, "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json", w.requests[1].Header.Get("Accept"))
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
		"expired":      {410, status(apierrors.NewResourceExpired("too old"))},
		"forbidden":    {403, status(apierrors.NewForbidden(v1.Resource("pods"), "", errors.New("no")))},
		"internal":     {500, status(apierrors.NewInternalError(errors.New("boom")))},
		"not a Status": {404, []byte("404 page not found")},
		"empty":        {503, nil},
	} {
		t.Run(name, func(t *testing.T) {
			lw := NewStreamingListWatch(restClient(t, &wire{answer: answerWith(test.code, test.body)}), "pods", "", newPod, nil)
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
	require.Equal(t, 2, got.pageCount)
	require.Equal(t, []string{"decode", "transform a", "decode", "transform b"}, order)
	require.Equal(t, "continue=next&limit=500", w.requests[1].URL.RawQuery)
}

// The most memory that a streamed list needs beyond its objects is that of one object.
func TestDecodeList_BufferIsOfOneItem(t *testing.T) {
	s := newJSONScanner(bytes.NewReader(benchList(t, 2000)))
	require.NoError(t, s.object(func(name string) error {
		if name != "items" {
			_, err := s.value()
			return err
		}
		return s.array(func() error {
			_, err := s.value()
			return err
		})
	}))
	require.LessOrEqual(t, cap(s.buf), jsonBufferLen)
}
