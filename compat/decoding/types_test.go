// SPDX-License-Identifier: Apache-2.0

package decoding

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"example.com/informerstack/internal/decode"
	"example.com/informerstack/internal/tools/answers"
)

// verbatim keeps the bytes it was decoded from, if it has a spec.
type verbatim struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Raw []byte
}

func (v *verbatim) DeepCopyObject() runtime.Object { return v }
func (v *verbatim) UnmarshalJSON(raw []byte) error {
	if bytes.Contains(raw, []byte("spec")) {
		v.Raw = raw
	}
	return nil
}

// needy is verbatim, and cannot be decoded without a spec.
type needy struct{ verbatim }

func (n *needy) DeepCopyObject() runtime.Object { return n }
func (n *needy) UnmarshalJSON(raw []byte) error {
	var in struct{ Spec *string }
	err := json.Unmarshal(raw, &in)
	n.Name, n.Raw = *in.Spec, raw
	return err
}

// UnmarshalJSON of an object sees the bytes that the server has sent, and nothing writes into them
// later. It may panic without fields that each object has.
func TestNegotiator_UnmarshalJSONOfObjects(t *testing.T) {
	events := ""
	for i := range 5 {
		events += fmt.Sprintf(`{"type": "ADDED", "object" : { "kind": "Custom",`+
			` "apiVersion" : "example.com/v1" , "spec": "%d" }}`, i)
	}
	for _, obj := range []runtime.Object{&verbatim{}, &needy{}} {
		got := newTwins(t, custom(obj, &keptList{}), answers.JSON, strings.NewReader(events)).
			sameWatches(t, "%T", obj)
		require.Len(t, got.events, 5)
		require.IsType(t, obj, got.events[0].Object)
	}
}

func (v *verbatim) Reset() { *v = verbatim{} }
func (v *verbatim) Unmarshal(raw []byte) error {
	v.Raw = raw
	return nil
}

// N3 for a type with code for protobuf that does not copy.
func TestNegotiator_UnmarshalKeepsProtobuf(t *testing.T) {
	var body []byte
	for i := range 3 {
		object := answers.Marshal(t, &runtime.Unknown{
			TypeMeta: runtime.TypeMeta{APIVersion: "example.com/v1", Kind: "Custom"},
			Raw:      fmt.Append(nil, i),
		})
		raw := runtime.RawExtension{Raw: append([]byte(decode.Magic), object...)}
		event := answers.Marshal(t, &metav1.WatchEvent{Type: "ADDED", Object: raw})
		body = append(append(body, 0, 0, 0, byte(len(event))), event...)
	}
	got := newTwins(t, custom(&verbatim{}, &keptList{}), answers.Protobuf, bytes.NewReader(body)).
		sameWatches(t)
	require.Equal(t, "0", string(got.events[0].Object.(*verbatim).Raw))
}

// doubled has its own UnmarshalJSON.
type doubled []kept

func (d *doubled) UnmarshalJSON(raw []byte) error {
	var items []kept
	err := json.Unmarshal(raw, &items)
	*d = append(items, items...)
	return err
}

// lateMetadata has no metadata until it is decoded.
type lateMetadata struct {
	metav1.TypeMeta `json:",inline"`
	*Metadata       `json:",inline"`
	Spec            string `json:"spec"`
}

type Metadata struct {
	metav1.ObjectMeta `json:"metadata"`
}

func (l *lateMetadata) DeepCopyObject() runtime.Object { return l }

type hiddenItems []kept

type hiddenList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	hiddenItems     `json:"items"`
}

func (l *hiddenList) DeepCopyObject() runtime.Object { return l }

// needyList cannot be decoded without an item.
type needyList struct{ keptList }

func (l *needyList) UnmarshalJSON(raw []byte) error {
	err := json.Unmarshal(raw, &l.keptList)
	l.Continue = l.Items[0].Name
	return err
}

// Lists of unusual types.
func TestNegotiator_ListTypes(t *testing.T) {
	for _, list := range []runtime.Object{
		&answers.ListOf[[]kept]{}, &answers.ListOf[[]*kept]{}, &answers.ListOf[[]any]{},
		&answers.ListOf[doubled]{}, &answers.ListOf[[]unstructured.Unstructured]{},
		&answers.ListOf[[]lateMetadata]{}, &hiddenList{}, &needyList{},
	} {
		for _, item := range []string{
			`{}`, `{"spec":"x"}`, `{"kind":"A","metadata":{"name":"a"}}`,
			`{"kind":"A","apiVersion":"a/b/c"}`, `{"kind":"A","apiVersion":"a/b","spec":"x"}`,
		} {
			body := `{"kind":"CustomList","apiVersion":"example.com/v1","items":[` + item + `]}`
			newList := func() runtime.Object { return answers.New(reflect.TypeOf(list).Elem()) }
			clients := newTwins(t, custom(&kept{}, list), answers.JSON, strings.NewReader(body))
			clients.sameLists(t, newList, "%T %s", list, item)
			clients.sameLists(t, noList, "%T %s", list, item)
		}
	}
	require.False(t, itemsOf(&hiddenList{hiddenItems: hiddenItems{}}).IsValid())
	lists := clientList{shared: decode.NewSharedStrings()}
	items := [][]byte{[]byte(`{}`)}
	require.False(t, lists.fill(&keptList{}, items)) // "items" has set another field
	require.True(t, lists.fill(&keptList{Items: []kept{}}, items))
}

// An event may have no metadata, even if the type has no place for them then.
func TestNegotiator_EventWithoutMetadata(t *testing.T) {
	event := `{"type":"ADDED","object":{"kind":"Custom","apiVersion":"example.com/v1","spec":"x"}}`
	got := newTwins(t, custom(&lateMetadata{}, &keptList{}), answers.JSON,
		strings.NewReader(event)).sameWatches(t)
	require.Equal(t, &lateMetadata{Spec: "x"}, got.events[0].Object)
}

// noPointer is an object that no decoder can fill.
type noPointer map[string]any

func (n noPointer) DeepCopyObject() runtime.Object   { return n }
func (n noPointer) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// Two kinds may have one Go type. Each event has its own kind, whichever comes first, and also
// behind maxKinds others.
func TestNegotiator_KindsOfOneType(t *testing.T) {
	gv := schema.GroupVersion{Group: "example.com", Version: "v1"}
	s := runtime.NewScheme()
	metav1.AddToGroupVersion(s, gv)
	var names []string
	for i := range 3 * maxKinds {
		names = append(names, fmt.Sprint("Kind", i))
		s.AddKnownTypeWithName(gv.WithKind(names[i]), &plain{})
	}
	for _, codecs := range []runtime.NegotiatedSerializer{
		serializer.NewCodecFactory(s).WithoutConversion(), withKinds{serializer.NewCodecFactory(s)},
	} {
		for _, order := range [][]int{{0, 1}, {1, 0}, {0, 1, 0, 0, 1, 1}, rand.Perm(3 * maxKinds)} {
			var inJSON, inProtobuf []byte
			for i, kind := range append(order, order...) {
				obj := &plain{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i)}}
				obj.SetGroupVersionKind(gv.WithKind(names[kind]))
				text, err := json.Marshal(obj)
				require.NoError(t, err)
				inJSON = fmt.Appendf(inJSON, `{"type":"ADDED","object":%s}`, text)
				raw, err := (&metav1.PartialObjectMetadata{ObjectMeta: obj.ObjectMeta}).Marshal()
				require.NoError(t, err)
				object := answers.Marshal(t, &runtime.Unknown{Raw: raw, TypeMeta: runtime.TypeMeta{
					APIVersion: gv.String(), Kind: names[kind],
				}})
				extension := runtime.RawExtension{Raw: append([]byte(decode.Magic), object...)}
				event := answers.Marshal(t, &metav1.WatchEvent{Type: "ADDED", Object: extension})
				inProtobuf = append(append(inProtobuf, 0, 0, 0, byte(len(event))), event...)
			}
			for contentType, body := range map[string][]byte{
				answers.JSON: inJSON, answers.Protobuf: inProtobuf,
			} {
				got := newTwins(t, codecs, contentType, bytes.NewReader(body)).
					sameWatches(t, "%s %v", contentType, order)
				require.Len(t, got.events, 2*len(order))
				require.IsType(t, &plain{}, got.events[0].Object)
			}
		}
	}
}

// plain is metadata under another Go name.
type plain struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
}

func (p *plain) DeepCopyObject() runtime.Object { return p }
func (p *plain) Reset()                         { *p = plain{} }
func (p *plain) Unmarshal(raw []byte) error {
	var m metav1.PartialObjectMetadata
	err := m.Unmarshal(raw)
	p.ObjectMeta = m.ObjectMeta
	return err
}
func (p *plain) Marshal() ([]byte, error) {
	return (&metav1.PartialObjectMetadata{ObjectMeta: p.ObjectMeta}).Marshal()
}

// withKinds decodes without conversion and leaves the kinds in the objects, as the client of
// controller-runtime does.
type withKinds struct{ serializer.CodecFactory }

func (w withKinds) DecoderToVersion(d runtime.Decoder, _ runtime.GroupVersioner) runtime.Decoder {
	return d
}
func (w withKinds) EncoderForVersion(e runtime.Encoder, _ runtime.GroupVersioner) runtime.Encoder {
	return e
}

// Every item of a long list has its own content, up to the last one.
func TestNegotiator_LongLists(t *testing.T) {
	for _, count := range []int{1, 255, 256, 257, 1000, 1024, 3000} {
		list := &v1.PodList{}
		for i := range count {
			list.Items = append(list.Items, v1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("a-", i)},
				Spec:       v1.PodSpec{NodeName: strings.Repeat("n", 1+i%50)},
			})
		}
		for _, contentType := range []string{answers.JSON, answers.Protobuf} {
			body := answers.List(t, contentType, list)
			got := newTwins(t, typed, contentType, bytes.NewReader(body)).sameLists(t, noList)
			items := got.list.(*v1.PodList).Items
			require.Len(t, items, count)
			require.Equal(t, fmt.Sprint("a-", count-1), items[count-1].Name)
		}
	}
}

// fieldsList has the fields of a list, of any types.
type fieldsList[Type, Meta any] struct {
	Type  Type   `json:",inline"`
	Meta  Meta   `json:"metadata"`
	Items []kept `json:"items"`
}

func (l *fieldsList[Type, Meta]) DeepCopyObject() runtime.Object   { return l }
func (l *fieldsList[Type, Meta]) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

type wideList struct {
	fieldsList[metav1.TypeMeta, metav1.ListMeta]
	More, Most string
}

type renamedList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []kept `json:"things"`
}

func (l *renamedList) DeepCopyObject() runtime.Object { return l }

type numberedList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []kept `json:"items" protobuf:"bytes,3,rep,name=items"`
}

func (l *numberedList) DeepCopyObject() runtime.Object { return l }

type ownList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []kept `json:"items"`
}

func (l *ownList) DeepCopyObject() runtime.Object { return l }
func (l *ownList) UnmarshalJSON([]byte) error     { return nil }

// Only the usual form of a list is cut.
func TestItemsOf(t *testing.T) {
	for _, list := range []runtime.Object{
		&fieldsList[metav1.TypeMeta, metav1.ListMeta]{}, &keptList{}, &v1.PodList{},
	} {
		require.True(t, itemsOf(list).IsValid(), "%T", list)
	}
	for _, list := range []runtime.Object{
		&fieldsList[string, metav1.ListMeta]{}, &fieldsList[metav1.TypeMeta, string]{},
		&wideList{}, &renamedList{}, &numberedList{}, &ownList{}, &noPointer{}, &v1.Pod{},
	} {
		require.False(t, itemsOf(list).IsValid(), "%T", list)
	}
}
