// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"cmp"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/internal/decode"
)

// decoder decodes the objects of a collection, and finds those of another kind.
type decoder struct {
	*decode.Decoder
	kind
}

func newDecoder(newObject NewObject, options Options) decoder {
	d := decode.New(newObject, decode.NewShared())
	return decoder{d, kindOf(d.Type, options)}
}

// jsonEvent decodes the object of an event. A typed one has no kind then, as with typed clients.
func (d decoder) jsonEvent(event watch.EventType, raw []byte) (runtime.Object, error) {
	if event == watch.Error {
		return otherKind(raw)
	}
	obj, err := d.JSON(raw)
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
	err := decode.Unmarshal(raw, obj)
	if !isStatus(obj.GroupVersionKind()) {
		return obj, err
	}
	status := &metav1.Status{}
	err = decode.Unmarshal(raw, status)
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
		return d.Protobuf(raw)
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
