// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"errors"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// expected is the type of objects that a reflector accepts. Its zero value accepts all.
type expected struct {
	goType reflect.Type
	gvk    schema.GroupVersionKind // of an unstructured type
}

func newExpected(example any) expected {
	e := expected{goType: reflect.TypeOf(example)}
	if u, ok := example.(*unstructured.Unstructured); ok && u != nil {
		e.gvk = u.GroupVersionKind()
	}
	return e
}

func (e expected) describe() string {
	switch {
	case e.goType == nil:
		return "<unspecified>"
	case !e.gvk.Empty():
		return e.gvk.String()
	}
	return e.goType.String()
}

// errTable explains an object that is there for people to read.
var errTable = errors.New("a Table cannot be cached: do not ask the server for that format")

// checkType reports an object of another Go type.
func (e expected) checkType(obj any) error {
	if got := reflect.TypeOf(obj); e.goType != nil && got != e.goType {
		return fmt.Errorf("expected %v, got %v", e.goType, got)
	}
	return nil
}

// check reports an object of a watch event that cannot be meant for the store.
func (e expected) check(obj runtime.Object) error {
	if err := e.checkType(obj); err != nil {
		return err
	}
	if isNil(obj) {
		return errNilResult
	}
	if !e.gvk.Empty() {
		if got := obj.GetObjectKind().GroupVersionKind(); got != e.gvk {
			return fmt.Errorf("expected %v, got %v", e.gvk, got)
		}
	}
	if isTable(obj) {
		return errTable
	}
	return nil
}

// isTable recognizes a Table, or a list of them, decoded or not.
func isTable(obj runtime.Object) bool {
	switch obj.(type) {
	case *metav1.Table:
		return true
	case *unstructured.Unstructured, *unstructured.UnstructuredList:
		gvk := obj.GetObjectKind().GroupVersionKind()
		return gvk.Group == metav1.GroupName && (gvk.Kind == "Table" || gvk.Kind == "TableList")
	}
	return false
}
