// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/yaml"
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

// write returns what a request says about its write. The manager's name comes by default from the
// user agent.
func (c *call) write(dryRun []string, manager string) write {
	if manager == "" {
		manager = managerOf(c.http.UserAgent())
	}
	return write{dryRun: isDryRun(dryRun), manager: cmp.Or(manager, "unknown"), by: c}
}

// managerOf returns what precedes the first slash of a user agent, as far as it is a valid name.
func managerOf(userAgent string) string {
	name, _, _ := strings.Cut(userAgent, "/")
	printable := ""
	for _, r := range name {
		if len(printable)+utf8.RuneLen(r) > validation.FieldManagerMaxLength {
			break
		}
		if unicode.IsPrint(r) {
			printable += string(r)
		}
	}
	return printable
}

// create stores the object in the body.
func (c *call) create() error {
	if a := c.resource.action(c.subresource); a != nil {
		return c.act(a)
	}
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
	w := c.write(o.DryRun, o.FieldManager)
	w.review = c.review(&o, o.DryRun)
	v, err := c.server.create(t, obj, w)
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
	replace := func(*version) (*object, error) { return obj.copy(), nil }
	w := c.write(o.DryRun, o.FieldManager)
	w.review = c.review(&o, o.DryRun)
	v, created, err := c.server.update(c.target, obj.meta.UID, w, c.rescale(w, replace))
	if err != nil {
		return err
	}
	c.writeObject(writtenCode(created), v)
	return nil
}

func writtenCode(created bool) int {
	if created {
		return http.StatusCreated
	}
	return http.StatusOK
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
	if c.resource.isNamespaces() && slices.Contains(immortalNamespaces, c.name) {
		return apierrors.NewForbidden(c.resource.GroupResource(), c.name,
			errors.New("this namespace may not be deleted"))
	}
	v, details, err := c.server.delete(c.target, c.target, o, c.review(o, o.DryRun))
	switch {
	case err != nil:
		return err
	case v != nil:
		code := http.StatusOK
		//lint:ignore SA1019 old clients send it
		if o.OrphanDependents != nil && !*o.OrphanDependents && !v.deleted &&
			v.object.meta.DeletionTimestamp != nil {
			code = http.StatusAccepted
		}
		c.writeObject(code, v)
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
	review := c.review(o, o.DryRun)
	for _, v := range items {
		t := target{resource: c.resource, namespace: v.namespace, name: v.name}
		_, _, err := c.server.delete(t, c.target, o, review)
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	c.writeList(items, meta)
	return nil
}

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

func unsupportedMediaType(supported []string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType,
		Reason: metav1.StatusReasonUnsupportedMediaType,
		Message: "the body of the request was in an unknown format - " +
			"accepted media types include: " + strings.Join(supported, ", "),
	}}
}

// patch applies the patch in the body to an object. A server-side apply creates it if it is absent.
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
	w := c.write(o.DryRun, o.FieldManager)
	w.review = c.review(&o, o.DryRun)
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
