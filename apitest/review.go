// SPDX-License-Identifier: Apache-2.0

//go:build !js

package apitest

import (
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"example.com/informerstack/apitest/internal/access"
)

// reviewSelf names the user of the request: kubectl auth whoami.
func (c *call) reviewSelf(body *object, _ bool) error {
	c.server.log.mu.RLock()
	defer c.server.log.mu.RUnlock()
	user, err := c.userLocked()
	body.put("status", authenticationv1.SelfSubjectReviewStatus{UserInfo: user})
	return err
}

// reviewAccess says whether a user may do something. The user is in the spec, or, for kubectl auth
// can-i, that of the request.
func (c *call) reviewAccess(body *object, _ bool) error {
	var spec authorizationv1.SubjectAccessReviewSpec
	if err := body.get("spec", &spec); err != nil {
		return err
	}
	c.server.log.mu.RLock()
	defer c.server.log.mu.RUnlock()
	isSelf := c.resource.Kind == "SelfSubjectAccessReview"
	if isSelf {
		user, err := c.userLocked()
		if err != nil {
			return err
		}
		spec.User, spec.Groups = user.Username, user.Groups
	}
	if errs := c.checkReview(&spec); len(errs) > 0 {
		return apierrors.NewInvalid(schema.GroupKind{Group: c.resource.Group}, "", errs)
	}
	status := c.server.decideLocked(spec)
	if isSelf {
		body.put("spec", authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes:    spec.ResourceAttributes,
			NonResourceAttributes: spec.NonResourceAttributes,
		})
	}
	body.put("status", status)
	return nil
}

func (c *call) checkReview(spec *authorizationv1.SubjectAccessReviewSpec) (errs field.ErrorList) {
	at := field.NewPath("spec")
	var path any // as a real server's errors show it
	if n := spec.NonResourceAttributes; n != nil {
		path = struct{ Path, Verb string }{n.Path, n.Verb}
	}
	if (spec.ResourceAttributes == nil) == (path == nil) {
		errs = append(errs, field.Invalid(at, path,
			"exactly one of nonResourceAttributes or resourceAttributes must be specified"))
	}
	if spec.User == "" && len(spec.Groups) == 0 {
		errs = append(errs, field.Invalid(at.Child("user"), "",
			"at least one of user or group must be specified"))
	}
	if a := spec.ResourceAttributes; c.resource.Namespaced && a != nil &&
		a.Namespace != c.namespace {
		errs = append(errs, field.Invalid(at.Child("resourceAttributes", "namespace"), a.Namespace,
			"must match metadata.namespace"))
	}
	if c.resource.Namespaced && path != nil {
		errs = append(errs, field.Invalid(at.Child("nonResourceAttributes"), path,
			"disallowed on this kind of request"))
	}
	return errs
}

// reviewRules lists what the user may do in a namespace: kubectl auth can-i --list.
func (c *call) reviewRules(body *object, _ bool) error {
	var spec authorizationv1.SelfSubjectRulesReviewSpec
	if err := body.get("spec", &spec); err != nil {
		return err
	}
	if spec.Namespace == "" {
		return apierrors.NewBadRequest("no namespace on request")
	}
	s := c.server
	s.log.mu.RLock()
	defer s.log.mu.RUnlock()
	user, err := c.userLocked()
	if err != nil {
		return err
	}
	status := authorizationv1.SubjectRulesReviewStatus{
		ResourceRules:    []authorizationv1.ResourceRule{},
		NonResourceRules: []authorizationv1.NonResourceRule{},
	}
	add := func(_ string, r *rbacv1.PolicyRule) bool {
		if len(r.Resources) > 0 {
			status.ResourceRules = append(status.ResourceRules, authorizationv1.ResourceRule{
				Verbs: r.Verbs, APIGroups: r.APIGroups, Resources: r.Resources,
				ResourceNames: r.ResourceNames})
		}
		if len(r.NonResourceURLs) > 0 {
			status.NonResourceRules = append(status.NonResourceRules,
				authorizationv1.NonResourceRule{Verbs: r.Verbs,
					NonResourceURLs: r.NonResourceURLs})
		}
		return true
	}
	if s.options.RBAC {
		if err := s.rolesLocked().Rules(access.Of(user), spec.Namespace, add); err != nil {
			status.EvaluationError = err.Error()
		}
	} else {
		for _, rule := range access.Everything() {
			add("", &rule)
		}
	}
	body.put("spec", struct{}{})
	body.put("status", status)
	return nil
}
