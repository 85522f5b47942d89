// SPDX-License-Identifier: Apache-2.0

//go:build !js

package access

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// Claims are the payload of a token of a service account. The token has the form of a JWT, but is
// not signed: it proves nothing, and is good for the servers of this package alone.
type Claims struct {
	Issuer   string    `json:"iss"`
	Subject  string    `json:"sub"`
	Audience []string  `json:"aud"`
	Expires  int64     `json:"exp"`
	Issued   int64     `json:"iat"`
	ID       types.UID `json:"jti"`
	Account  types.UID `json:"uid"` // the token ends with it
}

// Issuer is the audience of the tokens with which clients log in to the server.
const Issuer = "https://apitest.invalid"

// Encode returns the token.
func (k *Claims) Encode() string {
	part := base64.RawURLEncoding.EncodeToString
	body, err := json.Marshal(k)
	if err != nil {
		panic(err) // it has strings and numbers only
	}
	return part([]byte(`{"alg":"none","typ":"JWT"}`)) + "." + part(body) + "."
}

var errBadToken = errors.New("invalid bearer token")

// BadToken is the error for a token that is not good because of cause.
func BadToken(cause error) error { return utilerrors.NewAggregate([]error{errBadToken, cause}) }

// ReadToken returns the claims of a token that is good for one of the audiences if its account
// exists.
func ReadToken(token string, audiences []string) (*Claims, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, errBadToken
	}
	var k Claims
	body, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(body, &k) != nil || k.Issuer != Issuer {
		return nil, errBadToken
	}
	asked := k.Audience
	k.Audience = slices.DeleteFunc(slices.Clone(asked),
		func(a string) bool { return !slices.Contains(audiences, a) })
	if len(k.Audience) == 0 {
		return nil, BadToken(fmt.Errorf("token audiences %q is invalid for the target audiences "+
			"%q", asked, audiences))
	}
	if time.Now().Unix() > k.Expires {
		return nil, BadToken(errors.New("service account token has expired"))
	}
	return &k, nil
}

// User returns the user of the token.
func (k *Claims) User() authenticationv1.UserInfo {
	namespace, _, _ := Account(k.Subject)
	return authenticationv1.UserInfo{
		Username: k.Subject, UID: string(k.Account),
		Groups: append(accountGroups(namespace), Authenticated),
		Extra: map[string]authenticationv1.ExtraValue{
			"authentication.kubernetes.io/credential-id": {"JTI=" + string(k.ID)}},
	}
}
