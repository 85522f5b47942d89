// SPDX-License-Identifier: Apache-2.0

//go:build !js

package apitest

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/informerstack/apitest/internal/access"
)

// byUserLocked writes the user of a request into the object if its kind has it, and refuses a write
// for which it takes more than the permission to write. old is nil for a new object.
func (c *call) byUserLocked(obj, old *object) error {
	if c == nil {
		return nil // a direct write
	}
	r := c.resource
	grants := c.server.options.RBAC && r.builtin && r.Group == rbacv1.GroupName
	if !grants && !r.approval {
		return nil
	}
	user, err := c.userLocked()
	switch {
	case err != nil:
		return err
	case r.approval && old == nil:
		asked(obj, &user)
	case r.approval:
		return c.mayDecideLocked(user, obj, old)
	case !slices.Contains(user.Groups, access.Masters) && (old == nil || !onlyReleases(obj, old)):
		return c.mayGrantLocked(user, obj, old)
	}
	return nil
}

// onlyReleases reports whether a write changes only what a garbage collector does.
func onlyReleases(obj, old *object) bool {
	was, now := old.meta, obj.meta
	was.OwnerReferences, was.Finalizers = now.OwnerReferences, now.Finalizers
	was.ManagedFields, was.ResourceVersion = now.ManagedFields, now.ResourceVersion
	return obj.sameFields(old, "") && reflect.DeepEqual(was, now)
}

// mayGrantLocked refuses a role with permissions that the user does not have, or a binding to one.
func (c *call) mayGrantLocked(user authenticationv1.UserInfo, obj, old *object) error {
	var rules []rbacv1.PolicyRule
	var ref rbacv1.RoleRef
	if err := cmp.Or(obj.get("rules", &rules), obj.get("roleRef", &ref)); err != nil {
		return err
	}
	s := c.server
	if strings.HasSuffix(c.Resource, "bindings") {
		roles := strings.ToLower(ref.Kind) + "s"
		if s.allowsLocked(user, "bind", rbacv1.GroupName, roles, c.namespace, ref.Name) {
			return nil
		}
		var err error
		if rules, err = s.rolesLocked().RulesOf(ref, c.namespace); err != nil {
			return target{resource: c.resource, name: ref.Name}.notFound()
		}
	} else if s.allowsLocked(user, "escalate", rbacv1.GroupName, c.Resource, c.namespace, c.Name) {
		return nil
	}
	err := s.rolesLocked().Lacks(user, c.namespace, rules)
	aggregates := obj.fields["aggregationRule"] != nil ||
		old != nil && old.fields["aggregationRule"] != nil
	if err == nil && aggregates && s.rolesLocked().Lacks(user, "", access.Everything()) != nil {
		err = errors.New("must have cluster-admin privileges to use the aggregationRule")
	}
	if err != nil {
		return apierrors.NewForbidden(c.resource.GroupResource(), obj.meta.Name, err)
	}
	return nil
}

func (s *Server) allowsLocked(user authenticationv1.UserInfo, verb, group, resource, namespace,
	name string) bool {
	ask := access.Of(user)
	ask.ResourceAttributes = &authorizationv1.ResourceAttributes{Verb: verb, Group: group,
		Resource: resource, Namespace: namespace, Name: name}
	return s.decideLocked(ask).Allowed
}

// aggregateLocked copies the rules of the cluster roles that an aggregation rule selects into its
// role, as a controller of a cluster does, after a write of a cluster role. A role may select one
// that aggregates; a circle of them ends.
func (s *Server) aggregateLocked(c *collection) {
	if !c.resource.builtin || c.resource.Plural != "clusterroles" {
		return
	}
	roles := map[string]*rbacv1.ClusterRole{}
	c.stateLocked("", "", s.log.rv, func(v *version) bool {
		role := &rbacv1.ClusterRole{}
		if json.Unmarshal(v.json, role) == nil {
			roles[v.name] = role
		}
		return true
	})
	names := slices.Sorted(maps.Keys(roles))
	for range roles { // ends when nothing changes
		changed := false
		for _, name := range names {
			role := roles[name]
			if role.AggregationRule == nil {
				continue
			}
			rules := access.Aggregated(role, names, roles)
			if equality.Semantic.DeepEqual(rules, role.Rules) {
				continue
			}
			role.Rules, changed = rules, true
			obj := c.get(name).object.copy()
			obj.put("rules", rules)
			if _, err := s.log.commitLocked(c, obj); err != nil {
				return // it could be encoded before
			}
		}
		if !changed {
			return
		}
	}
}
