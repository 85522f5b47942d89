// SPDX-License-Identifier: Apache-2.0

//go:build !js

package apitest

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// claims are the payload of a token of a service account. The token has the form of a JWT, but is
// not signed: it proves nothing, and is good for the servers of this package alone.
type claims struct {
	Issuer   string    `json:"iss"`
	Subject  string    `json:"sub"`
	Audience []string  `json:"aud"`
	Expires  int64     `json:"exp"`
	Issued   int64     `json:"iat"`
	ID       types.UID `json:"jti"`
	Account  types.UID `json:"uid"` // the token ends with it
}

// issuer is the audience of the tokens with which clients log in to the server.
const issuer = "https://apitest.invalid"

const (
	defaultTokenSeconds = 3600
	minTokenSeconds     = 600
)

func (k *claims) encode() string {
	part := base64.RawURLEncoding.EncodeToString
	body, err := json.Marshal(k)
	if err != nil {
		panic(err) // it has strings and numbers only
	}
	return part([]byte(`{"alg":"none","typ":"JWT"}`)) + "." + part(body) + "."
}

var errBadToken = errors.New("invalid bearer token")

// checkLocked returns the claims of a token that is good for one of the audiences.
func (s *Server) checkLocked(token string, audiences []string) (*claims, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, errBadToken
	}
	bad := func(cause error) error { return utilerrors.NewAggregate([]error{errBadToken, cause}) }
	var k claims
	body, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(body, &k) != nil || k.Issuer != issuer {
		return nil, errBadToken
	}
	both := func(audience string) bool { return slices.Contains(audiences, audience) }
	if !slices.ContainsFunc(k.Audience, both) {
		return nil, bad(fmt.Errorf("token audiences %q is invalid for the target audiences %q",
			k.Audience, audiences))
	}
	if time.Now().Unix() > k.Expires {
		return nil, bad(errors.New("service account token has expired"))
	}
	namespace, name, _ := account(k.Subject)
	r := s.log.resources.find("", "v1", "serviceaccounts")
	v := s.log.collectionLocked(r).get(objectKey(namespace, name))
	if v == nil || v.object.meta.UID != k.Account {
		return nil, bad(target{resource: r, name: name}.notFound())
	}
	k.Audience = slices.DeleteFunc(k.Audience, func(a string) bool { return !both(a) })
	return &k, nil
}

func (k *claims) user() authenticationv1.UserInfo {
	namespace, _, _ := account(k.Subject)
	return authenticationv1.UserInfo{
		Username: k.Subject, UID: string(k.Account),
		Groups: append(accountGroups(namespace), authenticated),
		Extra: map[string]authenticationv1.ExtraValue{
			"authentication.kubernetes.io/credential-id": {"JTI=" + string(k.ID)}},
	}
}

// requestToken answers with a token of a service account.
func (c *call) requestToken(body *object, _ bool) error {
	var spec authenticationv1.TokenRequestSpec
	if err := body.get("spec", &spec); err != nil {
		return err
	}
	if len(spec.Audiences) == 0 {
		spec.Audiences = []string{issuer}
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
	k := claims{Issuer: issuer, Subject: accountPrefix + c.namespace + ":" + c.name,
		Audience: spec.Audiences, Issued: now.Unix(), Expires: now.Unix() + seconds,
		ID: uuid.NewUUID(), Account: v.object.meta.UID}
	body.put("spec", spec)
	body.put("status", authenticationv1.TokenRequestStatus{Token: k.encode(),
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
		audiences = []string{issuer}
	}
	var status authenticationv1.TokenReviewStatus
	c.server.log.mu.RLock()
	k, err := c.server.checkLocked(spec.Token, audiences)
	c.server.log.mu.RUnlock()
	if err != nil {
		status.Error = err.Error()
	} else {
		status.Authenticated, status.User, status.Audiences = true, k.user(), k.Audience
	}
	body.put("status", status)
	return nil
}
