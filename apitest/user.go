// SPDX-License-Identifier: Apache-2.0

//go:build !js

package apitest

import (
	"cmp"
	"errors"
	"iter"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"

	"example.com/informerstack/apitest/internal/access"
)

// userLocked returns the user of a request: a service account with its token, otherwise the
// administrator, and in place of both the user that it impersonates. With Options.RBAC, another
// token is refused, and impersonation needs a permission.
func (c *call) userLocked() (authenticationv1.UserInfo, error) {
	user := access.Admin()
	token, isBearer := strings.CutPrefix(c.http.Header.Get("Authorization"), "Bearer ")
	if isBearer {
		k, err := c.server.checkLocked(strings.TrimSpace(token), []string{access.Issuer})
		switch {
		case err == nil:
			user = k.User()
		case c.server.options.RBAC:
			return user, apierrors.NewUnauthorized("Unauthorized")
		}
	}
	as, needed, err := access.Impersonated(c.http.Header)
	if err != nil || as.Username == "" {
		return user, err
	}
	for _, a := range needed {
		spec := access.Of(user)
		spec.ResourceAttributes = a
		if status := c.server.decideLocked(spec); !status.Allowed {
			return user, access.Forbidden(&spec, status.Reason)
		}
	}
	return as, nil
}

// permit refuses the request of a user without the permission, and impersonation without a user
// name, which is wrong without Options.RBAC too.
func (c *call) permit() error {
	s := c.server
	if !s.options.RBAC {
		_, _, err := access.Impersonated(c.http.Header)
		return err
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
	spec := access.Of(user)
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
	return access.Forbidden(&spec, status.Reason)
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

// decideLocked answers whether the roles of a user allow what a review asks. Without Options.RBAC,
// everything is allowed.
func (s *Server) decideLocked(
	ask authorizationv1.SubjectAccessReviewSpec,
) authorizationv1.SubjectAccessReviewStatus {
	if !s.options.RBAC {
		return authorizationv1.SubjectAccessReviewStatus{Allowed: true}
	}
	return s.rolesLocked().Decide(ask)
}

// rolesLocked returns the roles in the server. They may be used while the lock is held.
func (s *Server) rolesLocked() access.Roles {
	find := func(plural string) *Resource {
		return s.log.resources.find(rbacv1.GroupName, "v1", plural)
	}
	return access.Roles{
		Bindings: func(namespace string) iter.Seq[[]byte] {
			t := target{resource: find("rolebindings"), namespace: namespace}
			if namespace == "" {
				t.resource = find("clusterrolebindings")
			}
			return func(yield func([]byte) bool) {
				s.log.collectionLocked(t.resource).stateLocked(t.prefix(), "", s.log.rv,
					func(v *version) bool { return yield(v.json) })
			}
		},
		Role: func(kind, namespace, name string) []byte {
			r := find(strings.ToLower(kind) + "s")
			if r == nil {
				return nil
			}
			if v := s.log.collectionLocked(r).get(objectKey(namespace, name)); v != nil {
				return v.json
			}
			return nil
		},
	}
}

func (s *Server) createRoles() {
	for role, binding := range access.BasicRoles {
		if err := errors.Join(s.Create(role), s.Create(binding)); err != nil {
			panic(err) // a broken invariant of this package
		}
	}
}
