// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 the replacement of Raw is newer than the oldest client-go of this module

package answers

import (
	"fmt"
	"math/rand"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/meta"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
)

// Collection is a kind of objects that a server lists.
type Collection struct {
	Kind     schema.GroupVersionKind
	Of, List reflect.Type
}

// New returns an empty object of a type.
func New(t reflect.Type) runtime.Object { return reflect.New(t).Interface().(runtime.Object) }

// Collections are all kinds of k8s.io/api that have lists.
func Collections() (all []Collection) {
	types := scheme.Scheme.AllKnownTypes()
	for gvk, of := range types {
		list, ok := types[gvk.GroupVersion().WithKind(gvk.Kind+"List")]
		if _, isObject := New(of).(metav1.Object); ok && isObject {
			all = append(all, Collection{gvk, of, list})
		}
	}
	return all
}

// Fuzzed returns a list of random objects, and the objects.
func (c Collection) Fuzzed(t *testing.T, seed int64) (list runtime.Object, items []runtime.Object) {
	fill := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(seed), scheme.Codecs)
	for range 3 {
		obj := New(c.Of)
		fill.Fill(obj)
		managed := []metav1.ManagedFieldsEntry{{
			Manager: "m", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{}}`)},
		}}
		obj.(metav1.Object).SetManagedFields(managed)
		items = append(items, obj)
	}
	list = New(c.List)
	require.NoError(t, meta.SetList(list, items))
	list.(metav1.ListInterface).SetResourceVersion("5")
	list.GetObjectKind().SetGroupVersionKind(c.Kind.GroupVersion().WithKind(c.Kind.Kind + "List"))
	for _, obj := range items {
		obj.GetObjectKind().SetGroupVersionKind(c.Kind)
	}
	return list, items
}

// Owned is a pod. Only its name depends on i.
func Owned(i int) *v1.Pod {
	text := func(s string) string { return strings.Clone(s) }
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprint("a-", i), Namespace: text("default"),
		Labels:      map[string]string{text("app"): text("web")},
		Annotations: map[string]string{text("note"): text("short")},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: text("apps/v1"), Kind: text("ReplicaSet"), Name: text("a"),
			UID: types.UID(text("1-2-3")),
		}},
		GenerateName: text("a-"),
		ManagedFields: []metav1.ManagedFieldsEntry{{
			Manager: text("kubelet"), FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{}}`)},
			APIVersion: text("v1"), FieldsType: text("FieldsV1"), Subresource: text("status"),
			Operation: metav1.ManagedFieldsOperationType(text("Update")),
		}, {Manager: text("without fields")}},
	}}
}
