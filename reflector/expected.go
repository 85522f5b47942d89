// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
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

// errTable rejects a Table, which is a rendering of objects for people, not an object.
var errTable = errors.New("a Table cannot be cached: do not ask the server for that format")

// check reports an object of a watch event that cannot be meant for the store.
func (e expected) check(obj runtime.Object) error {
	if got := reflect.TypeOf(obj); e.goType != nil && got != e.goType {
		return fmt.Errorf("expected %v, got %v", e.goType, got)
	}
	if obj == nil || reflect.ValueOf(obj).IsZero() {
		return errNilResult
	}
	switch obj.(type) {
	case *metav1.Table:
		return errTable
	case *unstructured.Unstructured:
		if got := obj.GetObjectKind().GroupVersionKind(); !e.gvk.Empty() && got != e.gvk {
			return fmt.Errorf("expected %v, got %v", e.gvk, got)
		}
		if isTable(obj) {
			return errTable
		}
	}
	return nil
}

// checkItem reports an item of a list that cannot be meant for the store. Unlike an event, it need
// not say its kind.
func (e expected) checkItem(obj runtime.Object) error {
	if got := reflect.TypeOf(obj); e.goType != nil && got != e.goType {
		return fmt.Errorf("understand list item: expected %v, got %v", e.goType, got)
	}
	if !e.gvk.Empty() {
		if got := obj.GetObjectKind().GroupVersionKind(); !got.Empty() && got != e.gvk {
			return fmt.Errorf("understand list item: expected %v, got %v", e.gvk, got)
		}
	}
	return nil
}

// checkList reports a list of something else. Its items are checked one by one, so this matters for
// an empty one, which would empty the store.
func (e expected) checkList(list runtime.Object) error {
	if isTable(list) {
		gvk := list.GetObjectKind().GroupVersionKind()
		return fmt.Errorf("unsupported list %v: %w", gvk, errTable)
	}
	if u, ok := list.(*unstructured.UnstructuredList); ok {
		got := u.GroupVersionKind()
		isDiscovery := got.Group == "" && slices.Contains(discoveryKinds, got.Kind)
		isOther := len(u.Items) == 0 && !e.gvk.Empty() && !got.Empty() && !e.isListKind(got)
		if isDiscovery || isOther {
			return fmt.Errorf("expected a list of %v, got %v", e.describe(), got)
		}
		return nil
	}
	items, err := meta.GetItemsPtr(list)
	if err != nil {
		return err
	}
	item := reflect.PointerTo(reflect.TypeOf(items).Elem().Elem())
	if e.goType != nil && item != e.goType && item.Implements(reflect.TypeFor[runtime.Object]()) {
		return fmt.Errorf("expected a list of %v, got one of %v", e.goType, item)
	}
	return nil
}

// isListKind reports whether an empty list of kind list may be one of e. A custom resource may call
// its list by a name of its own, which is not known here, but seldom ends in "List".
func (e expected) isListKind(list schema.GroupVersionKind) bool {
	if list.GroupVersion() != e.gvk.GroupVersion() {
		return false
	}
	isOwnName := list.Kind != "" && list.Kind != e.gvk.Kind && !strings.HasSuffix(list.Kind, "List")
	return list.Kind == e.gvk.Kind+"List" || isOwnName
}

// discoveryKinds are answers about what a server has. They are in group "".
var discoveryKinds = []string{"APIResourceList", "APIGroupList", "APIGroup", "APIVersions"}

// isTable recognizes a Table, decoded or not.
func isTable(obj runtime.Object) bool {
	switch obj.(type) {
	case *metav1.Table:
		return true
	case *unstructured.Unstructured, *unstructured.UnstructuredList:
		gvk := obj.GetObjectKind().GroupVersionKind()
		return gvk.Group == metav1.GroupName && gvk.Kind == "Table"
	}
	return false
}
