// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// path is the way to a field, by the names in JSON:
//
//	spec.nodeName
//	metadata.annotations['example.com/owner']   a key that is no name
//	spec.containers[*].image                    of each element: a list of values
type path []step

// step leads from a value to one in it. The zero value leads to each element of a list.
type step struct{ name string }

var each = step{}

func parsePath(text string) (path, error) {
	var p path
	for rest := text; rest != ""; {
		s, after, ok := parseStep(rest, len(p) == 0)
		if !ok {
			return nil, fmt.Errorf("path %q: cannot read %q: write it like"+
				" spec.containers[*].image or metadata.labels['app']", text, rest)
		}
		p, rest = append(p, s), after
	}
	if len(p) == 0 {
		return nil, fmt.Errorf("path is empty")
	}
	return p, nil
}

// parseStep cuts the first step off text.
func parseStep(text string, first bool) (s step, rest string, ok bool) {
	if key, isKey := strings.CutPrefix(text, "['"); isKey {
		name, rest, closed := strings.Cut(key, "']")
		return step{name}, rest, closed && name != ""
	}
	if rest, isEach := strings.CutPrefix(text, "[*]"); isEach {
		return each, rest, !first
	}
	if !first {
		var dotted bool
		if text, dotted = strings.CutPrefix(text, "."); !dotted {
			return step{}, "", false
		}
	}
	end := strings.IndexAny(text, ".[")
	if end < 0 {
		end = len(text)
	}
	return step{text[:end]}, text[end:], end > 0 && !strings.ContainsAny(text[:end], "]'* ")
}

// checkType returns an error if objects of type t cannot have the path. A map may have any key, and
// of an interface nothing is known.
func (p path) checkType(t reflect.Type) error {
	for _, s := range p {
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if t == unstructuredType || t.Kind() == reflect.Interface {
			return nil
		}
		switch {
		case s == each && t.Kind() == reflect.Slice,
			s != each && t.Kind() == reflect.Map && t.Key().Kind() == reflect.String:
			t = t.Elem()
			continue
		case t.Kind() == reflect.Struct && !marshalsItself(t):
			if field, ok := jsonField(t, s.name); ok {
				t = field.Type
				continue
			}
		}
		if s == each {
			return fmt.Errorf("%v is no list", t)
		}
		return fmt.Errorf("%v has no field %q", t, s.name)
	}
	return nil
}

// value returns the value at the path in v, or nil if a value on the way is not set. It returns a
// pointer if it can, because MarshalJSON may be a method of that.
func (p path) value(v reflect.Value) any {
	for i, s := range p {
		for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
			if v.Type() == reflect.PointerTo(unstructuredType) {
				v = reflect.ValueOf(v.Interface().(*unstructured.Unstructured).Object)
				break
			}
			v = v.Elem()
		}
		if s == each && v.Kind() == reflect.Slice {
			values := make([]any, v.Len())
			for n := range values {
				values[n] = p[i+1:].value(v.Index(n))
			}
			return values
		}
		switch v.Kind() {
		case reflect.Map:
			v = v.MapIndex(reflect.ValueOf(s.name).Convert(v.Type().Key()))
		case reflect.Struct:
			field, ok := jsonField(v.Type(), s.name)
			if !ok {
				return nil
			}
			v, _ = v.FieldByIndexErr(field.Index) // the zero Value in an embedded nil pointer
		default:
			return nil
		}
	}
	switch {
	case !v.IsValid():
		return nil
	case v.CanAddr():
		return v.Addr().Interface()
	}
	return v.Interface()
}

var (
	unstructuredType = reflect.TypeFor[unstructured.Unstructured]()
	marshaler        = reflect.TypeFor[json.Marshaler]()
)

// marshalsItself reports whether a struct has another form in JSON than that of its fields, such as
// a quantity or a time.
func marshalsItself(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(marshaler)
}

// jsonField returns the field that has a name in JSON. An embedded struct without a name of its own
// adds its fields to those of t; the least deep field wins.
func jsonField(t reflect.Type, name string) (reflect.StructField, bool) {
	key := fieldKey{t, name}
	if found, ok := jsonFields.Load(key); ok {
		return found.(reflect.StructField), true
	}
	seen := map[reflect.Type]bool{} // a type may embed itself
	for inlined := []reflect.StructField{{Type: t}}; len(inlined) > 0; inlined = inlined[1:] {
		outer := inlined[0]
		for i := range outer.Type.NumField() { // Type.Fields allocates in every call
			field := outer.Type.Field(i)
			field.Index = append(slices.Clip(outer.Index), field.Index...)
			tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			inner := field.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			switch {
			case tag == "" && field.Anonymous && inner.Kind() == reflect.Struct:
				if seen[inner] {
					continue
				}
				seen[inner] = true
				inlined = append(inlined, reflect.StructField{Type: inner, Index: field.Index})
			case cmp.Or(tag, field.Name) == name && field.IsExported():
				jsonFields.Store(key, field)
				return field, true
			}
		}
	}
	return reflect.StructField{}, false
}

// jsonFields remembers what jsonField has found, because the search is slow.
var jsonFields sync.Map // of reflect.StructField by fieldKey

type fieldKey struct {
	typ  reflect.Type
	name string
}
