// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// expected is what the objects of an answer must be. An object of another group, version or kind
// could lose fields, and an empty list of another kind would empty a store.
//
//	K1  an object that says its apiVersion or kind is judged by them, wherever it comes from
//	K2  an item that does not is judged by its list, once the list has said what it is
//	K3  an empty list is judged by its own kind
type expected struct {
	of       schema.GroupVersionKind // Kind "" is any kind, Version "" any group and version
	list     string                  // kind of the list; "" is Kind + "List"
	metadata bool                    // the server may send the metadata alone
}

var (
	errNoKind  = errors.New("the object has no apiVersion or no kind")
	errNoItems = errors.New(`the answer has no field "items"`)
)

func newExpected(obj runtime.Object, options Options) expected {
	e := expected{of: options.Kind, list: options.ListKind}
	switch obj.(type) {
	case *unstructured.Unstructured:
	case *metav1.PartialObjectMetadata:
		e.metadata = true
	default:
		if e.of.Kind == "" {
			e.of.Kind = reflect.TypeOf(obj).Elem().Name()
		}
	}
	return e
}

// accepts reports whether an object may be one of the collection.
func (e expected) accepts(gvk schema.GroupVersionKind) bool {
	if e.metadata && gvk == partial {
		return true
	}
	return (e.of.Version == "" || gvk.GroupVersion() == e.of.GroupVersion()) &&
		(e.of.Kind == gvk.Kind || e.of.Kind == "" && !isStatus(gvk))
}

// checkItem returns an error if the item of a list says that it is something else. bare is an item
// that says nothing.
func (e expected) checkItem(obj runtime.Object) (bare bool, err error) {
	gvk := obj.GetObjectKind().GroupVersionKind()
	if u, ok := obj.(*unstructured.Unstructured); ok {
		bare = u.GetAPIVersion() == "" && u.GetKind() == ""
	} else {
		bare = gvk.Empty()
	}
	if bare || e.accepts(gvk) {
		return bare, nil
	}
	return false, fmt.Errorf("expected an item of kind %s, got %s", describe(e.of), describe(gvk))
}

// isKnown reports whether enough of a list's head is known to check it.
func (e expected) isKnown(head metav1.TypeMeta) bool {
	return head.Kind != "" && (head.APIVersion != "" || e.of.Version == "")
}

// checkList returns an error if a list with this head cannot be the list of bare items, or an empty
// one.
func (e expected) checkList(head metav1.TypeMeta) error {
	gvk := head.GroupVersionKind()
	if e.metadata && gvk == partialList {
		return nil
	}
	want := e.of
	switch {
	case e.list != "":
		want.Kind = e.list
	case e.of.Kind != "":
		want.Kind += "List"
	case strings.HasSuffix(gvk.Kind, "List"):
		want.Kind = gvk.Kind
	default:
		want.Kind = "…List"
	}
	if gvk.Kind == want.Kind && (e.of.Version == "" || gvk.GroupVersion() == want.GroupVersion()) {
		return nil
	}
	return fmt.Errorf("expected a list of kind %s, got %s", describe(want), describe(gvk))
}

// describe quotes gvk, which a server may have sent.
func describe(gvk schema.GroupVersionKind) string {
	if gvk.Version == "" {
		return fmt.Sprintf("%.64q", gvk.Kind)
	}
	return fmt.Sprintf("%.64q of %.64q", gvk.Kind, gvk.GroupVersion().String())
}

var (
	partial     = metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata")
	partialList = metav1.SchemeGroupVersion.WithKind("PartialObjectMetadataList")
)

func isStatus(gvk schema.GroupVersionKind) bool {
	return gvk == schema.GroupVersionKind{Version: "v1", Kind: "Status"}
}
