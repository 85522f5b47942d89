// SPDX-License-Identifier: Apache-2.0

//go:build !js

package apitest

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	masters         = "system:masters"
	authenticated   = "system:authenticated"
	unauthenticated = "system:unauthenticated"
	accounts        = "system:serviceaccounts"
	accountPrefix   = "system:serviceaccount:"
)

func accountGroups(namespace string) []string {
	return []string{accounts, accounts + ":" + namespace}
}

// userLocked returns the user of a request: a service account with its token, otherwise the
// administrator, and in place of both the user that it impersonates. With Options.RBAC, another
// token is refused, and impersonation needs a permission.
func (c *call) userLocked() (authenticationv1.UserInfo, error) {
	user := authenticationv1.UserInfo{Username: "admin", UID: "1",
		Groups: []string{masters, authenticated}}
	token, isBearer := strings.CutPrefix(c.http.Header.Get("Authorization"), "Bearer ")
	if isBearer {
		k, err := c.server.checkLocked(strings.TrimSpace(token), []string{issuer})
		switch {
		case err == nil:
			user = k.user()
		case c.server.options.RBAC:
			return user, apierrors.NewUnauthorized("Unauthorized")
		}
	}
	as := authenticationv1.UserInfo{Username: c.http.Header.Get("Impersonate-User"),
		UID: c.http.Header.Get("Impersonate-Uid"), Groups: c.http.Header["Impersonate-Group"],
		Extra: impersonatedExtra(c.http.Header)}
	if as.Username == "" {
		if as.UID != "" || len(as.Groups) > 0 || len(as.Extra) > 0 {
			return user, apierrors.NewBadRequest("impersonation without a user name")
		}
		return user, nil
	}
	for _, a := range impersonations(&as) {
		spec := accessOf(user)
		spec.ResourceAttributes = a
		if status := c.server.decideLocked(spec); !status.Allowed {
			return user, forbidden(&spec, status.Reason)
		}
	}
	if namespace, _, ok := account(as.Username); ok && len(as.Groups) == 0 {
		as.Groups = accountGroups(namespace)
	}
	all := authenticated
	if as.Username == "system:anonymous" {
		all = unauthenticated
	}
	if !slices.Contains(as.Groups, all) {
		as.Groups = append(slices.Clone(as.Groups), all)
	}
	return as, nil
}

// account splits the user name of a service account.
func account(user string) (namespace, name string, ok bool) {
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
	if namespace, name, ok := account(as.Username); ok {
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

// accessOf returns a question about the access of a user.
func accessOf(u authenticationv1.UserInfo) authorizationv1.SubjectAccessReviewSpec {
	return authorizationv1.SubjectAccessReviewSpec{User: u.Username, Groups: u.Groups}
}

// permit refuses the request of a user without the permission.
func (c *call) permit() error {
	s := c.server
	if !s.options.RBAC {
		return nil
	}
	s.log.mu.RLock()
	defer s.log.mu.RUnlock()
	user, err := c.userLocked()
	if err != nil {
		return err
	}
	return c.permitLocked(user, c.Verb)
}

func (c *call) permitLocked(user authenticationv1.UserInfo, verb string) error {
	spec := accessOf(user)
	if c.Resource == "" {
		spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: c.Path,
			Verb: verb}
	} else {
		subresource, _, _ := strings.Cut(c.Subresource, "/")
		spec.ResourceAttributes = &authorizationv1.ResourceAttributes{Verb: verb, Group: c.Group,
			Version: c.Version, Resource: c.Resource, Subresource: subresource,
			Namespace: c.Namespace, Name: cmp.Or(c.Name, c.selectedName())}
	}
	status := c.server.decideLocked(spec)
	if status.Allowed {
		return nil
	}
	return forbidden(&spec, status.Reason)
}

// selectedName returns the name of the only object that a list or watch selects, or "".
func (c *call) selectedName() string {
	if c.Verb != "list" && c.Verb != "watch" {
		return ""
	}
	selector, err := fields.ParseSelector(c.Query.Get("fieldSelector"))
	if err != nil {
		return ""
	}
	name, _ := selector.RequiresExactMatch("metadata.name")
	return name
}

// mayCreateLocked refuses an apply or a PUT that would create an object without the permission.
func (c *call) mayCreateLocked() error {
	if !c.server.options.RBAC {
		return nil
	}
	user, err := c.userLocked()
	if err != nil {
		return err
	}
	return c.permitLocked(user, "create")
}

func forbidden(spec *authorizationv1.SubjectAccessReviewSpec, reason string) error {
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
