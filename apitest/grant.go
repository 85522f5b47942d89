// SPDX-License-Identifier: Apache-2.0

//go:build !js

package apitest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
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
	case !slices.Contains(user.Groups, masters) && (old == nil || !onlyReleases(obj, old)):
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
		if rules, err = s.roleLocked(ref, c.namespace); err != nil {
			return target{resource: c.resource, name: ref.Name}.notFound()
		}
	} else if s.allowsLocked(user, "escalate", rbacv1.GroupName, c.Resource, c.namespace, c.Name) {
		return nil
	}
	err := s.lacksLocked(user, c.namespace, rules)
	aggregates := obj.fields["aggregationRule"] != nil ||
		old != nil && old.fields["aggregationRule"] != nil
	if err == nil && aggregates && s.lacksLocked(user, "", rulesOf(everything)) != nil {
		err = errors.New("must have cluster-admin privileges to use the aggregationRule")
	}
	if err != nil {
		return apierrors.NewForbidden(c.resource.GroupResource(), obj.meta.Name, err)
	}
	return nil
}

func (s *Server) allowsLocked(user authenticationv1.UserInfo, verb, group, resource, namespace,
	name string) bool {
	ask := accessOf(user)
	ask.ResourceAttributes = &authorizationv1.ResourceAttributes{Verb: verb, Group: group,
		Resource: resource, Namespace: namespace, Name: name}
	return s.decideLocked(ask).Allowed
}

// lacksLocked returns an error that describes the permissions in the rules that the user does not
// have.
func (s *Server) lacksLocked(user authenticationv1.UserInfo, namespace string,
	rules []rbacv1.PolicyRule) error {
	var held []rbacv1.PolicyRule
	missing := s.rulesLocked(accessOf(user), namespace, func(_ string, r *rbacv1.PolicyRule) bool {
		held = append(held, *r)
		return true
	})
	verbs := map[string][]string{} // that lack, by the rest of the rule
	need := func(rule, verb string, ask authorizationv1.SubjectAccessReviewSpec) {
		if !slices.ContainsFunc(held, func(r rbacv1.PolicyRule) bool { return covers(&r, &ask) }) {
			verbs[rule] = append(verbs[rule], verb)
		}
	}
	for _, r := range rules {
		for _, verb := range r.Verbs {
			eachResource(&r, func(rule string, a authorizationv1.ResourceAttributes) {
				a.Verb = verb
				need(rule, verb, authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: &a})
			})
			for _, url := range r.NonResourceURLs {
				need(fmt.Sprintf("{NonResourceURLs:[%q], Verbs:[%q]}", url, verb), verb,
					authorizationv1.SubjectAccessReviewSpec{
						NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: url,
							Verb: verb}})
			}
		}
	}
	if len(verbs) == 0 {
		return nil
	}
	var lines []string
	for rule, verbs := range verbs {
		if !strings.HasSuffix(rule, "}") {
			rule += fmt.Sprintf("Verbs:%q}", verbs)
		}
		lines = append(lines, rule)
	}
	slices.Sort(lines)
	text := fmt.Sprintf("user %q (groups=%q) is attempting to grant RBAC permissions not "+
		"currently held:\n%s", user.Username, user.Groups, strings.Join(lines, "\n"))
	if missing != nil {
		text += fmt.Sprintf("; resolution errors: [%v]", missing)
	}
	return errors.New(text)
}

// eachResource calls yield with each resource of a rule, and the beginning of its description.
func eachResource(r *rbacv1.PolicyRule,
	yield func(rule string, a authorizationv1.ResourceAttributes)) {
	names := r.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, group := range r.APIGroups {
		for _, resource := range r.Resources {
			for _, name := range names {
				rule := fmt.Sprintf("{APIGroups:[%q], Resources:[%q], ", group, resource)
				if name != "" {
					rule += fmt.Sprintf("ResourceNames:[%q], ", name)
				}
				plain, subresource, _ := strings.Cut(resource, "/")
				yield(rule, authorizationv1.ResourceAttributes{Group: group, Resource: plain,
					Subresource: subresource, Name: name})
			}
		}
	}
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
	for range roles {
		for _, name := range names {
			role := roles[name]
			if role.AggregationRule == nil {
				continue
			}
			rules := aggregated(role, names, roles)
			if equality.Semantic.DeepEqual(rules, role.Rules) {
				continue
			}
			role.Rules = rules
			obj := c.get(name).object.copy()
			obj.put("rules", rules)
			if _, err := s.log.commitLocked(c, obj); err != nil {
				return // it could be encoded before
			}
		}
	}
}

func aggregated(role *rbacv1.ClusterRole, names []string,
	roles map[string]*rbacv1.ClusterRole) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule // null if there is no rule
	for _, s := range role.AggregationRule.ClusterRoleSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&s)
		for _, name := range names {
			from := roles[name]
			if err != nil || from == role || !selector.Matches(labels.Set(from.Labels)) {
				continue
			}
			for _, rule := range from.Rules {
				if !slices.ContainsFunc(rules, func(have rbacv1.PolicyRule) bool {
					return equality.Semantic.DeepEqual(have, rule)
				}) {
					rules = append(rules, rule)
				}
			}
		}
	}
	return rules
}
