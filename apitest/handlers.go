// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// body reads the body of the request.
func (c *call) body() ([]byte, error) {
	limit := c.server.options.MaxBodyBytes
	if limit < 0 {
		return io.ReadAll(c.http.Body)
	}
	data, err := io.ReadAll(io.LimitReader(c.http.Body, limit+1))
	if err == nil && int64(len(data)) > limit {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", limit))
	}
	return data, err
}

// options reads the options of a write from the query and checks them.
func options[T runtime.Object](c *call, into T, validate func(T) field.ErrorList) error {
	if err := decodeQuery(c.Query, into); err != nil {
		return err
	}
	if errs := validate(into); len(errs) > 0 {
		kind := strings.TrimPrefix(fmt.Sprintf("%T", into), "*v1.")
		return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: kind}, "", errs)
	}
	return nil
}

func isDryRun(dryRun []string) bool { return len(dryRun) > 0 }

// create stores the object in the body.
func (c *call) create() error {
	data, err := c.body()
	if err != nil {
		return err
	}
	var o metav1.CreateOptions
	if err := options(c, &o, validation.ValidateCreateOptions); err != nil {
		return err
	}
	obj, err := c.decode(data, o.FieldValidation)
	if err != nil {
		return err
	}
	t := c.target
	t.name = obj.meta.Name
	v, err := c.server.create(t, obj, write{dryRun: isDryRun(o.DryRun)})
	if err != nil {
		return err
	}
	c.writeObject(http.StatusCreated, v)
	return nil
}

// update replaces an object, or its status, by the body.
func (c *call) update() error {
	data, err := c.body()
	if err != nil {
		return err
	}
	var o metav1.UpdateOptions
	if err := options(c, &o, validation.ValidateUpdateOptions); err != nil {
		return err
	}
	body := c.asScale()
	obj, err := body.decode(data, o.FieldValidation)
	if err != nil {
		return err
	}
	if err := matchNamespace(c.resource, c.namespace, &obj.meta); err != nil {
		return err
	}
	if err := c.checkName(obj); err != nil {
		return err
	}
	replace := func(*version) (*object, error) { return obj, nil }
	v, created, err := c.server.update(c.target, obj.meta.UID, write{dryRun: isDryRun(o.DryRun)},
		c.rescale(replace))
	if err != nil {
		return err
	}
	code := http.StatusOK
	if created {
		code = http.StatusCreated
	}
	c.writeObject(code, v)
	return nil
}

func (c *call) checkName(obj *object) error {
	if obj.meta.Name == "" {
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s based on URL) was "+
			"undeterminable: name must be provided", c.name))
	}
	if obj.meta.Name != c.name {
		return apierrors.NewBadRequest(fmt.Sprintf(
			"the name of the object (%s) does not match the name on the URL (%s)", obj.meta.Name,
			c.name))
	}
	return nil
}

// deleteOptions reads the options of a delete: from the body, or else from the query.
func (c *call) deleteOptions() (*metav1.DeleteOptions, error) {
	data, err := c.body()
	if err != nil {
		return nil, err
	}
	var o metav1.DeleteOptions
	if len(data) == 0 {
		return &o, options(c, &o, validation.ValidateDeleteOptions)
	}
	if data, err = c.optionsJSON(data); err != nil {
		return nil, err
	}
	if _, err := jsonserializer.DefaultMetaFactory.Interpret(data); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if err := json.Unmarshal(data, &o); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if o.Kind != "" && o.Kind != "DeleteOptions" {
		return nil, apierrors.NewBadRequest("decoded object cannot be converted to DeleteOptions")
	}
	if errs := validation.ValidateDeleteOptions(&o); len(errs) > 0 {
		return nil, apierrors.NewInvalid(
			schema.GroupKind{Group: metav1.GroupName, Kind: "DeleteOptions"}, "", errs)
	}
	return &o, nil
}

// delete removes one object.
func (c *call) delete() error {
	o, err := c.deleteOptions()
	if err != nil {
		return err
	}
	v, details, err := c.server.delete(c.target, o, isDryRun(o.DryRun))
	switch {
	case err != nil:
		return err
	case v != nil:
		c.writeObject(http.StatusOK, v)
	default:
		writeJSON(c.w, http.StatusOK, metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Status:   metav1.StatusSuccess, Details: details,
		})
	}
	return nil
}

// deleteCollection removes the objects that a list would show, one by one, and answers with them.
func (c *call) deleteCollection() error {
	listOptions, sel, err := c.listOptions()
	if err != nil {
		return err
	}
	o, err := c.deleteOptions()
	if err != nil {
		return err
	}
	p, err := c.plan(listOptions)
	if err != nil {
		return err
	}
	items, meta, err := c.snapshot(p, sel, listOptions.Continue != "")
	if err != nil {
		return err
	}
	for _, v := range items {
		t := target{resource: c.resource, namespace: v.namespace, name: v.name}
		if _, _, err := c.server.delete(t, o, isDryRun(o.DryRun)); err != nil &&
			!apierrors.IsNotFound(err) {
			return err
		}
	}
	c.writeList(items, meta)
	return nil
}

// patchTypes are the content types of the patches that the kind understands.
func (c *call) patchTypes() []string {
	types := []string{"application/json-patch+json", "application/merge-patch+json"}
	if c.resource.builtin {
		types = append(types, "application/strategic-merge-patch+json")
	}
	return types
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

func unsupportedMediaType(supported []string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType,
		Reason: metav1.StatusReasonUnsupportedMediaType,
		Message: "the body of the request was in an unknown format - " +
			"accepted media types include: " + strings.Join(supported, ", "),
	}}
}

// patch applies the patch in the body to an object.
func (c *call) patch() error {
	data, err := c.body()
	if err != nil {
		return err
	}
	var o metav1.PatchOptions
	validate := func(o *metav1.PatchOptions) field.ErrorList {
		return validation.ValidatePatchOptions(o, types.PatchType(c.patchType()))
	}
	if err := options(c, &o, validate); err != nil {
		return err
	}
	if !json.Valid(data) {
		return apierrors.NewBadRequest("invalid JSON patch")
	}
	apply := func(old *version) (*object, error) {
		if old == nil {
			return nil, c.notFound()
		}
		obj, err := c.asScale().applyPatch(old.json, data, o.FieldValidation)
		if err != nil {
			return nil, err
		}
		if err := matchNamespace(c.resource, c.namespace, &obj.meta); err != nil {
			return nil, err
		}
		return obj, c.checkName(obj)
	}
	v, _, err := c.server.update(c.target, "", write{dryRun: isDryRun(o.DryRun)}, c.rescale(apply))
	if err != nil {
		return err
	}
	c.writeObject(http.StatusOK, v)
	return nil
}
