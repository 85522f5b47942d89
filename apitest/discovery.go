// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"net/http"
	"strings"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiversion "k8s.io/apimachinery/pkg/version"
)

var serverVersion = apiversion.Info{
	Major: "1", Minor: "37", GitVersion: "v1.37.2+apitest", GitTreeState: "clean",
	GoVersion: "go1.26", Compiler: "gc", Platform: "linux/amd64",
}

var (
	objectVerbs = metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch",
		"update", "watch"}
	reviewVerbs = metav1.Verbs{"create"}
	statusVerbs = metav1.Verbs{"get", "patch", "update"}
)

const aggregatedType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// serveDiscovery answers the discovery paths: /api, /apis, and those of groups and versions.
func (c *call) serveDiscovery(path string) bool {
	s := c.server
	s.log.mu.RLock()
	defer s.log.mu.RUnlock()
	parts := strings.Split(path, "/")
	aggregated := strings.Contains(c.http.Header.Get("Accept"), "as=APIGroupDiscoveryList") &&
		strings.Contains(c.http.Header.Get("Accept"), "v=v2")
	switch {
	case path == "api" && aggregated:
		c.writeAggregated(func(group string) bool { return group == "" })
	case path == "apis" && aggregated:
		c.writeAggregated(func(group string) bool { return group != "" })
	case path == "api":
		writeJSON(c.w, http.StatusOK, metav1.APIVersions{
			TypeMeta: metav1.TypeMeta{Kind: "APIVersions"},
			Versions: s.log.resources.versions(""),
			ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0",
				ServerAddress: c.http.Host}},
		})
	case path == "apis":
		list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList",
			APIVersion: "v1"}, Groups: []metav1.APIGroup{}}
		for _, group := range s.log.resources.groups() {
			if group != "" {
				list.Groups = append(list.Groups, s.log.resources.apiGroup(group))
			}
		}
		writeJSON(c.w, http.StatusOK, list)
	case len(parts) == 2 && parts[0] == "apis" && len(s.log.resources.versions(parts[1])) > 0:
		group := s.log.resources.apiGroup(parts[1])
		group.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
		writeJSON(c.w, http.StatusOK, group)
	case len(parts) == 2 && parts[0] == "api":
		return c.writeResources("", parts[1])
	case len(parts) == 3 && parts[0] == "apis":
		return c.writeResources(parts[1], parts[2])
	default:
		return false
	}
	return true
}

func (g *registry) apiGroup(name string) metav1.APIGroup {
	group := metav1.APIGroup{Name: name}
	for _, v := range g.versions(name) {
		group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{
			GroupVersion: schema.GroupVersion{Group: name, Version: v}.String(), Version: v,
		})
	}
	group.PreferredVersion = group.Versions[0]
	return group
}

func (r *Resource) verbs() metav1.Verbs {
	if r.review {
		return reviewVerbs
	}
	return objectVerbs
}

func (r *Resource) singular() string {
	if r.Singular != "" {
		return r.Singular
	}
	return strings.ToLower(r.Kind)
}

// subresource is one of a resource: scale, with the kind Scale.
type subresource struct {
	name  string
	kind  *Resource
	verbs metav1.Verbs
}

func (r *Resource) subresources() (all []subresource) {
	if r.approval {
		all = append(all, subresource{"approval", r, statusVerbs})
	}
	if r.Status {
		all = append(all, subresource{"status", r, statusVerbs})
	}
	if r.scale != nil {
		all = append(all, subresource{"scale", scaleKind, statusVerbs})
	}
	for _, a := range r.actions() {
		if a.body != nil {
			all = append(all, subresource{a.subresource, a.body, reviewVerbs})
		}
	}
	return all
}

// writeResources answers with the resources of one version.
func (c *call) writeResources(group, version string) bool {
	list := metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: schema.GroupVersion{Group: group, Version: version}.String(),
	}
	for _, r := range c.server.log.resources.all {
		if r.Group != group || r.Version != version {
			continue
		}
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: r.Plural, SingularName: r.singular(), Namespaced: r.Namespaced, Kind: r.Kind,
			Verbs: r.verbs(), ShortNames: r.ShortNames, Categories: r.Categories,
		})
		for _, sub := range r.subresources() {
			described := metav1.APIResource{Name: r.Plural + "/" + sub.name,
				Namespaced: r.Namespaced, Kind: sub.kind.Kind, Verbs: sub.verbs}
			if sub.kind != r {
				described.Group, described.Version = sub.kind.Group, sub.kind.Version
			}
			list.APIResources = append(list.APIResources, described)
		}
	}
	if len(list.APIResources) == 0 {
		return false
	}
	writeJSON(c.w, http.StatusOK, list)
	return true
}

// writeAggregated answers with all resources of the chosen groups.
func (c *call) writeAggregated(chosen func(group string) bool) {
	registry := &c.server.log.resources
	list := apidiscovery.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList",
			APIVersion: apidiscovery.SchemeGroupVersion.String()},
		Items: []apidiscovery.APIGroupDiscovery{},
	}
	for _, group := range registry.groups() {
		if !chosen(group) {
			continue
		}
		item := apidiscovery.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: group}}
		for _, v := range registry.versions(group) {
			item.Versions = append(item.Versions, registry.discoveryVersion(group, v))
		}
		list.Items = append(list.Items, item)
	}
	writeJSONAs(c.w, aggregatedType, http.StatusOK, list)
}

func (g *registry) discoveryVersion(group, version string) apidiscovery.APIVersionDiscovery {
	v := apidiscovery.APIVersionDiscovery{Version: version,
		Freshness: apidiscovery.DiscoveryFreshnessCurrent}
	for _, r := range g.all {
		if r.Group != group || r.Version != version {
			continue
		}
		res := apidiscovery.APIResourceDiscovery{
			Resource: r.Plural, ResponseKind: responseKind(r), Scope: apidiscovery.ScopeCluster,
			SingularResource: r.singular(),
			Verbs:            r.verbs(), ShortNames: r.ShortNames, Categories: r.Categories,
		}
		if r.Namespaced {
			res.Scope = apidiscovery.ScopeNamespace
		}
		for _, sub := range r.subresources() {
			res.Subresources = append(res.Subresources, apidiscovery.APISubresourceDiscovery{
				Subresource: sub.name, ResponseKind: responseKind(sub.kind), Verbs: sub.verbs})
		}
		v.Resources = append(v.Resources, res)
	}
	return v
}

func responseKind(r *Resource) *metav1.GroupVersionKind {
	kind := metav1.GroupVersionKind(r.GroupVersionKind())
	return &kind
}
