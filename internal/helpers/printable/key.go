// SPDX-License-Identifier: Apache-2.0

package printable

import (
	"fmt"
	"reflect"
	"strings"
)

// Key returns a short text for an item of a queue: what %v prints of it, if it is a text, a number
// or a struct of them, also with a String method. It follows no pointer: the program may change
// the target meanwhile, which may be an object with values. A pointer is its type and address.
func Key(item any) string {
	if text, ok := item.(string); ok {
		return Short(text)
	}
	return Short(keyText(reflect.ValueOf(item)))
}

// Canonical returns the form "namespace/name", or "name", of the text of a key: "/name" and
// "{ name}" have no namespace, and "{namespace name}" is a struct of both. Other texts stay as they
// are.
func Canonical(text string) string {
	if inner, ok := strings.CutPrefix(text, "{"); ok && strings.HasSuffix(inner, "}") {
		namespace, name, ok := strings.Cut(strings.TrimSuffix(inner, "}"), " ")
		if ok && name != "" && !strings.ContainsAny(namespace+name, " /{}") {
			text = namespace + "/" + name
		}
	}
	return strings.TrimPrefix(text, "/")
}

// KeyOf is Key, and allocates nothing for a text.
func KeyOf[K comparable](item K) string {
	if text, ok := any(item).(string); ok {
		return Short(text)
	}
	return Key(item)
}

func keyText(v reflect.Value) string {
	switch {
	case !v.IsValid():
		return "<nil>"
	case isPlain(v.Type()):
		return fmt.Sprint(v) // of what it holds
	}
	switch v.Kind() {
	case reflect.Interface:
		return keyText(v.Elem())
	case reflect.Struct:
		fields := make([]string, v.NumField())
		for i := range fields {
			fields[i] = keyText(v.Field(i))
		}
		return "{" + strings.Join(fields, " ") + "}"
	case reflect.Pointer, reflect.Chan, reflect.UnsafePointer:
		return fmt.Sprintf("%s(%#x)", v.Type(), v.Pointer())
	}
	return v.Type().String()
}

// isPlain reports whether values of a comparable type refer to nothing but texts. A copy of a lock
// is not plain: a String method may wait for it.
func isPlain(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String:
		return true
	case reflect.Array:
		return isPlain(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if !isPlain(t.Field(i).Type) {
				return false
			}
		}
		return t.PkgPath() != "sync"
	}
	return t.Kind() >= reflect.Bool && t.Kind() <= reflect.Complex128
}
