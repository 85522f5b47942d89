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
	// the account, then the object to which the token is bound, if any; it ends with each of them
	Objects []claimed `json:"objects"`
}

type claimed struct {
	Resource  string    `json:"resource"`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
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
	for _, o := range k.Objects {
		r := s.log.resources.find("", "v1", o.Resource)
		if r == nil {
			return nil, errBadToken
		}
		v := s.log.collectionLocked(r).get(objectKey(o.Namespace, o.Name))
		if v == nil || v.object.meta.UID != o.UID {
			return nil, bad(target{resource: r, name: o.Name}.notFound())
		}
	}
	k.Audience = slices.DeleteFunc(k.Audience, func(a string) bool { return !both(a) })
	return &k, nil
}

func (k *claims) user() authenticationv1.UserInfo {
	account := k.Objects[0]
	u := authenticationv1.UserInfo{
		Username: k.Subject, UID: string(account.UID), Groups: accountGroups(account.Namespace),
		Extra: map[string]authenticationv1.ExtraValue{
			"authentication.kubernetes.io/credential-id": {"JTI=" + string(k.ID)}},
	}
	u.Groups = append(u.Groups, authenticated)
	return u
}

// requestToken answers with a token of a service account.
func (c *call) requestToken(body *object, _ bool) (*metav1.Status, error) {
	var spec authenticationv1.TokenRequestSpec
	if err := body.get("spec", &spec); err != nil {
		return nil, err
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
	account := s.log.collectionLocked(c.resource).get(c.key())
	if account == nil {
		return nil, c.notFound()
	}
	var errs field.ErrorList
	if name := body.meta.Name; name != "" && name != c.name {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), name,
			"must match the service account name if specified"))
	}
	body.meta.Name = c.name
	if seconds = *spec.ExpirationSeconds; seconds < minTokenSeconds {
		errs = append(errs, field.Invalid(field.NewPath("spec", "expirationSeconds"), seconds,
			"may not specify a duration less than 10 minutes"))
	}
	if len(errs) > 0 {
		kind := schema.GroupKind{Group: authenticationv1.GroupName, Kind: "TokenRequest"}
		return nil, apierrors.NewInvalid(kind, "", errs)
	}
	now := time.Now()
	k := claims{Issuer: issuer, Subject: accountPrefix + c.namespace + ":" + c.name,
		Audience: spec.Audiences, Issued: now.Unix(), Expires: now.Unix() + seconds,
		ID: uuid.NewUUID(), Objects: []claimed{
			{"serviceaccounts", c.namespace, c.name, account.object.meta.UID}}}
	if ref := spec.BoundObjectRef; ref != nil {
		bound, err := s.boundLocked(ref, c.namespace)
		if err != nil {
			return nil, err
		}
		k.Objects = append(k.Objects, bound)
	}
	body.put("spec", spec)
	body.put("status", authenticationv1.TokenRequestStatus{Token: k.encode(),
		ExpirationTimestamp: metav1.Unix(k.Expires, 0)})
	return nil, nil
}

func (s *Server) boundLocked(ref *authenticationv1.BoundObjectReference,
	namespace string) (claimed, error) {
	r := s.log.resources.findKind(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
	if r == nil || !slices.Contains([]string{"pods.", "secrets.", "nodes."}, r.Plural+"."+r.Group) {
		return claimed{}, apierrors.NewBadRequest(fmt.Sprintf(
			"cannot bind token to object of type %s, %s", ref.APIVersion, ref.Kind))
	}
	bound := claimed{r.Plural, namespace, ref.Name, ref.UID}
	if !r.Namespaced {
		bound.Namespace = ""
	}
	v := s.log.collectionLocked(r).get(objectKey(bound.Namespace, bound.Name))
	if v == nil {
		return bound, target{resource: r, name: ref.Name}.notFound()
	}
	if uid := v.object.meta.UID; ref.UID != "" && ref.UID != uid {
		return bound, apierrors.NewConflict(r.GroupResource(), ref.Name, fmt.Errorf(
			"the UID in the bound object reference (%s) does not match the UID in record. "+
				"The object might have been deleted and then recreated", ref.UID))
	}
	bound.UID = v.object.meta.UID
	return bound, nil
}

// reviewToken says whose token the spec has.
func (c *call) reviewToken(body *object, _ bool) (*metav1.Status, error) {
	var spec authenticationv1.TokenReviewSpec
	if err := body.get("spec", &spec); err != nil {
		return nil, err
	}
	if spec.Token == "" {
		return nil, apierrors.NewBadRequest("token is required for TokenReview in authentication")
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
	return nil, nil
}
