// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// protobufObject is a type with generated code for protobuf.
type protobufObject interface {
	runtime.Object
	Size() int
	MarshalToSizedBuffer(data []byte) (int, error)
	Unmarshal(data []byte) error
}

var protobuf = reflect.TypeFor[protobufObject]()

// inProtobuf reports whether a type of objects has generated code for protobuf that encodes all
// fields, except the object's kind. Such code leaves out fields without a tag: the kind of a claim
// in a StatefulSet, for example, which a server sends in JSON. The kind of an embedded object is
// left out too, so its methods do not encode the outer type. A struct without any tagged field,
// such as metav1.Time, is encoded by methods that are written by hand.
func inProtobuf(typ reflect.Type) bool {
	if !typ.Implements(protobuf) {
		return false
	}
	structs := map[reflect.Type]bool{}
	addStructs(typ, structs)
	for t := range structs {
		tagged, omitted := false, false
		for i := range t.NumField() {
			field := t.Field(i)
			if tag := field.Tag.Get("protobuf"); tag != "" && tag != "-" {
				tagged = true
			} else if t != typ.Elem() || field.Type != reflect.TypeFor[metav1.TypeMeta]() {
				omitted = true
			}
		}
		if tagged && omitted {
			return false
		}
	}
	return true
}

// addStructs adds t, and the types in it, to structs, as far as they are structs.
func addStructs(t reflect.Type, structs map[reflect.Type]bool) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		addStructs(t.Elem(), structs)
	case reflect.Struct:
		if structs[t] {
			return
		}
		structs[t] = true
		for i := range t.NumField() {
			addStructs(t.Field(i).Type, structs)
		}
	}
}

// kindLines is the number of lines before an object in protobuf.
const kindLines = 3

// marshalProtobuf encodes o into buffer, after three lines with its kind, which the encoding does
// not contain.
func marshalProtobuf(o protobufObject, buffer *[]byte) error {
	kind := o.GetObjectKind().GroupVersionKind()
	header := kind.Group + "\n" + kind.Version + "\n" + kind.Kind + "\n"
	if strings.Count(header, "\n") != kindLines {
		return fmt.Errorf("kind %q has a line end", kind)
	}
	size := o.Size()
	*buffer = slices.Grow(append((*buffer)[:0], header...), size)[:len(header)+size]
	n, err := o.MarshalToSizedBuffer((*buffer)[len(header):])
	if err == nil && n != size {
		err = fmt.Errorf("encoded %d bytes, not %d", n, size)
	}
	return err
}

func unmarshalProtobuf(encoded []byte, o protobufObject) error {
	lines := bytes.SplitN(encoded, []byte("\n"), kindLines+1)
	err := o.Unmarshal(lines[kindLines])
	o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{
		Group: string(lines[0]), Version: string(lines[1]), Kind: string(lines[2])})
	// A quantity remembers its text from the first call that needs it, as Size does: two objects
	// that were decoded from the same bytes are deeply equal, encoded again or not.
	o.Size()
	return err
}
