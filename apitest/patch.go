// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/yaml"

	"example.com/informerstack/apitest/internal/patch"
)

const applyType = string(types.ApplyYAMLPatchType)

// patchTypes are the content types of the patches that the kind understands.
func (c *call) patchTypes() []string {
	types := []string{"application/json-patch+json", "application/merge-patch+json"}
	if c.resource.builtin {
		types = append(types, "application/strategic-merge-patch+json")
	}
	return append(types, applyType)
}

func (c *call) patchType() string {
	mediaType, _, _ := strings.Cut(c.http.Header.Get("Content-Type"), ";")
	return mediaType
}

func (c *call) patchTypeKnown() bool { return slices.Contains(c.patchTypes(), c.patchType()) }

// unsupportedPatchType is 415. Built-in kinds are served by another router than custom ones, with
// another message.
func (c *call) unsupportedPatchType() error {
	if c.resource.builtin {
		return genericError(http.StatusUnsupportedMediaType)
	}
	return unsupportedMediaType(c.patchTypes())
}

// patch applies the patch in the body to an object. A server-side apply creates it if it is absent.
func (c *call) patch() error {
	data, o, w, err := c.readWrite()
	if err != nil {
		return err
	}
	if c.patchType() == applyType {
		if _, err := yaml.ToJSON(data); err != nil {
			return apierrors.NewBadRequest(fmt.Sprintf("error encoding patch: %v", err))
		}
		w.apply = true
	} else if !json.Valid(data) {
		return apierrors.NewBadRequest("invalid JSON patch")
	}
	apply := func(old *version) (*object, error) {
		obj, err := c.asScale().applyPatch(old, data, &o)
		if err != nil {
			return nil, err
		}
		if uid := obj.meta.UID; old == nil && uid != "" {
			return nil, apierrors.NewConflict(c.resource.GroupResource(), c.name, fmt.Errorf(
				"uid mismatch: the provided object specified uid %s, "+
					"and no existing object was found", uid))
		}
		if err := matchNamespace(c.resource, c.namespace, &obj.meta); err != nil {
			return nil, err
		}
		return obj, c.checkName(obj)
	}
	v, created, err := c.server.update(c.target, "", w, c.rescale(w, apply))
	if err != nil {
		return err
	}
	c.writeObject(writtenCode(created), v)
	return nil
}

// applyPatch returns the object with the patch applied. Without an old object, only a server-side
// apply has one to return.
func (c *call) applyPatch(old *version, data []byte, o *metav1.PatchOptions) (*object, error) {
	var after []byte
	var err error
	switch kind := types.PatchType(c.patchType()); {
	case kind == types.ApplyYAMLPatchType:
		after, err = c.merge(old, data, o)
	case old == nil:
		err = c.notFound()
	case kind == types.JSONPatchType:
		after, err = patch.JSON(old.json, data)
	case kind == types.MergePatchType:
		after, err = patch.Merge(old.json, data)
	default:
		after, err = patch.Strategic(old.json, data, c.resource.GroupVersionKind(),
			c.server.codecs.newObject(c.resource))
	}
	if err != nil {
		return nil, err
	}
	obj, err := c.server.parse(c.resource, after)
	if err = c.allowUnknown(err, o.FieldValidation); err != nil {
		return nil, apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{
			field.Invalid(field.NewPath("patch"), string(after), err.Error()),
		})
	}
	return obj, nil
}
