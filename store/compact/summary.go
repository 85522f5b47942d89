// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"fmt"
	"reflect"

	"example.com/informerstack/internal/helpers/objects"
)

// Summarized is satisfied by pointers to structs that embed Meta.
type Summarized interface {
	comparable
	kept
}

// Summary returns the form that gives readers the result of summarize for each object: a pointer to
// a struct of the program's own, with the fields that the program reads.
//
//	type podSummary struct {
//		compact.Meta
//		Node  string
//		Phase corev1.PodPhase
//	}
//
// The store keeps a copy of the struct, with Meta set: summarize may return one struct for several
// objects. The result must not point into the object, which would stay in memory, except to
// strings, slices and maps of its fields. summarize must not change the object, and runs once for
// each object received, in one goroutine at a time.
func Summary[T any, S Summarized](summarize func(obj T) S) Projection[T, S] {
	return Projection[T, S]{project: func(obj T, meta Meta) (S, error) {
		s := summarize(obj)
		if objects.IsNil(s) {
			return s, fmt.Errorf("summary of a %T is nil", obj)
		}
		v := reflect.ValueOf(s)
		if v.Kind() != reflect.Pointer {
			return s, fmt.Errorf("summary of a %T is a %T, not a pointer", obj, s)
		}
		own := reflect.New(v.Type().Elem())
		own.Elem().Set(v.Elem())
		copied := own.Interface().(S)
		if copied.meta() == s.meta() {
			return s, fmt.Errorf("summary %T embeds a pointer to a Meta, not a Meta", s)
		}
		*copied.meta() = meta
		return copied, nil
	}}
}
