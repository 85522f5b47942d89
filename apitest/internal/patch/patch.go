// SPDX-License-Identifier: Apache-2.0

// Package patch applies patches to JSON documents, with the errors of a real server.
//
// Read patch.go, then strategic.go.
//
// There are no goroutines. The limit of what a JSON patch copies is that of the process.
//
// To see it work: go test -run Patch ./apitest/internal/patch
package patch

import (
	"fmt"
	"net/http"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

const (
	maxPatchOperations = 10_000
	maxCopied          = 3 << 20 // bytes that all "copy" operations of one JSON patch copy
)

// Each copy may double the object: thirty of them would take all memory of the process. The limit
// is the real server's, and as there it is one for all users of the library in the process.
func init() { jsonpatch.AccumulatedCopySizeLimit = maxCopied }

// JSON applies a JSON patch.
func JSON(doc, patch []byte) ([]byte, error) {
	operations, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	if len(operations) > maxPatchOperations {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(
			"The allowed maximum operations in a JSON patch is %d, got %d", maxPatchOperations,
			len(operations)))
	}
	after, err := operations.Apply(doc)
	if err != nil {
		return nil, apierrors.NewGenericServerResponse(
			http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
	}
	return after, nil
}

// Merge applies a merge patch.
func Merge(doc, patch []byte) ([]byte, error) {
	var before, changes map[string]any
	if err := utiljson.Unmarshal(patch, &changes); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	if changes == nil { // the patch is null
		return nil, apierrors.NewBadRequest(jsonpatch.ErrBadJSONPatch.Error())
	}
	if err := utiljson.Unmarshal(doc, &before); err != nil {
		return nil, err
	}
	mergeFields(before, changes)
	return utiljson.Marshal(before)
}

// mergeFields applies a merge patch to doc, with the result of json-patch's MergePatch, which the
// real server uses, but in linear time: MergePatch decodes each object once per object around it.
func mergeFields(doc, changes map[string]any) {
	for name, value := range changes {
		if value == nil {
			delete(doc, name)
			continue
		}
		inner, isObject := doc[name].(map[string]any)
		change, merges := value.(map[string]any)
		switch {
		case isObject && merges:
			mergeFields(inner, change)
			continue
		case !isObject:
			pruneNulls(value)
		}
		doc[name] = value
	}
}

// pruneNulls removes the fields that are null from a value.
func pruneNulls(value any) {
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			if inner == nil {
				delete(value, name)
			} else {
				pruneNulls(inner)
			}
		}
	case []any:
		for _, inner := range value {
			pruneNulls(inner)
		}
	}
}
