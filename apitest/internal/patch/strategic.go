// SPDX-License-Identifier: Apache-2.0

//go:build !js

package patch

import (
	"errors"
	"net/http"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
)

// Strategic applies a strategic merge patch to an object of a built-in kind. It merges lists by the
// tags of the Go type: that of typed, or that of client-go if typed is nil. client-go does not have
// CustomResourceDefinition: outside of its metadata, lists are replaced.
func Strategic(doc, patch []byte, kind schema.GroupVersionKind,
	typed runtime.Object) ([]byte, error) {
	var original, changes map[string]any
	if err := utiljson.Unmarshal(doc, &original); err != nil {
		return nil, err
	}
	if err := utiljson.Unmarshal(patch, &changes); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if typed == nil && scheme.Scheme.Recognizes(kind) {
		typed, _ = scheme.Scheme.New(kind) // it is recognized
	}
	var merged map[string]any
	var err error
	if typed != nil {
		merged, err = strategicpatch.StrategicMergeMapPatch(original, changes, typed)
	} else {
		merged, err = strategicpatch.StrategicMergeMapPatchUsingLookupPatchMeta(original, changes,
			untyped{})
	}
	switch {
	case errors.Is(err, mergepatch.ErrBadJSONDoc),
		errors.Is(err, mergepatch.ErrBadPatchFormatForPrimitiveList),
		errors.Is(err, mergepatch.ErrBadPatchFormatForRetainKeys),
		errors.Is(err, mergepatch.ErrBadPatchFormatForSetElementOrderList),
		errors.Is(err, mergepatch.ErrUnsupportedStrategicMergePatchFormat):
		return nil, apierrors.NewBadRequest(err.Error())
	case err != nil:
		return nil, apierrors.NewGenericServerResponse(
			http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
	}
	return utiljson.Marshal(merged)
}

// untyped is the type of an object of which only the metadata is known.
type untyped struct{}

// Name is for error texts.
func (untyped) Name() string { return "object" }

// LookupPatchMetadataForStruct says how the object at a field is merged.
func (u untyped) LookupPatchMetadataForStruct(
	field string,
) (strategicpatch.LookupPatchMeta, strategicpatch.PatchMeta, error) {
	if field == "metadata" {
		meta := strategicpatch.PatchMetaFromStruct{T: reflect.TypeFor[metav1.ObjectMeta]()}
		return meta, strategicpatch.PatchMeta{}, nil
	}
	return u, strategicpatch.PatchMeta{}, nil
}

// LookupPatchMetadataForSlice says how the list at a field is merged.
func (u untyped) LookupPatchMetadataForSlice(
	field string,
) (strategicpatch.LookupPatchMeta, strategicpatch.PatchMeta, error) {
	return u.LookupPatchMetadataForStruct(field)
}
