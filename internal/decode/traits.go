// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"reflect"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
)

// Traits describe the type of the objects that a Decoder makes.
type Traits struct {
	Type          reflect.Type // without its pointer
	ReadsProtobuf bool         // it can be read from protobuf
	plain         bool         // it can be read from JSON by v2
	// Decoding may call code that keeps its bytes or changes them.
	foreignJSON, foreignProtobuf bool
	foreignObject                bool // the type itself has such code
}

// knownTraits has the traits of each type that a decoder was made for. A program has few.
var knownTraits sync.Map

func traitsOf(obj runtime.Object) Traits {
	t := reflect.TypeOf(obj).Elem()
	if known, ok := knownTraits.Load(t); ok {
		return known.(Traits)
	}
	got := Traits{
		Type: t, ReadsProtobuf: readsProtobuf(obj), plain: readsPlainly(t),
		foreignJSON: mayKeepJSON(t), foreignProtobuf: mayKeepProtobuf(t),
		foreignObject: isForeign(t),
	}
	knownTraits.Store(t, got)
	return got
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
