// SPDX-License-Identifier: Apache-2.0

//go:build !js

// Package access says which user a request is of, and what the roles of a user allow.
//
// Read user.go (users and impersonation), token.go (the tokens of service accounts),
// rbac.go (what roles allow), then grant.go (which roles a user may make).
//
// There are no goroutines, and no state.
//
// To see it work: go test -run TestToken ./apitest
package access

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Groups of users.
const (
	Masters         = "system:masters"
	Authenticated   = "system:authenticated"
	Unauthenticated = "system:unauthenticated"
	accounts        = "system:serviceaccounts"
	accountPrefix   = "system:serviceaccount:"
)

// Admin returns the user of a request that names no other.
func Admin() authenticationv1.UserInfo {
	return authenticationv1.UserInfo{Username: "admin", UID: "1",
		Groups: []string{Masters, Authenticated}}
}

// AccountUser returns the user name of a service account.
func AccountUser(namespace, name string) string { return accountPrefix + namespace + ":" + name }

// Account splits the user name of a service account.
func Account(user string) (namespace, name string, ok bool) {
	rest, isAccount := strings.CutPrefix(user, accountPrefix)
	namespace, name, ok = strings.Cut(rest, ":")
	return namespace, name, ok && isAccount
}

const extraHeader = "Impersonate-Extra-"

func impersonatedExtra(header http.Header) map[string]authenticationv1.ExtraValue {
	extra := map[string]authenticationv1.ExtraValue{}
	for name, values := range header {
		if key, ok := strings.CutPrefix(name, extraHeader); ok {
			key = strings.ToLower(key)
			if plain, err := url.PathUnescape(key); err == nil {
				key = plain
			}
			extra[key] = values
		}
	}
	return extra
}

// impersonations are the permissions that it takes to act as a user.
func impersonations(as *authenticationv1.UserInfo) []*authorizationv1.ResourceAttributes {
	var all []*authorizationv1.ResourceAttributes
	add := func(group, resource, subresource, namespace, name string) {
		all = append(all, &authorizationv1.ResourceAttributes{Verb: "impersonate", Group: group,
			Resource: resource, Subresource: subresource, Namespace: namespace, Name: name})
	}
	if namespace, name, ok := Account(as.Username); ok {
		add("", "serviceaccounts", "", namespace, name)
	} else {
		add("", "users", "", "", as.Username)
	}
	if as.UID != "" {
		add(authenticationv1.GroupName, "uids", "", "", as.UID)
	}
	for _, group := range as.Groups {
		add("", "groups", "", "", group)
	}
	for key, values := range as.Extra {
		for _, value := range values {
			add(authenticationv1.GroupName, "userextras", key, "", value)
		}
	}
	return all
}

// Impersonated returns the user that a request impersonates, or one without a name, and the
// permissions that it takes.
func Impersonated(header http.Header) (authenticationv1.UserInfo,
	[]*authorizationv1.ResourceAttributes, error) {
	as := authenticationv1.UserInfo{Username: header.Get("Impersonate-User"),
		UID: header.Get("Impersonate-Uid"), Groups: header["Impersonate-Group"],
		Extra: impersonatedExtra(header)}
	if as.Username == "" {
		if as.UID != "" || len(as.Groups) > 0 || len(as.Extra) > 0 {
			return as, nil, apierrors.NewBadRequest(
				"impersonation without a user name: set Impersonate-User")
		}
		return as, nil, nil
	}
	needed := impersonations(&as)
	if namespace, _, ok := Account(as.Username); ok && len(as.Groups) == 0 {
		as.Groups = accountGroups(namespace)
	}
	all := Authenticated
	if as.Username == "system:anonymous" {
		all = Unauthenticated
	}
	if !slices.Contains(as.Groups, all) {
		as.Groups = append(slices.Clone(as.Groups), all)
	}
	return as, needed, nil
}

func accountGroups(namespace string) []string {
	return []string{accounts, accounts + ":" + namespace}
}

// Of returns a question about the access of a user.
func Of(u authenticationv1.UserInfo) authorizationv1.SubjectAccessReviewSpec {
	return authorizationv1.SubjectAccessReviewSpec{User: u.Username, Groups: u.Groups}
}

// Forbidden is the error for a request that is not allowed.
func Forbidden(spec *authorizationv1.SubjectAccessReviewSpec, reason string) error {
	cannot := fmt.Sprintf("User %q cannot ", spec.User)
	if reason != "" {
		reason = ": " + reason
	}
	if n := spec.NonResourceAttributes; n != nil {
		err := apierrors.NewForbidden(schema.GroupResource{}, "", nil)
		err.ErrStatus.Message = fmt.Sprintf("forbidden: %s%s path %q%s", cannot, n.Verb, n.Path,
			reason)
		return err
	}
	a := spec.ResourceAttributes
	resource, where := a.Resource, "at the cluster scope"
	if a.Subresource != "" {
		resource += "/" + a.Subresource
	}
	if a.Namespace != "" {
		where = fmt.Sprintf("in the namespace %q", a.Namespace)
	}
	return apierrors.NewForbidden(schema.GroupResource{Group: a.Group, Resource: a.Resource},
		a.Name, fmt.Errorf("%s%s resource %q in API group %q %s%s", cannot, a.Verb, resource,
			a.Group, where, reason))
}
