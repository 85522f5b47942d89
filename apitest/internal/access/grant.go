// SPDX-License-Identifier: Apache-2.0

//go:build !js

package access

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Lacks returns an error that describes the permissions in the rules that the user does not
// have.
func (r Roles) Lacks(user authenticationv1.UserInfo, namespace string,
	rules []rbacv1.PolicyRule) error {
	var held []rbacv1.PolicyRule
	missing := r.Rules(Of(user), namespace, func(_ string, rule *rbacv1.PolicyRule) bool {
		held = append(held, *rule)
		return true
	})
	verbs := map[string][]string{} // that lack, by the rest of the rule
	need := func(rule, verb string, ask authorizationv1.SubjectAccessReviewSpec) {
		if !slices.ContainsFunc(held, func(r rbacv1.PolicyRule) bool { return covers(&r, &ask) }) {
			verbs[rule] = append(verbs[rule], verb)
		}
	}
	for _, wanted := range rules {
		for _, verb := range wanted.Verbs {
			eachResource(&wanted, func(rule string, a authorizationv1.ResourceAttributes) {
				a.Verb = verb
				need(rule, verb, authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: &a})
			})
			for _, url := range wanted.NonResourceURLs {
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

// Aggregated returns the rules of a cluster role with an aggregation rule: those of the roles that
// it selects, in the order of names.
func Aggregated(role *rbacv1.ClusterRole, names []string,
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
