// SPDX-License-Identifier: Apache-2.0

//go:build !js

package apitest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// AdmissionHook is asked about every create, update and delete that comes by a request, status and
// dry runs included, as an admission webhook is. Writes by methods of Server do not ask.
type AdmissionHook struct {
	// Name is that in the error of a denied request.
	Name string

	// Mutates says when the hook is asked: in the order of the list, before those that do not
	// mutate. It may answer with a JSON patch then. Otherwise it sees the object that is stored if
	// nothing refuses it.
	Mutates bool

	// Review decides; nil allows the write. No lock is held: it may make requests to the server. If
	// the object changes meanwhile, the update is computed and reviewed again.
	Review func(context.Context, *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse
}

// hook is an AdmissionHook or a webhook.
type hook struct {
	name    string
	mutates bool
	matches func(t target, r *admissionv1.AdmissionRequest, obj, old *object) bool
	ask     func(context.Context, *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse,
		error)
	ignores bool // that it cannot be asked
}

// hooks returns what is to be asked about writes of the resource.
func (s *Server) hooks(r *Resource) []hook {
	var all []hook
	for _, h := range s.options.Admission {
		all = append(all, hook{
			name: h.Name, mutates: h.Mutates,
			matches: func(target, *admissionv1.AdmissionRequest, *object, *object) bool {
				return true
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

// mutate returns the object with the patches of the hooks that mutate. old is nil for a create.
func (v *review) mutate(t target, obj, old *object) (*object, error) {
	if v == nil {
		return obj, nil
	}
	err := v.each(t, true, func() *object { return obj }, old,
		func(response *admissionv1.AdmissionResponse) error {
			if len(response.Patch) == 0 {
				return nil
			}
			patched, err := v.call.patched(obj, response.Patch)
			if err != nil {
				return apierrors.NewInternalError(err)
			}
			obj = patched
			return matchNamespace(t.resource, t.namespace, &obj.meta)
		})
	return obj, err
}

func (c *call) patched(obj *object, patch []byte) (*object, error) {
	operations, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, err
	}
	after, err := operations.Apply(requestJSON(obj))
	if err != nil {
		return nil, err
	}
	patched, err := c.server.parse(c.resource, after)
	return patched, c.allowUnknown(err, "")
}

// validate asks the hooks that do not mutate. obj is nil for a delete, old for a create.
func (v *review) validate(t target, obj, old *object) error {
	if v == nil {
		return nil
	}
	return v.each(t, false, func() *object { return obj }, old,
		func(*admissionv1.AdmissionResponse) error { return nil })
}

// each asks the hooks of one sort that match, and passes on what they answer. The object may change
// from one to the next.
func (v *review) each(t target, mutates bool, current func() *object, old *object,
	each func(*admissionv1.AdmissionResponse) error) error {
	for _, h := range v.hooks {
		if h.mutates != mutates {
			continue
		}
		request := v.request(t, current(), old)
		if !h.matches(t, request, current(), old) {
			continue
		}
		response, err := h.ask(v.call.http.Context(), request)
		switch {
		case err != nil && h.ignores:
			continue
		case err != nil:
			return apierrors.NewInternalError(fmt.Errorf("failed calling webhook %q: %w", h.name,
				err))
		case response == nil:
			continue
		}
		for _, text := range response.Warnings {
			v.call.warn(text)
		}
		if !response.Allowed {
			return denied(h.name, response.Result)
		}
		if err := each(response); err != nil {
			return err
		}
	}
	return nil
}

// request describes a write to a hook.
func (v *review) request(t target, obj, old *object) *admissionv1.AdmissionRequest {
	r := t.resource
	kind, resource := metav1.GroupVersionKind(r.GroupVersionKind()), metav1.GroupVersionResource{
		Group: r.Group, Version: r.Version, Resource: r.Plural}
	request := &admissionv1.AdmissionRequest{
		UID: uuid.NewUUID(), Kind: kind, RequestKind: &kind, Resource: resource,
		RequestResource: &resource, SubResource: t.subresource, RequestSubResource: t.subresource,
		Name: t.name, Namespace: t.namespace, Operation: admissionv1.Update, DryRun: &v.dryRun,
		UserInfo: v.user,
	}
	switch {
	case obj == nil:
		request.Operation = admissionv1.Delete
	case old == nil:
		request.Operation = admissionv1.Create
	}
	if obj != nil {
		request.Object.Raw = requestJSON(obj)
	}
	if old != nil {
		request.OldObject.Raw = requestJSON(old)
	}
	request.Options.Raw = v.optionsJSON(request.Operation)
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

// mutatedLocked returns a copy of the object with the patches of the hooks that mutate. It releases
// the lock meanwhile.
func (s *Server) mutatedLocked(t target, obj *object, old *version, w write) (*object, error) {
	if w.review == nil {
		return obj, nil
	}
	s.log.mu.Unlock()
	defer s.log.mu.Lock()
	return w.review.mutate(t, obj.copy(), t.shown(old))
}

// validatedLocked asks the hooks that do not mutate. It releases the lock meanwhile.
func (s *Server) validatedLocked(t target, obj *object, old *version, w write) error {
	if w.review == nil {
		return nil
	}
	s.log.mu.Unlock()
	defer s.log.mu.Lock()
	return w.review.validate(t, obj, t.shown(old))
}

// reviewDelete asks about the delete of old. The target of a delete of a collection has no name.
func (c *call) reviewDelete(t target, old *version, o *metav1.DeleteOptions) error {
	if old == nil {
		return nil // it is not found
	}
	return c.review(o, o.DryRun).validate(t, nil, t.shown(old))
}
