// SPDX-License-Identifier: Apache-2.0

//go:build !js

package apitest

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// PolicyRules returns the rules of the smallest role that allows the requests, in a fixed order:
//
//	apitest.PolicyRules(server.Requests(apitest.Match{}))
//
// Select the requests by their user agent if the server has several clients. Requests that every
// user may make (discovery, reviews of one's own access) need no rule. Rules are not limited to
// the names of objects. An informer that streams its initial list has only made a watch: add the
// verb list, which it needs on servers that do not stream lists.
func PolicyRules(requests []Request) []rbacv1.PolicyRule {
	type kind struct{ group, resource string }
	verbs := map[kind]map[string]bool{}
	need := func(r *Request, verb string) {
		k := kind{r.Group, r.Resource}
		if sub, _, _ := strings.Cut(r.Subresource, "/"); sub != "" {
			k.resource += "/" + sub
		}
		if verbs[k] == nil {
			verbs[k] = map[string]bool{}
		}
		verbs[k][verb] = true
	}
	for i := range requests {
		r := &requests[i]
		if r.Resource == "" || strings.HasPrefix(r.Resource, "selfsubject") {
			continue
		}
		need(r, r.Verb)
		if r.Code == http.StatusCreated && (r.Verb == "patch" || r.Verb == "update") {
			need(r, "create")
		}
	}
	type rule struct{ group, verbs string }
	resources := map[rule][]string{}
	for k, set := range verbs {
		same := rule{k.group, strings.Join(slices.Sorted(maps.Keys(set)), " ")}
		resources[same] = append(resources[same], k.resource)
	}
	var rules []rbacv1.PolicyRule
	for same, names := range resources {
		slices.Sort(names)
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{same.group}, Resources: names,
			Verbs: strings.Fields(same.verbs)})
	}
	slices.SortFunc(rules, func(a, b rbacv1.PolicyRule) int {
		return cmp.Or(slices.Compare(a.APIGroups, b.APIGroups),
			slices.Compare(a.Resources, b.Resources))
	})
	return rules
}
