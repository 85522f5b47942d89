// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"cmp"
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
	"k8s.io/apimachinery/pkg/runtime/schema"
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

// readWrite reads the body and the options of a create, an update or a patch, which have the same
// options. Only a patch has force.
func (c *call) readWrite() (data []byte, o metav1.PatchOptions, w write, err error) {
	if data, err = c.body(); err != nil {
		return nil, o, w, err
	}
	if err = decodeQuery(c.Query, &o); err != nil {
		return nil, o, w, err
	}
	var patchType types.PatchType
	if c.Verb == "patch" {
		patchType = types.PatchType(c.patchType())
	} else {
		o.Force = nil
	}
	kind := map[string]string{"create": "CreateOptions", "update": "UpdateOptions",
		"patch": "PatchOptions"}[c.Verb]
	if err = invalidOptions(kind, validation.ValidatePatchOptions(&o, patchType)); err != nil {
		return nil, o, w, err
	}
	w = write{dryRun: isDryRun(o.DryRun), manager: c.manager(o.FieldManager), by: c,
		review: c.review(&o, o.DryRun)}
	return data, o, w, nil
}

// invalidOptions is the error for options with errs, or nil.
func invalidOptions(kind string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: kind}, "", errs)
}

func isDryRun(dryRun []string) bool { return len(dryRun) > 0 }

// manager returns the name of the writer of fields, which comes by default from the user agent.
func (c *call) manager(named string) string {
	return cmp.Or(named, managerOf(c.http.UserAgent()), "unknown")
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
	data, o, w, err := c.readWrite()
	if err != nil {
		return err
	}
	obj, err := c.decode(data, o.FieldValidation)
	if err != nil {
		return err
	}
	t := c.target
	t.name = obj.meta.Name
	v, err := c.server.create(t, obj, w)
	if err != nil {
		return err
	}
	c.writeObject(http.StatusCreated, v)
	return nil
}

// update replaces an object, or its status, by the body.
func (c *call) update() error {
	data, o, w, err := c.readWrite()
	if err != nil {
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
		err = decodeQuery(c.Query, &o)
	} else {
		err = c.decodeDeleteOptions(data, &o)
	}
	if err != nil {
		return nil, err
	}
	return &o, invalidOptions("DeleteOptions", validation.ValidateDeleteOptions(&o))
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
	items, meta, err := c.selected()
	if err != nil {
		return err
	}
	o, err := c.deleteOptions()
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
