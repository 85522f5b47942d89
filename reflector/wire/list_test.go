// SPDX-License-Identifier: Apache-2.0

package wire

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
	"testing/synctest"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/internal/decode"
	"example.com/informerstack/internal/tools/answers"
	"example.com/informerstack/internal/tools/measure"
)

func newPod() runtime.Object { return &v1.Pod{} }

func newUnstructured() runtime.Object { return &unstructured.Unstructured{} }

// decodeAll returns all items of a list.
func decodeAll(
	body io.Reader, newItem NewObject,
) (items []runtime.Object, m metav1.ListMeta, err error) {
	m, err = ReadList(body, newItem, Options{}, collect(&items))
	return items, m, err
}

// collect returns a function that appends objects.
func collect(to *[]runtime.Object) func(runtime.Object) error {
	return func(obj runtime.Object) error {
		*to = append(*to, obj)
		return nil
	}
}

func ignore(runtime.Object) error { return nil }

// receive returns the events of a watch.
func receive(body io.Reader, newObject NewObject, options Options) []watch.Event {
	return answers.Receive(ReadWatch(io.NopCloser(body), newObject, options))
}

// answered returns a ListWatch of pods that gets body for an answer.
func answered(t *testing.T, body []byte, newObject NewObject, options Options) *ListWatch {
	server := &answers.Server{Answer: answers.With(http.StatusOK, body)}
	return NewListWatch(answers.Client(t, server), "pods", "", newObject, options)
}

// listed returns the items of a list of lw.
func listed(lw *ListWatch) (items []runtime.Object, err error) {
	_, err = lw.ListStream(context.Background(), metav1.ListOptions{}, collect(&items))
	return items, err
}

// inEveryWay returns readers of body that differ in how the bytes arrive.
func inEveryWay(body []byte) map[string]io.Reader {
	return map[string]io.Reader{
		"at once":     bytes.NewReader(body),
		"byte a read": iotest.OneByteReader(bytes.NewReader(body)),
		"half reads":  iotest.HalfReader(bytes.NewReader(body)),
		"data + EOF":  iotest.DataErrReader(bytes.NewReader(body)),
	}
}

func TestReadList_LikeAWholeDecode(t *testing.T) {
	body := answers.Pods(t, 40)
	for name, in := range inEveryWay(body) {
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

func TestReadList_UnstructuredLikeAWholeDecode(t *testing.T) {
	body := answers.Pods(t, 5)
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

func TestReadList_Forms(t *testing.T) {
	many := strings.Repeat(`\\n`, 100_000)
	for name, test := range map[string]struct {
		body  string
		names string
		meta  metav1.ListMeta
	}{
		"usual order": {
			`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"5",` +
				`"continue":"t"},"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]}`,
			"v1/Pod a, v1/Pod b", metav1.ListMeta{ResourceVersion: "5", Continue: "t"},
		},
		"custom resources": {
			`{"apiVersion":"x/v1","items":[{"apiVersion":"x/v1","kind":"Foo",` +
				`"metadata":{"name":"a"}}],"kind":"FooList","metadata":{"resourceVersion":"5"}}`,
			"x/v1/Foo a", metav1.ListMeta{ResourceVersion: "5"},
		},
		"kind after the items": {
			body: `{"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}],` +
				`"kind":"PodList","apiVersion":"v1"}`,
			names: "v1/Pod a, v1/Pod b",
		},
		"no items":   {body: `{"kind":"PodList","apiVersion":"v1","items":[]}`},
		"null items": {body: `{"kind":"PodList","apiVersion":"v1","items":null}`},
		"blanks everywhere": {
			body: "\t{ \"kind\" :\n\"PodList\" , \"apiVersion\":\t\"v1\", \"items\" : [ { " +
				"\"metadata\" : { \"name\" : \"a\" } } ] } \n",
			names: "v1/Pod a",
		},
		"brackets in a string": {
			body: `{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"a",` +
				`"x":"]}\"{["}},{"metadata":{"name":"b\\"}}]}`,
			names: `v1/Pod a, v1/Pod b\`,
		},
		"unknown fields, any": {
			body: `{"a":1,"b":[{}],"c":null,"d":-1.5e3,"e":true,"kind":"PodList",` +
				`"apiVersion":"v1","items":[]}`,
		},
		"escaped field names": {
			body:  `{"kind":"PodList","apiVersion":"v1","it\u0065ms":[{"metadata":{"name":"a"}}]}`,
			names: "v1/Pod a",
		},
		"an item of many bytes": {
			body: `{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"` +
				many + `"}}]}`,
			names: "v1/Pod " + strings.ReplaceAll(many, `\\`, `\`),
		},
	} {
		t.Run(name, func(t *testing.T) {
			body := iotest.HalfReader(strings.NewReader(test.body))
			items, m, err := decodeAll(body, newUnstructured)
			require.NoError(t, err)
			var names []string
			for _, item := range items {
				u := item.(*unstructured.Unstructured)
				name := fmt.Sprintf("%s/%s %s", u.GetAPIVersion(), u.GetKind(), u.GetName())
				names = append(names, name)
			}
			require.Equal(t, test.names, strings.Join(names, ", "))
			require.Equal(t, test.meta, m)
		})
	}
}

func TestReadList_Bad(t *testing.T) {
	const wrongShape = "decode *v1.Pod: json: cannot unmarshal array into Go struct field " +
		"Pod.metadata of type v1.ObjectMeta"
	const cut = "unexpected EOF"
	deep := strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)
	for name, test := range map[string]struct {
		body  string
		after int // items; below zero: the error does not name them
		want  string
	}{
		"nothing":                    {``, 0, cut},
		"blanks":                     {"  ", 0, cut},
		"cut between items":          {`{"kind":"PodList","items":[{},{}`, 2, cut},
		"cut inside an item":         {`{"kind":"PodList","items":[{},{"metadata":{"na`, 1, cut},
		"cut after a slash":          {`{"kind":"PodList","items":[{"a":"\`, 0, cut},
		"cut in a number":            {`{"a":12`, 0, cut},
		"cut before the end":         {`{"kind":"PodList","items":[]`, 0, cut},
		"protobuf, cut off":          {"k8s\x00\n\x0c", 0, cut},
		"protobuf, cut in the magic": {"k8", 0, cut},
		"protobuf, cut in a tag":     {"k8s\x00\x80", 0, cut},
		"protobuf, cut in a length":  {"k8s\x00\n\x80", 0, cut},
		"protobuf, another magic": {
			"k8s\x01", 0, `not protobuf: the list begins with "k8s\x01"`,
		},
		"protobuf, a known field of 4 bytes": {
			"k8s\x00\r1234", 0, "not protobuf: field 1 has type 5",
		},
		"protobuf, a known field of 8 bytes": {
			"k8s\x00\t12345678", 0, "not protobuf: field 1 has type 1",
		},
		"protobuf, a length of 64 bits": {
			"k8s\x00\n" + strings.Repeat("\x80", 9) + "\x01", 0,
			"not protobuf: field 1 has a length of 9223372036854775808",
		},
		"a page of a proxy":  {`<html>`, 0, `not JSON: expected '{', got "<html>"`},
		"an array":           {`[]`, 0, `not JSON: expected '{', got "[]"`},
		"more after the end": {`{"kind":"PodList"} {`, 0, `not JSON: more after the end`},
		"no comma": {
			`{"kind":"PodList","items":[{}{}]}`, 1,
			`not JSON: invalid character '{' after array element (expecting ',' or ']')`,
		},
		"comma at the end": {
			`{"kind":"PodList","items":[{},]}`, 1,
			`not JSON: invalid character ',' at start of value`,
		},
		"no colon": {
			`{"kind" "PodList"}`, 0,
			`not JSON: invalid character '"' after object name (expecting ':')`,
		},
		"no field name": {`{1:2}`, 0, `not JSON: object member name must be a string`},
		"items twice": {
			`{"items":[{}],"kind":"PodList","items":[{}]}`, 1, `field "items" is repeated`,
		},
		"items twice, one null": {
			`{"items":null,"kind":"PodList","items":[{}]}`, 0, `field "items" is repeated`,
		},
		"nested too deep": {
			`{"kind":"PodList","items":[{"a":` + deep + `}]}`, 0, `not JSON: exceeded max depth`,
		},
		"another field nested too deep": {
			`{"kind":"PodList","a":` + deep + `}`, 0, `not JSON: exceeded max depth`,
		},
		"items is an object": {
			`{"kind":"PodList","items":{}}`, 0, `not JSON: expected '[', got '{'`,
		},
		"null item":           {`{"kind":"PodList","items":[null]}`, 0, `item is no object: "n"`},
		"item of wrong shape": {`{"kind":"PodList","items":[{"metadata":[]}]}`, 0, wrongShape},
		"item is no JSON": {
			`{"kind":"PodList","items":[{"metadata"}]}`, 0,
			`not JSON: invalid character '}' after object name (expecting ':')`,
		},
		"mixed brackets": {
			`{"kind":"PodList","items":[{"a":[}]}]}`, 0,
			`not JSON: invalid character '}' at start of value`,
		},
		"kind is a number": {
			`{"kind":1}`, 0, `json: cannot unmarshal number into Go value of type string`,
		},
		"one object": {
			`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}`, -1,
			`expected a list of kind "PodList", got "Pod" of "v1"`,
		},
		"items of another kind": {
			`{"kind":"PodList","items":[{"kind":"Pod"},{"kind":"Node"}]}`, 1,
			`expected an item of kind "Pod", got "Node"`,
		},
		"another kind after the items": {
			`{"items":[{}],"kind":"NodeList"}`, -1,
			`expected a list of kind "PodList", got "NodeList"`,
		},
		"another kind after items, and the last one has its own": {
			`{"items":[{},{"kind":"Pod"}],"kind":"NodeList"}`, -1,
			`expected a list of kind "PodList", got "NodeList"`,
		},
		"item of wrong shape before the kind": {
			`{"items":[{"metadata":[]}],"kind":"PodList"}`, 0, wrongShape,
		},
		"success": {
			`{"kind":"Status","apiVersion":"v1","status":"Success"}`, -1,
			`got a Status "Success" instead`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := decodeAll(strings.NewReader(test.body), newPod)
			after := fmt.Sprintf(" after %d items", test.after)
			if test.after < 0 {
				after = ""
			}
			require.EqualError(t, err, "read list"+after+": "+test.want)
		})
	}
}

// A custom resource names the kind of its list. Its items have their own.
func TestReadList_KindOfTheList(t *testing.T) {
	for _, body := range []string{
		`{"kind":"Herd","items":[{"kind":"Pod","metadata":{"name":"a"}}]}`,
		`{"items":[{"kind":"Pod","metadata":{"name":"a"}}],"kind":"Herd"}`,
		`{"items":[{"kind":"Pod","metadata":{"name":"a"}}]}`,
	} {
		items, _, err := decodeAll(strings.NewReader(body), newPod)
		require.NoError(t, err, body)
		require.Equal(t, "a", items[0].(*v1.Pod).Name)
	}
}

// Errors do not quote what a list contains, wherever a byte of it is wrong or missing.
func TestReadList_ErrorsQuoteNoSecrets(t *testing.T) {
	const secret = "canary"
	list := `{"kind":"SecretList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[` +
		`{"metadata":{"name":"a"},"data":{"canary":"canary"},"more":["canary"]}],` +
		`"more":{"canary":["canary"]}}`
	for i := range len(list) {
		for _, with := range []string{"", `"`, "{", "]", "1", ",", "\x00"} {
			body := list[:i] + with + list[i+1:]
			for _, newItem := range []func() runtime.Object{
				newUnstructured, func() runtime.Object { return &v1.Secret{} },
			} {
				_, err := ReadList(strings.NewReader(body), newItem, Options{}, ignore)
				if err != nil {
					require.NotContains(t, err.Error(), secret, body)
				}
			}
		}
	}
}

func TestReadList_Status(t *testing.T) {
	body, err := json.Marshal(apierrors.NewResourceExpired("too old").Status())
	require.NoError(t, err)
	body = append([]byte(`{"kind":"Status","apiVersion":"v1",`), body[1:]...)
	_, _, err = decodeAll(bytes.NewReader(body), newPod)
	require.True(t, apierrors.IsResourceExpired(err), "%v", err)

	status := apierrors.NewResourceExpired("too old").Status()
	unknown := &runtime.Unknown{
		TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Raw:      answers.Marshal(t, &status),
	}
	body = append([]byte(decode.Magic), answers.Marshal(t, unknown)...)
	_, _, err = decodeAll(bytes.NewReader(body), newPod)
	require.True(t, apierrors.IsResourceExpired(err), "%v", err)
}

// Fields that are not known are skipped, whatever their type.
func TestReadList_UnknownProtobuf(t *testing.T) {
	body := answers.List(t, answers.Protobuf, &v1.PodList{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: make([]v1.Pod, 1),
	})
	for _, field := range []string{"\x38\x81\x01", "\x3d1234", "\x3912345678", "\x3a\x02ab"} {
		unknown := decode.Magic + field + string(body[len(decode.Magic):])
		items, _, err := decodeAll(strings.NewReader(unknown), newPod)
		require.NoError(t, err, "%q", field)
		require.Len(t, items, 1)
	}
}

// The chunks that bodies pass on to each other have no goroutine or channel of a body.
func TestReadList_InOneBubbleAfterTheOther(t *testing.T) {
	body := answers.Pods(t, 2000)
	for range 3 {
		synctest.Test(t, func(t *testing.T) {
			_, err := ReadList(bytes.NewReader(body), newPod, Options{}, ignore)
			require.NoError(t, err)
		})
	}
}

func TestReadList_ReadError(t *testing.T) {
	in := io.MultiReader(
		strings.NewReader(`{"kind":"PodList","items":[{}`),
		iotest.ErrReader(io.ErrClosedPipe),
	)
	items, _, err := decodeAll(in, newPod)
	require.EqualError(t, err, "read list after 1 items: "+io.ErrClosedPipe.Error())
	require.Len(t, items, 1)
}

// The list of a custom resource has its kind at the end. Its items, which have their own, do not
// wait for that.
func TestReadList_ItemsOfAKindDoNotWait(t *testing.T) {
	in := io.MultiReader(
		strings.NewReader(`{"apiVersion":"x/v1","items":[{"apiVersion":"x/v1","kind":"Foo"}`),
		iotest.ErrReader(io.ErrClosedPipe),
	)
	items, _, err := decodeAll(in, newUnstructured)
	require.ErrorIs(t, err, io.ErrClosedPipe)
	require.Len(t, items, 1)
}

// An error of the caller stays as it is, even if the end of the body came with the last bytes.
func TestTokens_Failed(t *testing.T) {
	own := errors.New("own")
	in := newTokens(iotest.DataErrReader(strings.NewReader(`{"kind":1}`)), 100)
	err := in.object(func(string) error { return own })
	require.Equal(t, io.EOF, in.err)
	require.Equal(t, own, in.failed(err))

	in = newTokens(iotest.DataErrReader(strings.NewReader(`{}`)), 100)
	ended, err := in.ended()
	require.NoError(t, err)
	require.False(t, ended)
	ended, err = newTokens(iotest.DataErrReader(strings.NewReader(`x`)), 100).ended()
	require.Equal(t, io.ErrUnexpectedEOF, err)
	require.False(t, ended)
}

func TestReadList_StopsAtTheFirstError(t *testing.T) {
	stop := errors.New("stop")
	for _, body := range []string{
		`{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"a"}},{}]}`,
		`{"items":[{"metadata":{"name":"a"}},{}],"kind":"PodList","apiVersion":"v1"}`,
	} {
		calls := 0
		each := func(runtime.Object) error {
			calls++
			return stop
		}
		_, err := ReadList(strings.NewReader(body), newUnstructured, Options{}, each)
		require.ErrorIs(t, err, stop, body)
		require.Equal(t, 1, calls, body)
	}
}

// Whatever a server sends, ReadList and a decode of the whole agree on it, however it is cut into
// reads.
func FuzzReadList(f *testing.F) {
	for i, body := range []string{
		`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"5"},` +
			`"items":[{"metadata":{"name":"a"}},{"x":"\"]}"}]}`,
		`{"items":null,"kind":"List"}`,
		`{"items":[{"a":{"b":[1,2.5,"c",null,true]}}]} `,
		`{"items":[{"metadata":{"name":"a"}}`,                        // cut off
		`{"items":[{}],"items":[{},{}]}`,                             // repeated
		`{"metadata":{"continue":"a"},"metadata":{},"items":[]}`,     // repeated
		`{"items":[{"metadata":{"name":"a","name":"b"}}],"items":1}`, // repeated
		`{"\u0069tems":[{"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}]}`,
		`{"kind":"Pod","metadata":{"name":"a"}}`, // another kind
		`{"kind":"Status","status":"Failure","code":410,"reason":"Expired"}`,
		`{"items":[{"kind":"Node","metadata":{"name":"/\u0000","namespace":"\u001b["}}]}`,
		`{"Items":[{}],"ITEMS":[{}],"kind":"PodList"}`,
	} {
		f.Add([]byte(body), 3*i)
	}
	f.Fuzz(func(t *testing.T, body []byte, chunk int) {
		in := &chunked{data: body, size: 1 + max(chunk, -chunk)%64}
		list := v1.PodList{Items: []v1.Pod{}}
		m, err := ReadList(in, newPod, Options{}, func(obj runtime.Object) error {
			list.Items = append(list.Items, *obj.(*v1.Pod))
			return nil
		})
		if err == nil {
			list.ListMeta = m
			whole := v1.PodList{}
			require.NoError(t, utiljson.Unmarshal(body, &whole), "accepted %q", body)
			whole.TypeMeta = metav1.TypeMeta{}
			require.True(t, apiequality.Semantic.DeepEqual(whole, list), "%v %v", whole, list)
		}

		in = &chunked{data: body, size: 1 + max(chunk, -chunk)%64}
		items := []map[string]any{}
		_, err = ReadList(in, newUnstructured, Options{}, func(obj runtime.Object) error {
			items = append(items, obj.(*unstructured.Unstructured).Object)
			return nil
		})
		if err == nil {
			var whole struct {
				Items []map[string]any `json:"items"`
			}
			require.NoError(t, utiljson.Unmarshal(body, &whole), "accepted %q", body)
			require.Len(t, items, len(whole.Items))
			for i, item := range items {
				for field, value := range whole.Items[i] {
					require.Equal(t, value, item[field]) // kind and apiVersion may be added
				}
			}
		}
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

// A list is not kept: beyond the present item, little of it is in the decoder's buffer.
func TestReadList_BufferIsOfOneItem(t *testing.T) {
	in := newTokens(bytes.NewReader(answers.Pods(t, 2000)), 1<<20)
	count := 0
	require.NoError(t, in.object(func(name string) error {
		if name != "items" {
			_, err := in.frame()
			return err
		}
		return in.array(func() error {
			count++
			_, err := in.frame()
			require.LessOrEqual(t, in.received-in.decoder.InputOffset(), int64(4<<10))
			return err
		})
	}))
	require.Equal(t, 2000, count)
}

// A list costs linear time in the number of its items, and in the length and the depth of one, also
// where the bytes arrive one by one.
func TestGrowth(t *testing.T) {
	for name, item := range map[string]func(n int) string{
		"escapes":  func(n int) string { return `{"a":"` + strings.Repeat(`\"`, n) + `"}` },
		"slashes":  func(n int) string { return `{"a":"` + strings.Repeat(`\\`, n) + `"}` },
		"brackets": func(n int) string { return `{"a":[` + strings.Repeat(`{},`, n) + `{}]}` },
		"strings":  func(n int) string { return `{"a":[` + strings.Repeat(`"",`, n) + `""]}` },
		"labels": func(n int) string {
			var labels strings.Builder
			for i := range n {
				fmt.Fprintf(&labels, `"l%d":"",`, i)
			}
			return `{"metadata":{"labels":{` + labels.String() + `"a":""}}}`
		},
		"blanks": func(n int) string { return `{"a":1` + strings.Repeat(" ", n) + `}` },
		"items":  func(n int) string { return strings.Repeat(`{},`, n) + `{}` },
	} {
		t.Run(name, func(t *testing.T) {
			measure.Growth(t, 2000, func(n int) {
				list := `{"kind":"FooList","apiVersion":"x/v1","items":[` + item(n) + `]}`
				for _, body := range []io.Reader{
					strings.NewReader(list), iotest.OneByteReader(strings.NewReader(list)),
				} {
					_, err := ReadList(body, newUnstructured, Options{}, ignore)
					require.NoError(t, err)
				}
			})
		})
	}
}

// The metadata of a list repeats the selector, in JSON and in protobuf.
func TestReadList_ShardInfo(t *testing.T) {
	list := &v1.PodList{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"},
		ListMeta: metav1.ListMeta{
			ResourceVersion: "5", ShardInfo: &metav1.ShardInfo{Selector: "s"},
		},
		Items: []v1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}},
	}
	for _, format := range []string{answers.JSON, answers.Protobuf} {
		body := answers.List(t, format, list)
		m, err := ReadList(bytes.NewReader(body), newPod, Options{}, ignore)
		require.NoError(t, err)
		require.Equal(t, list.ListMeta, m)
	}
}
