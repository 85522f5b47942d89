// SPDX-License-Identifier: Apache-2.0

//go:build !js

package apitest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// AdmissionHook is asked about every create, update and delete that comes by a request, as an
// admission webhook is: also about those of a status, evictions, bindings, and dry runs. Writes by
// methods of Server do not ask.
type AdmissionHook struct {
	// Name is that in the error of a denied request.
	Name string

	// Mutates says when the hook is asked: in the order of the list, before those that do not
	// mutate. It may answer with a JSON patch then, but not to a delete. Otherwise it sees the
	// object that is stored if nothing refuses it.
	Mutates bool

	// Review decides; nil allows the write. No lock is held: it may make requests to the server. If
	// the object changes meanwhile, an update is computed and reviewed again, and a delete is
	// reviewed again.
	Review func(context.Context, *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse
}

// hook is an AdmissionHook or a webhook.
type hook struct {
	name    string
	mutates bool
	// form returns the version of the kind in which the hook is asked about a write, or nil if it
	// is not asked
	form func(t target, operation admissionv1.Operation, obj, old *object) *Resource
	ask  func(context.Context, *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse,
		error)
	ignores bool // that it cannot be asked
	again   bool // it is asked again if a later one changes the object
}

// hooks returns what is to be asked about writes of the resource.
func (s *Server) hooks(r *Resource) []hook {
	var all []hook
	for _, h := range s.options.Admission {
		all = append(all, hook{
			name: h.Name, mutates: h.Mutates,
			form: func(t target, _ admissionv1.Operation, _, _ *object) *Resource {
				return t.resource
			},
			ask: func(ctx context.Context, r *admissionv1.AdmissionRequest) (
				*admissionv1.AdmissionResponse, error) {
				return h.Review(ctx, r), nil
			},
		})
	}
	return append(all, s.webhooks(r)...)
}

// review is the admission of one request. A nil *review admits everything.
type review struct {
	call    *call
	hooks   []hook
	body    *Resource // the kind of the objects; nil: that of the resource
	options runtime.Object
	dryRun  bool
	user    authenticationv1.UserInfo
}

// review returns nil if there is nothing to ask.
func (c *call) review(options runtime.Object, dryRun []string) *review {
	hooks := c.server.hooks(c.resource)
	if len(hooks) == 0 {
		return nil
	}
	c.server.log.mu.RLock()
	user, _ := c.userLocked() // an error was answered before
	c.server.log.mu.RUnlock()
	return &review{
		call: c, hooks: hooks, options: options, dryRun: isDryRun(dryRun), user: user,
	}
}

func (v *review) context() context.Context { return v.call.http.Context() }

// mutate returns the object with the patches of the hooks that mutate. old is nil for a create, and
// obj for a delete, which cannot be patched.
func (v *review) mutate(t target, obj, old *object) (*object, error) {
	if v == nil {
		return obj, nil
	}
	var again, asked []hook
	for _, h := range v.hooks {
		if !h.mutates {
			continue
		}
		changed, err := v.mutateBy(h, t, &obj, old)
		if err != nil {
			return nil, err
		}
		if changed {
			again = slices.Clone(asked)
		}
		if h.again {
			asked = append(asked, h)
		}
	}
	for _, h := range again {
		if _, err := v.mutateBy(h, t, &obj, old); err != nil {
			return nil, err
		}
	}
	return obj, nil
}

// mutateBy asks one hook, and reports whether it has changed the object.
func (v *review) mutateBy(h hook, t target, obj **object, old *object) (bool, error) {
	response, form, err := v.ask(h, t, *obj, old)
	if err != nil || response == nil || len(response.Patch) == 0 {
		return false, err
	}
	if *obj == nil {
		return false, apierrors.NewInternalError(fmt.Errorf("admission webhook %q attempted to "+
			"modify the object, which is not supported for this operation", h.name))
	}
	before := requestJSON(*obj)
	patched, err := v.patched(form, *obj, response.Patch)
	if err != nil {
		return false, apierrors.NewInternalError(err)
	}
	*obj = patched
	return !bytes.Equal(before, requestJSON(patched)),
		matchNamespace(t.resource, t.namespace, &patched.meta)
}

// patched applies a patch to the object in a form, and returns it in its own form.
func (v *review) patched(form *Resource, obj *object, patch []byte) (*object, error) {
	operations, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, err
	}
	after, err := operations.Apply(requestJSON(obj.as(form)))
	if err != nil {
		return nil, err
	}
	patched, err := v.call.server.parse(form, after)
	if err = v.call.allowUnknown(err, ""); err != nil {
		return nil, err
	}
	patched.gvk = obj.gvk
	return patched, nil
}

// bodyOf returns the kind of the object in a request for a form of the resource.
func (v *review) bodyOf(form *Resource) *Resource {
	if v.body != nil {
		return v.body
	}
	return form
}

// as returns a copy of the object with the type of r; nil stays nil.
func (o *object) as(r *Resource) *object {
	if o == nil {
		return nil
	}
	c := o.copy()
	c.gvk = r.GroupVersionKind()
	return c
}

// validate asks the hooks that do not mutate. obj is nil for a delete, old for a create.
func (v *review) validate(t target, obj, old *object) error {
	if v == nil {
		return nil
	}
	for _, h := range v.hooks {
		if h.mutates {
			continue
		}
		if _, _, err := v.ask(h, t, obj, old); err != nil {
			return err
		}
	}
	return nil
}

// ask asks one hook, if it is to be asked, and returns its answer and the form of the object that
// it saw. The answer is nil if the hook has nothing to say.
func (v *review) ask(h hook, t target, obj, old *object) (*admissionv1.AdmissionResponse,
	*Resource, error) {
	operation := admissionv1.Update
	switch {
	case obj == nil:
		operation = admissionv1.Delete
	case old == nil:
		operation = admissionv1.Create
	}
	form := h.form(t, operation, obj, old)
	if form == nil {
		return nil, nil, nil
	}
	body := v.bodyOf(form)
	response, err := h.ask(v.context(), v.request(t, form, operation, obj.as(body), old.as(body)))
	switch {
	case err != nil && h.ignores:
		return nil, nil, nil
	case err != nil:
		return nil, nil, apierrors.NewInternalError(fmt.Errorf("failed calling webhook %q: %w",
			h.name, err))
	case response == nil:
		return nil, nil, nil
	}
	for _, text := range response.Warnings {
		v.call.warn(text)
	}
	if !response.Allowed {
		return nil, nil, denied(h.name, response.Result)
	}
	return response, body, nil
}

// request describes a write to a hook, which sees the object in a form.
func (v *review) request(t target, form *Resource, operation admissionv1.Operation,
	obj, old *object) *admissionv1.AdmissionRequest {
	kindOf := func(r *Resource) metav1.GroupVersionKind {
		return metav1.GroupVersionKind(v.bodyOf(r).GroupVersionKind())
	}
	resourceOf := func(r *Resource) metav1.GroupVersionResource {
		return metav1.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Plural}
	}
	requestKind, requestResource := kindOf(t.resource), resourceOf(t.resource)
	request := &admissionv1.AdmissionRequest{
		UID: uuid.NewUUID(), Kind: kindOf(form), RequestKind: &requestKind,
		Resource: resourceOf(form), RequestResource: &requestResource,
		SubResource: t.subresource, RequestSubResource: t.subresource,
		Name: t.name, Namespace: t.namespace, Operation: operation, DryRun: &v.dryRun,
		UserInfo: v.user,
	}
	if t.resource.isNamespaces() {
		request.Namespace = t.name
	}
	if obj != nil {
		request.Object.Raw = requestJSON(obj)
	}
	if old != nil {
		request.OldObject.Raw = requestJSON(old)
	}
	request.Options.Raw = v.optionsJSON(operation)
	return request
}

// optionsJSON returns the options of a write. Those of a patch have the kind of what it does.
func (v *review) optionsJSON(operation admissionv1.Operation) []byte {
	kind := metav1.SchemeGroupVersion.WithKind(map[admissionv1.Operation]string{
		admissionv1.Create: "CreateOptions", admissionv1.Update: "UpdateOptions",
		admissionv1.Delete: "DeleteOptions",
	}[operation])
	options := v.options.DeepCopyObject()
	options.GetObjectKind().SetGroupVersionKind(kind)
	data, err := json.Marshal(options)
	if err != nil {
		panic(err) // options that were decoded can be encoded
	}
	return data
}

// requestJSON returns an object as hooks see it.
func requestJSON(o *object) []byte {
	rv, err := strconv.ParseInt(o.meta.ResourceVersion, 10, 64)
	if err != nil {
		rv = 0 // it is absent, or wrong, which is refused later
	}
	enc, err := o.copy().encode(rv)
	if err != nil {
		panic(err) // a parsed object can be encoded
	}
	return enc.json
}

// denied is the error for a write that a hook does not allow.
func denied(name string, result *metav1.Status) error {
	var status metav1.Status
	if result != nil {
		status = *result
	}
	status.Status = metav1.StatusFailure
	status.Code = max(status.Code, http.StatusBadRequest)
	why := " without explanation"
	if given := cmp.Or(status.Message, string(status.Reason)); given != "" {
		why = ": " + given
	}
	status.Message = fmt.Sprintf("admission webhook %q denied the request%s", name, why)
	return &apierrors.StatusError{ErrStatus: status}
}

// mutatedLocked returns the object with the patches of the hooks that mutate. It releases the lock
// meanwhile.
func (s *Server) mutatedLocked(t target, obj *object, old *version, w write) (*object, error) {
	if w.review == nil {
		return obj, nil
	}
	err := s.unlocked(func() (err error) {
		obj, err = w.review.mutate(t, obj, t.shown(old))
		return err
	})
	return obj, err
}

// validatedLocked asks the hooks that do not mutate. It releases the lock meanwhile.
func (s *Server) validatedLocked(t target, obj *object, old *version, w write) error {
	if w.review == nil {
		return nil
	}
	return s.unlocked(func() error { return w.review.validate(t, obj, t.shown(old)) })
}

// reviewedDeleteLocked asks about the delete of an object. It releases the lock meanwhile: if the
// object is another one then, it asks again. asked is the target that the hooks see: that of a
// delete of a collection has no name.
func (s *Server) reviewedDeleteLocked(t, asked target, o *metav1.DeleteOptions, v *review) error {
	c := s.log.collectionLocked(t.resource)
	for {
		old := c.get(t.key())
		if v == nil || old == nil {
			return nil
		}
		if err := checkPreconditions(t, o.Preconditions, &old.object.meta); err != nil {
			return err
		}
		err := s.unlocked(func() error {
			if _, err := v.mutate(asked, nil, t.shown(old)); err != nil {
				return err
			}
			return v.validate(asked, nil, t.shown(old))
		})
		if err != nil || c.get(t.key()) == old {
			return err
		}
		if err := v.context().Err(); err != nil {
			return err
		}
	}
}
