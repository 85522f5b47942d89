// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
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
	return !hasUnmarshaler(t) && isPlain(t, map[reflect.Type]bool{})
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
	case hasUnmarshaler(t):
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
		return t.Key().Kind() == reflect.String && !hasUnmarshaler(t.Key()) &&
			isPlain(t.Key(), seen) && isPlain(t.Elem(), seen)
	case reflect.Struct:
		return isPlainStruct(t, map[string]bool{}, seen)
	default: // an interface, for example, in which numbers differ; or an array
		return false
	}
}

func hasUnmarshaler(t reflect.Type) bool {
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
			if options != "" && options != "inline" || hasUnmarshaler(field.Type) ||
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

// trust decides whether v2 is asked for an object. If v2 refuses a valid one, its type may be the
// reason, or the object alone. So v2 then rests for one object, after a second refusal in a row for
// two, then for four, up to maxRest. An odd object costs the others little, and a type that v2
// always refuses costs a hundredth more than without v2.
type trust struct {
	rest atomic.Int32 // objects for which v2 is not asked
	next atomic.Int32 // the rest after the next refusal, if not 0
}

const maxRest = 128 // objects

// asked reports whether v2 is asked for the next object. It is, if next is 0.
func (t *trust) asked() bool { return t.rest.Add(-1) < 0 }

// refused notes that v2 has refused a valid object.
func (t *trust) refused() {
	rest := max(t.next.Load(), 1)
	t.rest.Store(rest)
	t.next.Store(min(2*rest, maxRest))
}

// accepted notes that v2 has decoded an object.
func (t *trust) accepted() { t.next.Store(0) }
