// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
)

var (
	unmarshaler     = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// readsPlainly reports whether encoding/json/v2 decodes objects of type t, see isPlain. v2 is not
// used for an Unstructured: it scans the text before it calls UnmarshalJSON, which scans it again.
func readsPlainly(t reflect.Type) bool {
	return !HasUnmarshaler(t) && isPlain(t, map[reflect.Type]bool{})
}

// isPlain reports whether each JSON text that v2 decodes into t has the same result as with the
// decoder of Kubernetes. Both call UnmarshalJSON and UnmarshalText, so a type with one of them is
// plain whatever it contains.
func isPlain(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return true
	}
	seen[t] = true
	switch t {
	case reflect.TypeFor[time.Time](), reflect.TypeFor[time.Duration](),
		reflect.TypeFor[json.Number]():
		return false // v2 has rules for these types
	}
	pointer := reflect.PointerTo(t)
	switch {
	case pointer.Implements(reflect.TypeFor[jsonv2.UnmarshalerFrom]()):
		return false // a method that only v2 calls
	case HasUnmarshaler(t):
		return t.Name() != "" // only v2 looks for methods of an unnamed struct
	}
	switch t.Kind() {
	case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return true
	case reflect.Pointer: // only v2 looks for methods behind a named one
		return t.Name() == "" && isPlain(t.Elem(), seen)
	case reflect.Slice:
		// A slice of bytes is base64 in both, unless its elements have a type of their own.
		return (t.Elem().Kind() != reflect.Uint8 || t.Elem() == reflect.TypeFor[byte]()) &&
			isPlain(t.Elem(), seen)
	case reflect.Map:
		return t.Key().Kind() == reflect.String && !HasUnmarshaler(t.Key()) &&
			isPlain(t.Key(), seen) && isPlain(t.Elem(), seen)
	case reflect.Struct:
		return isPlainStruct(t, map[string]bool{}, seen)
	default: // an interface, for example, in which numbers differ; or an array
		return false
	}
}

// HasUnmarshaler reports whether t has a decoder of its own for JSON.
func HasUnmarshaler(t reflect.Type) bool {
	pointer := reflect.PointerTo(t)
	return pointer.Implements(unmarshaler) || pointer.Implements(textUnmarshaler)
}

// isPlainStruct reports whether the fields of t have the same names in both decoders, and plain
// types. names has those of the structs that embed t.
func isPlainStruct(t reflect.Type, names map[string]bool, seen map[reflect.Type]bool) bool {
	for i := range t.NumField() {
		field := t.Field(i)
		tag, tagged := field.Tag.Lookup("json")
		name, options, _ := strings.Cut(tag, ",")
		switch {
		case tag == "-":
			continue
		case !field.IsExported():
			if tagged || field.Anonymous {
				return false
			}
			continue
		case field.Anonymous && name == "":
			if options != "" && options != "inline" || HasUnmarshaler(field.Type) ||
				field.Type.Kind() != reflect.Struct || !isPlainStruct(field.Type, names, seen) {
				return false
			}
			continue
		case !slices.Contains([]string{"", "omitempty", "omitzero", "omitempty,omitzero"}, options):
			return false // ",string", for example
		}
		if name == "" {
			name = field.Name
		}
		if names[name] || strings.ContainsFunc(name, isUnusualInNames) ||
			!isPlain(field.Type, seen) {
			return false
		}
		names[name] = true
	}
	return true
}

// isUnusualInNames reports whether c may have a meaning in the tags of one decoder.
func isUnusualInNames(c rune) bool {
	return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') &&
		!strings.ContainsRune("-_.$", c)
}
