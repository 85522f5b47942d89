// SPDX-License-Identifier: Apache-2.0

//go:build !js

package apitest

import (
	"encoding/json"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An action is a POST that does not store its body: a review, or a subresource of an object.
type action struct {
	group, plural, subresource string
	body                       *Resource // nil: the resource itself
	run                        func(c *call, body *object, dryRun bool) error
}

// userTable continues builtinTable with the kinds that need the user of a request.
const userTable = `
	certificates.k8s.io/v1       CertificateSigningRequest certificatesigningrequests csr   suPA
	authentication.k8s.io/v1     TokenReview              tokenreviews              -        R
	authentication.k8s.io/v1     SelfSubjectReview        selfsubjectreviews        -        R
	authorization.k8s.io/v1      LocalSubjectAccessReview localsubjectaccessreviews -        nR
	authorization.k8s.io/v1      SelfSubjectAccessReview  selfsubjectaccessreviews  -        R
	authorization.k8s.io/v1      SelfSubjectRulesReview   selfsubjectrulesreviews   -        R
	authorization.k8s.io/v1      SubjectAccessReview      subjectaccessreviews      -        R
`

var actions = []action{
	{"", "pods", "binding", bodyKind("", "Binding"), (*call).bind},
	{"", "pods", "eviction", bodyKind("policy", "Eviction"), (*call).evict},
	{"", "serviceaccounts", "token", bodyKind("authentication.k8s.io", "TokenRequest"),
		(*call).requestToken},
	{"authentication.k8s.io", "tokenreviews", "", nil, (*call).reviewToken},
	{"authentication.k8s.io", "selfsubjectreviews", "", nil, (*call).reviewSelf},
	{"authorization.k8s.io", "localsubjectaccessreviews", "", nil, (*call).reviewAccess},
	{"authorization.k8s.io", "selfsubjectaccessreviews", "", nil, (*call).reviewAccess},
	{"authorization.k8s.io", "selfsubjectrulesreviews", "", nil, (*call).reviewRules},
	{"authorization.k8s.io", "subjectaccessreviews", "", nil, (*call).reviewAccess},
}

func bodyKind(group, kind string) *Resource {
	return &Resource{Group: group, Version: "v1", Kind: kind, Namespaced: true,
		traits: traits{builtin: true}}
}

// actions returns the actions below the objects of a kind, or that of a kind of reviews.
func (r *Resource) actions() []*action {
	var found []*action
	for i, a := range actions {
		if r.builtin && a.plural == r.Plural && a.group == r.Group {
			found = append(found, &actions[i])
		}
	}
	return found
}

func (r *Resource) action(subresource string) *action {
	if subresource == "" && !r.review {
		return nil // most requests
	}
	for _, a := range r.actions() {
		if a.subresource == subresource {
			return a
		}
	}
	return nil
}

// act answers a POST with its body, as the action has changed it, or with a Status if the body has
// no status.
func (c *call) act(a *action) error {
	data, o, w, err := c.readWrite()
	if err != nil {
		return err
	}
	in := *c
	if a.body != nil {
		in.resource = a.body
	}
	body, err := in.decode(data, o.FieldValidation)
	if err != nil {
		return err
	}
	body.gvk = in.resource.GroupVersionKind()
	body.setField("status", nil)
	if err := matchNamespace(in.resource, c.namespace, &body.meta); err != nil {
		return err
	}
	if review := c.review(&o, o.DryRun); review != nil && !c.resource.review {
		review.body = a.body
		if body, err = review.mutate(c.target, body, nil); err != nil {
			return err
		}
		if err := review.validate(c.target, body, nil); err != nil {
			return err
		}
	}
	if err := a.run(c, body, w.dryRun); err != nil {
		return err
	}
	if body.fields["status"] == nil {
		writeJSON(c.w, http.StatusCreated, metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Status:   metav1.StatusSuccess, Code: http.StatusCreated})
		return nil
	}
	v, err := (&collection{resource: in.resource}).dryVersion(body, 0)
	if err == nil {
		in.writeObject(http.StatusCreated, v)
	}
	return err
}

// get decodes a field of an object. A field that is absent leaves into as it is.
func (o *object) get(name string, into any) error {
	if o.fields[name] == nil {
		return nil
	}
	if err := json.Unmarshal(o.fields[name], into); err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("field %s: %v", name, err))
	}
	return nil
}

func (o *object) put(name string, value any) {
	raw, err := json.Marshal(value)
	if err == nil {
		raw, err = canonical(raw)
	}
	if err != nil {
		panic(err) // types of the API can be encoded
	}
	o.setField(name, raw)
}
