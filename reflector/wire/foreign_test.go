// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// scribbled keeps a copy, and then writes into the bytes.
type scribbled string

func (s *scribbled) UnmarshalJSON(raw []byte) error {
	*s = scribbled(raw)
	for i := range raw {
		raw[i] = 'X'
	}
	return nil
}

// keptText keeps the text that it is decoded from, although its interface forbids that.
type keptText string

func (k *keptText) UnmarshalText(text []byte) error {
	*k = keptText(unsafe.String(unsafe.SliceData(text), len(text)))
	return nil
}

// added counts how often it was decoded.
type added int

func (a *added) UnmarshalJSON([]byte) error {
	*a++
	return nil
}

// keeping is a typed object with a foreign type at some depth.
type keeping[Spec any] struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              Spec `json:"spec"`
}

func (k *keeping[Spec]) DeepCopyObject() runtime.Object { return k }

type deep[Spec any] struct {
	A []map[string]*struct {
		B Spec `json:"b"`
	} `json:"a"`
}

// whole keeps all bytes of the object.
type whole struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Raw []byte
}

func (w *whole) DeepCopyObject() runtime.Object { return w }
func (w *whole) UnmarshalJSON(raw []byte) error {
	w.Raw = raw
	return json.Unmarshal(raw, &w.TypeMeta)
}
func (w *whole) Reset() { *w = whole{} }
func (w *whole) Unmarshal(raw []byte) error {
	w.Raw = raw
	return nil
}

// holding has generated code for protobuf, in a package that is not foreign, and a foreign part.
type holding struct {
	metav1.PartialObjectMetadata
	Spec deep[whole]
}

// If a type keeps the bytes or writes into them, each object still has its own content. It works
// with client-go, because that decodes each event from bytes of its own.
func TestForeign_ObjectsKeepTheirOwnBytes(t *testing.T) {
	flat := func(i int) string { return fmt.Sprintf(`"%0*d"`, 1+i%7, i) }
	inArray := func(i int) string { return "[" + flat(i) + "]" }
	twice := func(i int) string { return `"b","spec":` + flat(i) }
	nested := func(i int) string { return `{"a":[{"x":{"b":` + flat(i) + `}}]}` }
	for name, test := range map[string]struct {
		of   runtime.Object
		spec func(i int) string
	}{
		"kept":               {&keeping[keptBytes]{}, flat},
		"kept, deep":         {&keeping[deep[keptBytes]]{}, nested},
		"pointer":            {&keeping[*keptBytes]{}, flat},
		"text":               {&keeping[keptText]{}, flat},
		"text, deep":         {&keeping[deep[keptText]]{}, nested},
		"written":            {&keeping[scribbled]{}, flat},
		"written, deep":      {&keeping[deep[scribbled]]{}, nested},
		"array":              {&keeping[[1]keptBytes]{}, inArray},
		"any":                {&keeping[any]{}, flat},
		"the object's own":   {&whole{}, flat},
		"raw message":        {&keeping[json.RawMessage]{}, flat},
		"raw extension":      {&keeping[runtime.RawExtension]{}, nested},
		"v2 refuses halfway": {&keeping[scribbled]{}, twice},
		"v2 refuses, kept":   {&keeping[keptBytes]{}, twice},
	} {
		t.Run(name, func(t *testing.T) {
			newObject := func() runtime.Object { return newOf(reflect.TypeOf(test.of).Elem()) }
			var want []runtime.Object
			var items, events []string
			for i := range 50 {
				item := fmt.Sprintf(`{"kind":"Custom","apiVersion":"example.com/v1",`+
					`"metadata":{"name":"a-%d"},"spec":%s}`, i, test.spec(i))
				items = append(items, item)
				events = append(events, `{"type":"ADDED","object":`+item+"}\n")
				alone := newObject()
				require.NoError(t, unmarshal([]byte(item), alone))
				want = append(want, alone)
			}
			kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Custom"}
			list := `{"kind":"CustomList","apiVersion":"example.com/v1","items":[` +
				strings.Join(items, ",") + `]}`
			stream := strings.Join(events, "")

			var got []runtime.Object
			_, err := ReadList(strings.NewReader(list), newObject, Options{Kind: kind},
				func(obj runtime.Object) error {
					got = append(got, obj)
					return nil
				})
			require.NoError(t, err)
			require.Equal(t, want, got)

			got = nil
			w := ReadWatch(io.NopCloser(strings.NewReader(stream)), newObject, Options{Kind: kind})
			for e := range w.ResultChan() {
				e.Object.GetObjectKind().SetGroupVersionKind(kind)
				got = append(got, e.Object)
			}
			require.Equal(t, want, got)

			clients := newTwins(t, custom(newObject(), &keptList{}), jsonStream,
				strings.NewReader(stream))
			got = nil
			for _, e := range clients.sameWatches(t).events {
				e.Object.GetObjectKind().SetGroupVersionKind(kind)
				got = append(got, e.Object)
			}
			require.Equal(t, want, got)
		})
	}
}

// The same for protobuf. TestNegotiator_UnmarshalKeepsProtobuf has clients of client-go.
func TestForeign_ObjectsKeepTheirOwnProtobuf(t *testing.T) {
	const count = 50
	var items, stream []byte
	of := runtime.TypeMeta{APIVersion: "v1", Kind: "whole"}
	for i := range count {
		item := fmt.Appendf(nil, "%0*d", 1+i%7, i)
		items = protowire.AppendTag(items, listItems, protowire.BytesType)
		items = protowire.AppendBytes(items, item)
		object := append([]byte(magic), marshaled(t, &runtime.Unknown{TypeMeta: of, Raw: item})...)
		event := marshaled(t, &metav1.WatchEvent{
			Type: "ADDED", Object: runtime.RawExtension{Raw: object},
		})
		stream = append(append(stream, 0, 0, 0, byte(len(event))), event...)
	}
	newObject := func() runtime.Object { return &whole{} }
	var kept []runtime.Object
	_, err := ReadList(bytes.NewReader(listInProtobuf(items)), newObject,
		Options{ListKind: "PodList"}, func(obj runtime.Object) error {
			kept = append(kept, obj)
			return nil
		})
	require.NoError(t, err)
	for _, e := range receiveAll(
		ReadWatch(io.NopCloser(bytes.NewReader(stream)), newObject, Options{})) {
		kept = append(kept, e.Object)
	}
	require.Len(t, kept, 2*count)
	for i, obj := range kept {
		require.Equal(t, fmt.Sprintf("%0*d", 1+i%count%7, i%count), string(obj.(*whole).Raw))
	}
}

// The types of Kubernetes copy, so that they need no copies. A foreign type is found at any depth.
func TestForeign_Types(t *testing.T) {
	for _, c := range collections() {
		require.False(t, mayKeepJSON(c.of), c.gvk)
		require.False(t, mayKeepProtobuf(c.of), c.gvk)
	}
	for _, copies := range []reflect.Type{
		reflect.TypeFor[unstructured.Unstructured](),
		reflect.TypeFor[metav1.PartialObjectMetadata](),
		reflect.TypeFor[keeping[json.RawMessage]](), reflect.TypeFor[keeping[deep[time.Time]]](),
	} {
		require.False(t, mayKeepJSON(copies), copies)
	}
	for _, keeps := range []reflect.Type{
		reflect.TypeFor[keeping[keptBytes]](), reflect.TypeFor[keeping[deep[*keptBytes]]](),
		reflect.TypeFor[keeping[map[keptText]int]](), reflect.TypeFor[keeping[[]any]](),
		reflect.TypeFor[keeping[struct{ metav1.Time }]](), reflect.TypeFor[whole](),
	} {
		require.True(t, mayKeepJSON(keeps), keeps)
	}
	require.True(t, mayKeepProtobuf(reflect.TypeFor[whole]()))
	require.True(t, mayKeepProtobuf(reflect.TypeFor[struct{ A []*holding }]()))
}

// The same for the list of a client of client-go.
func TestForeign_ClientListKeepsItsBytes(t *testing.T) {
	var items []string
	for i := range 50 {
		items = append(items, fmt.Sprintf(`{"metadata":{"name":"a-%d"},"spec":"%d"}`, i, i))
	}
	body := `{"kind":"CustomList","apiVersion":"example.com/v1","items":[` +
		strings.Join(items, ",") + `]}`
	clients := newTwins(t, custom(&keeping[keptBytes]{}, &listOf[[]keeping[keptBytes]]{}),
		jsonStream, strings.NewReader(body))
	clients.sameLists(t, noList)

	clients = newTwins(t, custom(&keeping[scribbled]{}, &listOf[[]keeping[scribbled]]{}),
		jsonStream, strings.NewReader(body))
	got := listAnswer(t.Context(), clients.faster, nil).list.(*listOf[[]keeping[scribbled]])
	require.Len(t, got.Items, len(items))
	for i, item := range got.Items {
		require.Equal(t, fmt.Sprint("a-", i), item.Name)
		require.Equal(t, scribbled(fmt.Sprintf("%q", fmt.Sprint(i))), item.Spec)
	}
}

// oneMap gives all its objects one map.
type oneMap struct {
	metav1.TypeMeta
	metav1.ObjectMeta
}

var labelsOfAll = map[string]string{"a": "b"}

func (o *oneMap) DeepCopyObject() runtime.Object { return o }
func (o *oneMap) UnmarshalJSON([]byte) error {
	o.Labels, o.Namespace = labelsOfAll, strings.Clone("ns")
	return nil
}

// cloned is read from protobuf by code of its own.
type cloned struct {
	metav1.TypeMeta
	metav1.ObjectMeta
}

func (c *cloned) DeepCopyObject() runtime.Object { return c }
func (c *cloned) Reset()                         {}
func (c *cloned) Unmarshal([]byte) error {
	c.Namespace = strings.Clone("ns")
	return nil
}

// Nothing is written into what the code of a type has made: a reader of another object may see it.
// The race detector finds it.
func TestForeign_MapsAreNotWritten(t *testing.T) {
	d := newDecoder(func() runtime.Object { return &oneMap{} }, Options{})
	obj, err := d.json([]byte("{}"))
	require.NoError(t, err)
	read := make(chan string)
	go func() { read <- obj.(*oneMap).Labels["a"] }()
	_, err = d.json([]byte("{}"))
	require.NoError(t, err)
	require.Equal(t, "b", <-read)
}

// The second decode of an object has nothing of the first one, which v2 has refused halfway, for
// any user of the decoder.
func TestForeign_NothingOfARefusedDecode(t *testing.T) {
	const item = `{"kind":"Custom","apiVersion":"example.com/v1","spec":1,` +
		`"metadata":{"name":"a","name":"b"}}`
	d := newDecoder(func() runtime.Object { return &keeping[added]{} }, Options{})
	require.True(t, d.plain)
	sameAsKubernetes(t, d, []byte(item))
	clients := newTwins(t, custom(&keeping[added]{}, &listOf[[]keeping[added]]{}), jsonStream,
		strings.NewReader(`{"kind":"CustomList","apiVersion":"example.com/v1","items":[`+
			item+","+item+`]}`))
	clients.sameLists(t, noList)
}
