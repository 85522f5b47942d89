// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	kubeversion "k8s.io/apimachinery/pkg/version"

	"example.com/informerstack/apitest/internal/builtin"
	"example.com/informerstack/apitest/internal/table"
)

// Resource describes one kind of object that a Server serves.
type Resource struct {
	Group      string // "" is the core group
	Version    string
	Kind       string
	Plural     string // as in paths: "pods"
	Singular   string // "" means the kind in lower case
	ShortNames []string
	Categories []string
	Namespaced bool

	// Status makes status a subresource: writes of the object ignore its status, and writes to
	// .../status change nothing else.
	Status bool

	// Fields lists the field selectors besides metadata.name and metadata.namespace, as paths:
	// "spec.nodeName".
	Fields []string

	traits
}

// traits are the differences of Kubernetes' own kinds from custom ones. The zero value is a custom
// resource.
type traits struct {
	// items of a list carry no kind; strategic merge patches are understood
	builtin             bool
	unserved            bool // a version of a definition that does not serve it
	noGeneration        bool // metadata.generation stays unset
	unconditionalUpdate bool // a PUT without resourceVersion overwrites
	createOnUpdate      bool // a PUT of an absent object creates it
	returnsDeleted      bool // DELETE answers with the object, not with a Status
	orphans             bool // DELETE without a policy orphans the dependents
	childless           bool // the policy of a DELETE is ignored
	review              bool // is answered, and not stored
	approval            bool // a CertificateSigningRequest, with this subresource
	anyFinalizer        bool // a finalizer needs no domain
	// supports no other field selectors, and its error says so in another message
	plainFieldErrors bool
	name             nameRule

	rules       *builtin.Rules // nil: only metadata is checked
	scale       *scalePaths    // nil: no subresource scale
	table       table.Layout
	deprecation string // warns of every request
	schema      Schema // nil: any value is stored
	gone        bool   // not served in this form any more; guarded by the log's lock
	family      *family
	types       func() (typeConverter, error) // guarded by the log's lock
}

// family is the versions of a kind in one state of its definition. It does not change, but for the
// objects, which the log's lock guards.
type family struct {
	objects *collection
	stored  *Resource
	all     []*Resource // of a definition; others have no schemas
}

// nameRule defines the names that a kind accepts.
type nameRule int

const (
	subdomainName nameRule = iota
	labelName
	dns1035Name
	pathSegmentName
)

// GroupVersionKind returns the type of the resource's objects.
func (r *Resource) GroupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
}

// GroupResource returns the resource's name, as errors carry it.
func (r *Resource) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Plural}
}

func (r *Resource) apiVersion() string {
	return schema.GroupVersion{Group: r.Group, Version: r.Version}.String()
}

func (r *Resource) validate() error {
	switch {
	case r.Version == "" || r.Kind == "" || r.Plural == "":
		return fmt.Errorf("register resource %+v: version, kind and plural are required", *r)
	case strings.ContainsAny(r.Plural, "/. ") || r.Plural != strings.ToLower(r.Plural):
		return fmt.Errorf("register resource %q: the plural must be one lower-case word", r.Plural)
	case r.Group != "" && strings.ContainsAny(r.Group, "/ "):
		return fmt.Errorf("register resource %q: bad group %q", r.Plural, r.Group)
	}
	return nil
}

// registry holds the resources of a server in the order of registration. The log's lock guards it.
type registry struct {
	all []*Resource
}

func (g *registry) find(group, version, plural string) *Resource {
	for _, r := range g.all {
		if r.Plural == plural && r.Group == group && r.Version == version {
			return r
		}
	}
	return nil
}

func (g *registry) findKind(gvk schema.GroupVersionKind) *Resource {
	for _, r := range g.all {
		if r.Kind == gvk.Kind && r.Group == gvk.Group && r.Version == gvk.Version {
			return r
		}
	}
	return nil
}

// findName resolves "pods", "deployments.apps" or "po".
func (g *registry) findName(name string) *Resource {
	plural, group, qualified := strings.Cut(name, ".")
	for _, r := range g.all {
		if qualified && r.Group != group {
			continue
		}
		if r.Plural == plural || (!qualified && slices.Contains(r.ShortNames, plural)) {
			return r
		}
	}
	return nil
}

// findType resolves a Go type without apiVersion and kind by its name; where two groups have the
// kind, the type's import path decides (k8s.io/api/events/v1).
func (g *registry) findType(obj any) *Resource {
	t := reflect.TypeOf(obj)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	path := strings.Split(t.PkgPath(), "/")
	var found *Resource
	for _, r := range g.all {
		if r.Kind != t.Name() {
			continue
		}
		group, _, _ := strings.Cut(r.Group, ".")
		if group == "" {
			group = "core"
		}
		if len(path) >= 2 && path[len(path)-2] == group && path[len(path)-1] == r.Version {
			return r
		}
		if found == nil {
			found = r
		}
	}
	return found
}

func (g *registry) groups() []string {
	var groups []string
	for _, r := range g.all {
		if !slices.Contains(groups, r.Group) {
			groups = append(groups, r.Group)
		}
	}
	return groups
}

func (g *registry) versions(group string) []string {
	var versions []string
	for _, r := range g.all {
		if r.Group == group && !slices.Contains(versions, r.Version) {
			versions = append(versions, r.Version)
		}
	}
	// v2, v1, v1beta1: the preferred one first
	slices.SortStableFunc(versions, func(a, b string) int {
		return kubeversion.CompareKubeAwareVersionStrings(b, a)
	})
	return versions
}
