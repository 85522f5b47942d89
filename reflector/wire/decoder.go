// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// decoder decodes JSON and protobuf into objects that newObject makes.
type decoder struct {
	expected
	newObject NewObject
	metadata  *sharedMetadata
	jsons     *jsonDecoder
	protobufs bool // the objects can be read from protobuf
}

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
		newObject: newObject, expected: newExpected(obj, options), metadata: newSharedMetadata(),
		jsons: newJSONDecoder(reflect.TypeOf(obj).Elem()), protobufs: readsProtobuf(obj),
	}
}

// json decodes an item of a list.
func (d decoder) json(raw []byte) (runtime.Object, error) {
	obj, err := d.jsons.decode(raw, d.newObject)
	if err != nil {
		return nil, fmt.Errorf("decode %T: %w", obj, err)
	}
	d.metadata.share(obj)
	return obj, nil
}

// protobuf decodes an object or item without its envelope.
func (d decoder) protobuf(raw []byte) (runtime.Object, error) {
	obj := d.newObject()
	if !d.protobufs {
		return nil, fmt.Errorf("decode %T: it is not read from protobuf", obj)
	}
	if err := obj.(protobufObject).Unmarshal(raw); err != nil {
		return nil, fmt.Errorf("decode %T: %w", obj, err)
	}
	d.metadata.share(obj)
	return obj, nil
}

// jsonEvent decodes the object of an event. A typed one has no kind then, as with typed clients.
func (d decoder) jsonEvent(f frame, raw []byte) (runtime.Object, error) {
	if f.event == watch.Error {
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
	if err != nil || !isStatus(obj.GroupVersionKind()) {
		return obj, err
	}
	status := &metav1.Status{}
	err = unmarshal(raw, status)
	status.TypeMeta = metav1.TypeMeta{}
	return status, err
}

// protobufEvent decodes the object of an event. Its envelope has said its kind.
func (d decoder) protobufEvent(f frame, raw []byte) (runtime.Object, error) {
	switch gvk := f.of.GroupVersionKind(); {
	case gvk.Kind == "" || gvk.Version == "":
		return nil, errNoKind
	case isStatus(gvk):
		return protobufStatus(raw)
	case d.accepts(gvk):
		return d.protobuf(raw)
	}
	other := &unstructured.Unstructured{} // its fields are unknown
	other.SetAPIVersion(f.of.APIVersion)
	other.SetKind(f.of.Kind)
	return other, nil
}

func protobufStatus(raw []byte) (*metav1.Status, error) {
	status := &metav1.Status{}
	if err := status.Unmarshal(raw); err != nil {
		return nil, fmt.Errorf("decode %T: %w", status, err)
	}
	return status, nil
}
