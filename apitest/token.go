// SPDX-License-Identifier: Apache-2.0

//go:build !js

package apitest

import (
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"example.com/informerstack/apitest/internal/access"
)

const (
	defaultTokenSeconds = 3600
	minTokenSeconds     = 600
)

// checkLocked returns the claims of a token that is good for one of the audiences.
func (s *Server) checkLocked(token string, audiences []string) (*access.Claims, error) {
	k, err := access.ReadToken(token, audiences)
	if err != nil {
		return nil, err
	}
	namespace, name, _ := access.Account(k.Subject)
	r := s.log.resources.find("", "v1", "serviceaccounts")
	v := s.log.collectionLocked(r).get(objectKey(namespace, name))
	if v == nil || v.object.meta.UID != k.Account {
		return nil, access.BadToken(target{resource: r, name: name}.notFound())
	}
	return k, nil
}

// requestToken answers with a token of a service account.
func (c *call) requestToken(body *object, _ bool) error {
	var spec authenticationv1.TokenRequestSpec
	if err := body.get("spec", &spec); err != nil {
		return err
	}
	if len(spec.Audiences) == 0 {
		spec.Audiences = []string{access.Issuer}
	}
	seconds := int64(defaultTokenSeconds)
	if spec.ExpirationSeconds == nil {
		spec.ExpirationSeconds = &seconds
	}
	s := c.server
	s.log.mu.RLock()
	defer s.log.mu.RUnlock()
	v := s.log.collectionLocked(c.resource).get(c.key())
	if v == nil {
		return c.notFound()
	}
	var errs field.ErrorList
	named := ""
	if name := body.meta.Name; name != "" {
		named = c.name
		if name != c.name {
			errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), name,
				"must match the service account name if specified"))
		}
	}
	body.meta.Name = c.name
	if seconds = *spec.ExpirationSeconds; seconds < minTokenSeconds {
		errs = append(errs, field.Invalid(field.NewPath("spec", "expirationSeconds"), seconds,
			"may not specify a duration less than 10 minutes"))
	}
	if spec.BoundObjectRef != nil {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "boundObjectRef"),
			"apitest: a token is not bound to an object here"))
	}
	if len(errs) > 0 {
		kind := schema.GroupKind{Group: authenticationv1.GroupName, Kind: "TokenRequest"}
		return apierrors.NewInvalid(kind, named, errs)
	}
	now := time.Now()
	k := access.Claims{Issuer: access.Issuer, Subject: access.AccountUser(c.namespace, c.name),
		Audience: spec.Audiences, Issued: now.Unix(), Expires: now.Unix() + seconds,
		ID: uuid.NewUUID(), Account: v.object.meta.UID}
	body.put("spec", spec)
	body.put("status", authenticationv1.TokenRequestStatus{Token: k.Encode(),
		ExpirationTimestamp: metav1.Unix(k.Expires, 0)})
	return nil
}

// reviewToken names the user of the token in the spec.
func (c *call) reviewToken(body *object, _ bool) error {
	var spec authenticationv1.TokenReviewSpec
	if err := body.get("spec", &spec); err != nil {
		return err
	}
	if spec.Token == "" {
		return apierrors.NewBadRequest("token is required for TokenReview in authentication")
	}
	audiences := spec.Audiences
	if len(audiences) == 0 {
		audiences = []string{access.Issuer}
	}
	var status authenticationv1.TokenReviewStatus
	c.server.log.mu.RLock()
	k, err := c.server.checkLocked(spec.Token, audiences)
	c.server.log.mu.RUnlock()
	if err != nil {
		status.Error = err.Error()
	} else {
		status.Authenticated, status.User, status.Audiences = true, k.User(), k.Audience
	}
	body.put("status", status)
	return nil
}
