// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	jsonv2 "github.com/go-json-experiment/json"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"
)

// decoder decodes JSON and protobuf into objects that newObject makes.
//
// It decodes JSON as the decoder of Kubernetes does, but in less time: with encoding/json/v2, which
// is stricter.
//
//	J1  an object that v2 accepts has the result of the decoder of Kubernetes
//	J2  any other object is decoded by that decoder, so its result or its error is the same
//
// J1 needs a type with the same rules in both: see isPlain. TestJSON_EveryKind shows it for
// the built-in types, and TestJSON_RandomTypes for others.
type decoder struct {
	expected
	traits
	newObject NewObject
	metadata  *sharedMetadata
	v2        *trust
}

// traits describe a Go type.
type traits struct {
	protobufs bool // it can be read from protobuf
	plain     bool // it can be read from JSON by v2
	// Decoding may call code that keeps its bytes or changes them.
	foreignJSON, foreignProtobuf bool
	foreignObject                bool // the type itself has such code
}

// knownTraits has the traits of each type that a decoder was made for. A program has few.
var knownTraits sync.Map

func traitsOf(obj runtime.Object) traits {
	t := reflect.TypeOf(obj).Elem()
	if known, ok := knownTraits.Load(t); ok {
		return known.(traits)
	}
	got := traits{
		protobufs: readsProtobuf(obj), plain: readsPlainly(t),
		foreignJSON: mayKeepJSON(t), foreignProtobuf: mayKeepProtobuf(t),
		foreignObject: isForeign(t),
	}
	knownTraits.Store(t, got)
	return got
}

// maxFastBytes bounds an object that v2 decodes, because v2 remembers each unknown name in it. API
// servers accept objects of little more.
const maxFastBytes = 1 << 20

// protobufObject is a type with generated code for protobuf.
type protobufObject interface {
	Reset()
	Unmarshal(data []byte) error
}

// readsProtobuf reports whether obj has generated code for protobuf, and is of a type that does not
// contain itself: that code calls itself for each level, so a server could overflow the stack.
func readsProtobuf(obj runtime.Object) bool {
	_, ok := obj.(protobufObject)
	return ok && !nests(reflect.TypeOf(obj), nil)
}

// nests reports whether t contains a struct that contains itself, or one of outer.
func nests(t reflect.Type, outer []reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return nests(t.Elem(), outer)
	case reflect.Struct:
		if slices.Contains(outer, t) {
			return true
		}
		for i := range t.NumField() {
			if nests(t.Field(i).Type, append(outer, t)) {
				return true
			}
		}
	}
	return false
}

func newDecoder(newObject NewObject, options Options) decoder {
	obj := newObject()
	return decoder{
		newObject: newObject, expected: newExpected(obj, options), traits: traitsOf(obj),
		metadata: newSharedMetadata(), v2: &trust{},
	}
}

// json decodes an object or item.
func (d decoder) json(raw []byte) (runtime.Object, error) {
	obj, text := d.newObject(), raw
	if d.foreignJSON {
		text = bytes.Clone(raw)
	}
	trusted := d.v2.next.Load() == 0
	fast := d.plain && len(raw) <= maxFastBytes && (trusted || d.v2.asked())
	if !fast || jsonv2.Unmarshal(text, obj) != nil {
		if fast { // v2 may have changed both before its error
			obj, text = d.newObject(), bytes.Clone(raw)
		}
		if err := unmarshal(text, obj); err != nil {
			return nil, fmt.Errorf("decode %T: %w", obj, err)
		}
		if fast {
			d.v2.refused()
		}
	} else if !trusted {
		d.v2.accepted()
	}
	if !d.foreignObject { // such code may give several objects one map
		d.metadata.share(obj)
	}
	return obj, nil
}

// unmarshal is the decoder of Kubernetes.
func unmarshal(raw []byte, obj runtime.Object) error {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		u.Object = nil
		return utiljson.Unmarshal(raw, &u.Object)
	}
	return utiljson.Unmarshal(raw, obj)
}

// protobuf decodes an object or item without its envelope.
func (d decoder) protobuf(raw []byte) (runtime.Object, error) {
	obj := d.newObject()
	if !d.protobufs {
		return nil, fmt.Errorf("decode %T: it is not read from protobuf", obj)
	}
	if d.foreignProtobuf {
		raw = bytes.Clone(raw)
	}
	if err := obj.(protobufObject).Unmarshal(raw); err != nil {
		return nil, fmt.Errorf("decode %T: %w", obj, err)
	}
	if !d.foreignObject { // such code may give several objects one map
		d.metadata.share(obj)
	}
	return obj, nil
}

// jsonEvent decodes the object of an event. A typed one has no kind then, as with typed clients.
func (d decoder) jsonEvent(event watch.EventType, raw []byte) (runtime.Object, error) {
	if event == watch.Error {
		return otherKind(raw)
	}
	obj, err := d.json(raw)
	if err == nil {
		switch gvk := obj.GetObjectKind().GroupVersionKind(); {
		case gvk.Kind == "" || gvk.Version == "":
			return nil, errNoKind
		case d.accepts(gvk):
			if _, ok := obj.(runtime.Unstructured); !ok {
				obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
			}
			return obj, nil
		}
	}
	// Another kind may be the reason of err.
	other, otherErr := otherKind(raw)
	if otherErr == nil && (err == nil || !d.accepts(other.GetObjectKind().GroupVersionKind())) {
		return other, nil
	}
	return nil, cmp.Or(err, otherErr)
}

// otherKind decodes an object of an unexpected kind.
func otherKind(raw []byte) (runtime.Object, error) {
	obj := &unstructured.Unstructured{}
	err := unmarshal(raw, obj)
	if !isStatus(obj.GroupVersionKind()) {
		return obj, err
	}
	status := &metav1.Status{}
	err = unmarshal(raw, status)
	status.TypeMeta = metav1.TypeMeta{}
	return status, err
}

// protobufEvent decodes the object of an event. Its envelope has said its kind.
func (d decoder) protobufEvent(of metav1.TypeMeta, raw []byte) (runtime.Object, error) {
	switch gvk := of.GroupVersionKind(); {
	case gvk.Kind == "" || gvk.Version == "":
		return nil, errNoKind
	case isStatus(gvk):
		return protobufStatus(raw)
	case d.accepts(gvk):
		return d.protobuf(raw)
	}
	other := &unstructured.Unstructured{} // its fields are unknown
	other.SetAPIVersion(of.APIVersion)
	other.SetKind(of.Kind)
	return other, nil
}

func protobufStatus(raw []byte) (*metav1.Status, error) {
	status := &metav1.Status{}
	if err := status.Unmarshal(raw); err != nil {
		return nil, fmt.Errorf("decode %T: %w", status, err)
	}
	return status, nil
}

// expected is what the objects of an answer must be. An object of another group, version or kind
// could lose fields, and an empty list of another kind would empty a store.
//
//	K1  an object that says its apiVersion or kind is judged by them, wherever it comes from
//	K2  an item that does not is judged by its list, once the list has said what it is
//	K3  an empty list is judged by its own kind
type expected struct {
	of       schema.GroupVersionKind // Kind "" is any kind, Version "" any group and version
	list     string                  // kind of the list; "" is Kind + "List"
	metadata bool                    // the server may send the metadata alone
}

var (
	errNoKind  = errors.New("the object has no apiVersion or no kind")
	errNoItems = errors.New(`the answer has no field "items"`)
)

func newExpected(obj runtime.Object, options Options) expected {
	e := expected{of: options.Kind, list: options.ListKind}
	switch obj.(type) {
	case *unstructured.Unstructured:
	case *metav1.PartialObjectMetadata:
		e.metadata = true
	default:
		if e.of.Kind == "" {
			e.of.Kind = reflect.TypeOf(obj).Elem().Name()
		}
	}
	return e
}

// accepts reports whether an object may be one of the collection.
func (e expected) accepts(gvk schema.GroupVersionKind) bool {
	if e.metadata && gvk == partial {
		return true
	}
	return (e.of.Version == "" || gvk.GroupVersion() == e.of.GroupVersion()) &&
		(e.of.Kind == gvk.Kind || e.of.Kind == "" && !isStatus(gvk))
}

// checkItem returns an error if the item of a list says that it is something else. bare reports
// whether it has no apiVersion and no kind.
func (e expected) checkItem(obj runtime.Object) (bare bool, err error) {
	gvk := obj.GetObjectKind().GroupVersionKind()
	if u, ok := obj.(*unstructured.Unstructured); ok {
		bare = u.GetAPIVersion() == "" && u.GetKind() == ""
	} else {
		bare = gvk.Empty()
	}
	if bare || e.accepts(gvk) {
		return bare, nil
	}
	return false, fmt.Errorf("expected an item of kind %s, got %s", describe(e.of), describe(gvk))
}

// isKnown reports whether enough of a list's head is known to check it.
func (e expected) isKnown(head metav1.TypeMeta) bool {
	return head.Kind != "" && (head.APIVersion != "" || e.of.Version == "")
}

// checkList returns an error if a list with this head cannot be the list of bare items, or an empty
// one.
func (e expected) checkList(head metav1.TypeMeta) error {
	gvk := head.GroupVersionKind()
	if e.metadata && gvk == partialList {
		return nil
	}
	want := e.of
	switch {
	case e.list != "":
		want.Kind = e.list
	case e.of.Kind != "":
		want.Kind += "List"
	case strings.HasSuffix(gvk.Kind, "List"):
		want.Kind = gvk.Kind
	default:
		want.Kind = "…List"
	}
	if gvk.Kind == want.Kind && (e.of.Version == "" || gvk.GroupVersion() == want.GroupVersion()) {
		return nil
	}
	return fmt.Errorf("expected a list of kind %s, got %s", describe(want), describe(gvk))
}

// describe quotes gvk, which a server may have sent.
func describe(gvk schema.GroupVersionKind) string {
	if gvk.Version == "" {
		return fmt.Sprintf("%.64q", gvk.Kind)
	}
	return fmt.Sprintf("%.64q of %.64q", gvk.Kind, gvk.GroupVersion().String())
}

var (
	partial     = metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata")
	partialList = metav1.SchemeGroupVersion.WithKind("PartialObjectMetadataList")
)

func isStatus(gvk schema.GroupVersionKind) bool {
	return gvk == schema.GroupVersionKind{Version: "v1", Kind: "Status"}
}

// sharedMetadata makes the typed objects of a collection share the bytes of equal strings in their
// metadata: namespaces, labels, annotations, owners, and above all the managed fields: all pods of
// a Deployment have the same.
//
// It remembers what it has seen. When that is too much, it forgets all of it, so that its memory is
// bounded.
type sharedMetadata struct {
	stringsAlone bool // and not the bytes of managed fields

	mu     sync.Mutex
	texts  map[string]string
	fields map[string][]byte
}

const (
	maxSharedTexts  = 4096
	maxSharedText   = 256 // bytes
	maxSharedFields = 256
	maxSharedField  = 16 << 10 // bytes
)

func newSharedMetadata() *sharedMetadata {
	return &sharedMetadata{texts: map[string]string{}, fields: map[string][]byte{}}
}

// share makes obj share its strings with the objects before it.
func (s *sharedMetadata) share(obj runtime.Object) {
	accessor, ok := obj.(metav1.ObjectMetaAccessor)
	if !ok {
		return
	}
	m, _ := accessor.GetObjectMeta().(*metav1.ObjectMeta)
	if m == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m.Namespace = s.text(m.Namespace)
	m.GenerateName = s.text(m.GenerateName)
	for _, texts := range []map[string]string{m.Labels, m.Annotations} {
		for key, value := range texts {
			texts[s.text(key)] = s.text(value)
		}
	}
	for i := range m.OwnerReferences {
		o := &m.OwnerReferences[i]
		o.APIVersion, o.Kind, o.Name = s.text(o.APIVersion), s.text(o.Kind), s.text(o.Name)
		o.UID = types.UID(s.text(string(o.UID)))
	}
	for i := range m.ManagedFields {
		f := &m.ManagedFields[i]
		f.Manager, f.APIVersion = s.text(f.Manager), s.text(f.APIVersion)
		f.FieldsType, f.Subresource = s.text(f.FieldsType), s.text(f.Subresource)
		f.Operation = metav1.ManagedFieldsOperationType(s.text(string(f.Operation)))
		if f.FieldsV1 != nil && !s.stringsAlone {
			s.managed(f.FieldsV1)
		}
	}
}

func (s *sharedMetadata) text(t string) string {
	if len(t) == 0 || len(t) > maxSharedText {
		return t
	}
	if shared, ok := s.texts[t]; ok {
		return shared
	}
	if len(s.texts) == maxSharedTexts {
		clear(s.texts)
	}
	s.texts[t] = t
	return t
}

func (s *sharedMetadata) managed(f *metav1.FieldsV1) {
	//lint:ignore SA1019 what replaces it is newer than the oldest client-go this compiles with
	raw := &f.Raw
	if len(*raw) > maxSharedField {
		return
	}
	if shared, ok := s.fields[string(*raw)]; ok {
		*raw = shared
		return
	}
	if len(s.fields) == maxSharedFields {
		clear(s.fields)
	}
	s.fields[string(*raw)] = *raw
}
