// SPDX-License-Identifier: Apache-2.0

//go:build !js

package access

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// Roles finds the roles of users in the objects of a server, which are JSON.
type Roles struct {
	// Bindings returns the RoleBindings in a namespace, or for "" the ClusterRoleBindings.
	Bindings func(namespace string) iter.Seq[[]byte]
	// Role returns a Role in a namespace, or a ClusterRole with the namespace "", or nil if it does
	// not exist.
	Role func(kind, namespace, name string) []byte
}

// Decide answers whether the roles of a user allow what a review asks.
func (r Roles) Decide(
	ask authorizationv1.SubjectAccessReviewSpec,
) authorizationv1.SubjectAccessReviewStatus {
	if slices.Contains(ask.Groups, Masters) {
		return authorizationv1.SubjectAccessReviewStatus{Allowed: true}
	}
	namespace := ""
	if ask.ResourceAttributes != nil {
		namespace = ask.ResourceAttributes.Namespace
	}
	by := ""
	err := r.Rules(ask, namespace, func(from string, rule *rbacv1.PolicyRule) bool {
		if covers(rule, &ask) {
			by = from
		}
		return by == ""
	})
	switch {
	case by != "":
		return authorizationv1.SubjectAccessReviewStatus{Allowed: true,
			Reason: "RBAC: allowed by " + by}
	case err != nil:
		return authorizationv1.SubjectAccessReviewStatus{
			Reason: fmt.Sprintf("rbac: RBAC: %v", err)}
	}
	return authorizationv1.SubjectAccessReviewStatus{}
}

// binding has the fields of a RoleBinding and of a ClusterRoleBinding.
type binding struct {
	metav1.ObjectMeta `json:"metadata"`
	Subjects          []rbacv1.Subject `json:"subjects"`
	RoleRef           rbacv1.RoleRef   `json:"roleRef"`
}

// Rules calls yield with the rules of a user, those of the whole cluster first, and where each is
// from, until yield returns false. It returns an error for the roles that do not exist.
func (r Roles) Rules(user authorizationv1.SubjectAccessReviewSpec, namespace string,
	yield func(from string, rule *rbacv1.PolicyRule) bool) error {
	scopes := []string{""}
	if namespace != "" {
		scopes = append(scopes, namespace)
	}
	var missing []error
	for _, scope := range scopes {
		for data := range r.Bindings(scope) {
			var b binding
			if json.Unmarshal(data, &b) != nil {
				continue
			}
			i := slices.IndexFunc(b.Subjects,
				func(s rbacv1.Subject) bool { return names(s, b.Namespace, user) })
			if i < 0 {
				continue
			}
			rules, err := r.RulesOf(b.RoleRef, b.Namespace)
			if err != nil {
				missing = append(missing, err)
				continue
			}
			for j := range rules {
				if !yield(describe(&b, b.Subjects[i]), &rules[j]) {
					return nil
				}
			}
		}
	}
	return utilerrors.NewAggregate(missing)
}

// RulesOf returns the rules of the role of a binding in a namespace.
func (r Roles) RulesOf(ref rbacv1.RoleRef, namespace string) ([]rbacv1.PolicyRule, error) {
	if ref.Kind == "ClusterRole" {
		namespace = ""
	}
	data := r.Role(ref.Kind, namespace, ref.Name)
	if data == nil {
		return nil, fmt.Errorf("%s.%s %q not found", strings.ToLower(ref.Kind), rbacv1.GroupName,
			ref.Name)
	}
	var role rbacv1.Role // a ClusterRole has its rules in the same field
	err := json.Unmarshal(data, &role)
	return role.Rules, err
}

// describe names a binding with its role and one of its subjects.
func describe(b *binding, s rbacv1.Subject) string {
	kind, name, subject := "ClusterRoleBinding", b.Name, s.Name
	if b.Namespace != "" {
		kind, name = "RoleBinding", b.Name+"/"+b.Namespace
	}
	if s.Kind == rbacv1.ServiceAccountKind {
		subject += "/" + s.Namespace
	}
	return fmt.Sprintf("%s %q of %s %q to %s %q", kind, name, b.RoleRef.Kind, b.RoleRef.Name,
		s.Kind, subject)
}

// names reports whether a subject of a binding is the user.
func names(s rbacv1.Subject, namespace string, user authorizationv1.SubjectAccessReviewSpec) bool {
	switch s.Kind {
	case rbacv1.UserKind:
		return s.Name == user.User
	case rbacv1.GroupKind:
		return slices.Contains(user.Groups, s.Name)
	case rbacv1.ServiceAccountKind:
		if s.Namespace != "" {
			namespace = s.Namespace
		}
		return namespace != "" && user.User == AccountUser(namespace, s.Name)
	}
	return false
}

// covers reports whether a rule allows what is asked.
func covers(r *rbacv1.PolicyRule, ask *authorizationv1.SubjectAccessReviewSpec) bool {
	has := func(list []string, item string) bool {
		return slices.Contains(list, "*") || slices.Contains(list, item)
	}
	if n := ask.NonResourceAttributes; n != nil {
		return has(r.Verbs, n.Verb) && slices.ContainsFunc(r.NonResourceURLs, func(u string) bool {
			prefix, isPrefix := strings.CutSuffix(u, "*")
			return u == n.Path || (isPrefix && strings.HasPrefix(n.Path, prefix))
		})
	}
	a := ask.ResourceAttributes
	resource := a.Resource
	if a.Subresource != "" {
		resource += "/" + a.Subresource
	}
	return has(r.Verbs, a.Verb) && has(r.APIGroups, a.Group) &&
		(has(r.Resources, resource) ||
			a.Subresource != "" && slices.Contains(r.Resources, "*/"+a.Subresource)) &&
		(len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, a.Name))
}

// basicRoles are the roles of every user of a cluster, and that of its administrators: the name,
// the groups that have it, and the rules.
var basicRoles = []struct{ name, groups, rules string }{
	{"cluster-admin", Masters, everything},
	{"system:basic-user", Authenticated, `[
		{"verbs":["create"],"apiGroups":["authorization.k8s.io"],
			"resources":["selfsubjectaccessreviews","selfsubjectrulesreviews"]},
		{"verbs":["create"],"apiGroups":["authentication.k8s.io"],
			"resources":["selfsubjectreviews"]}]`},
	{"system:discovery", Authenticated, `[{"verbs":["get"],
		"nonResourceURLs":["/api","/api/*","/apis","/apis/*","/healthz","/livez","/openapi",
			"/openapi/*","/readyz","/version","/version/"]}]`},
	{"system:public-info-viewer", Authenticated + " " + Unauthenticated, `[{"verbs":["get"],
		"nonResourceURLs":["/healthz","/livez","/readyz","/version","/version/"]}]`},
}

const everything = `[{"verbs":["*"],"apiGroups":["*"],"resources":["*"]},
	{"verbs":["*"],"nonResourceURLs":["*"]}]`

// Everything returns the rules that allow everything.
func Everything() []rbacv1.PolicyRule { return rulesIn(everything) }

// BasicRoles calls yield with each of the roles that every cluster has, and its binding.
func BasicRoles(yield func(*rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding) bool) {
	for _, basic := range basicRoles {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: basic.name},
			Rules: rulesIn(basic.rules)}
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: role.ObjectMeta,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole",
				Name: basic.name}}
		for _, group := range strings.Fields(basic.groups) {
			binding.Subjects = append(binding.Subjects, rbacv1.Subject{Kind: rbacv1.GroupKind,
				APIGroup: rbacv1.GroupName, Name: group})
		}
		if !yield(role, binding) {
			return
		}
	}
}

func rulesIn(text string) (rules []rbacv1.PolicyRule) {
	if err := json.Unmarshal([]byte(text), &rules); err != nil {
		panic(err) // a constant of this package
	}
	return rules
}
