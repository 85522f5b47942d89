// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"encoding/json"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var marshaler = reflect.TypeFor[json.Marshaler]()

// apart returns copies of two objects without most of what is the same in both, and without
// managedFields: the rest has the same differences, and is much smaller. Objects of other types
// than pointers to one type of struct are returned as they are.
func apart(before, after any) (any, any) {
	a, b := reflect.ValueOf(before), reflect.ValueOf(after)
	if a.Kind() != reflect.Pointer || b.Kind() != reflect.Pointer || a.Type() != b.Type() ||
		a.IsNil() || b.IsNil() || !hasFields(a.Type().Elem()) {
		return before, after
	}
	x, y := reflect.New(a.Type().Elem()), reflect.New(a.Type().Elem())
	x.Elem().Set(a.Elem())
	y.Elem().Set(b.Elem())
	field, found := a.Type().Elem().FieldByName("ObjectMeta")
	if found && len(field.Index) == 1 && field.Type == reflect.TypeFor[metav1.ObjectMeta]() {
		for _, copied := range []reflect.Value{x, y} {
			meta := copied.Elem().FieldByIndex(field.Index)
			meta.Addr().Interface().(*metav1.ObjectMeta).ManagedFields = nil
		}
	}
	dropSame(x.Elem(), y.Elem())
	return x.Interface(), y.Interface()
}

// hasFields reports whether the JSON of a type is that of the fields of a struct.
func hasFields(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && !t.Implements(marshaler) &&
		!reflect.PointerTo(t).Implements(marshaler)
}

func dropSame(a, b reflect.Value) {
	for i := range a.NumField() {
		x, y := a.Field(i), b.Field(i)
		switch {
		case !x.CanSet():
		case reflect.DeepEqual(x.Interface(), y.Interface()):
			x.SetZero()
			y.SetZero()
		case hasFields(x.Type()):
			dropSame(x, y)
		}
	}
}
