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

// kind is what the objects of an answer must be. An object of another group, version or kind
// could lose fields, and an empty list of another kind would empty a store.
//
//	K1  an object that says its apiVersion or kind is judged by them, wherever it comes from
//	K2  an item that does not is judged by its list, once the list has said what it is
//	K3  an empty list is judged by its own kind
type kind struct {
	of       schema.GroupVersionKind // Kind "" is any kind, Version "" any group and version
	list     string                  // kind of the list; "" is Kind + "List"
	metadata bool                    // the server may send the metadata alone
}

var (
	errNoKind  = errors.New("the object has no apiVersion or no kind")
	errNoItems = errors.New(`the answer has no field "items"`)
)

// kindOf returns the kind of objects of type t.
func kindOf(t reflect.Type, options Options) kind {
	k := kind{of: options.Kind, list: options.ListKind}
	k.metadata = t == reflect.TypeFor[metav1.PartialObjectMetadata]()
	isFree := k.metadata || t == reflect.TypeFor[unstructured.Unstructured]()
	if k.of.Kind == "" && !isFree {
		k.of.Kind = t.Name()
	}
	return k
}

// accepts reports whether an object may be one of the collection.
func (k kind) accepts(gvk schema.GroupVersionKind) bool {
	if k.metadata && gvk == partial {
		return true
	}
	return (k.of.Version == "" || gvk.GroupVersion() == k.of.GroupVersion()) &&
		(k.of.Kind == gvk.Kind || k.of.Kind == "" && !isStatus(gvk))
}

// checkItem returns an error if the item of a list says that it is something else. bare reports
// whether it has no apiVersion and no kind.
func (k kind) checkItem(obj runtime.Object) (bare bool, err error) {
	gvk := obj.GetObjectKind().GroupVersionKind()
	if u, ok := obj.(*unstructured.Unstructured); ok {
		bare = u.GetAPIVersion() == "" && u.GetKind() == ""
	} else {
		bare = gvk.Empty()
	}
	if bare || k.accepts(gvk) {
		return bare, nil
	}
	return false, fmt.Errorf("expected an item of kind %s, got %s", describe(k.of), describe(gvk))
}

// isKnown reports whether enough of a list's head is known to check it.
func (k kind) isKnown(head metav1.TypeMeta) bool {
	return head.Kind != "" && (head.APIVersion != "" || k.of.Version == "")
}

// checkList returns an error if a list with this head cannot be the list of bare items, or an empty
// one.
func (k kind) checkList(head metav1.TypeMeta) error {
	gvk := head.GroupVersionKind()
	if k.metadata && gvk == partialList {
		return nil
	}
	want := k.of
	switch {
	case k.list != "":
		want.Kind = k.list
	case k.of.Kind != "":
		want.Kind += "List"
	case strings.HasSuffix(gvk.Kind, "List"):
		want.Kind = gvk.Kind
	default:
		want.Kind = "…List"
	}
	if gvk.Kind == want.Kind && (k.of.Version == "" || gvk.GroupVersion() == want.GroupVersion()) {
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
