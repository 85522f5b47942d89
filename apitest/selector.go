// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/sharding"
)

// selector holds the criteria of a list or watch besides the namespace.
type selector struct {
	prefix string // of the keys
	labels labels.Selector
	fields fields.Selector
	shards sharding.Selector // nil: all objects
}

// newSelector checks that the resource supports the fields. A name in the path, as in a watch of
// one object, is a field selector of metadata.name.
func newSelector(t target, label labels.Selector, field fields.Selector) (*selector, error) {
	s := &selector{prefix: t.prefix(), labels: label, fields: field}
	if s.labels == nil {
		s.labels = labels.Everything()
	}
	if s.fields == nil {
		s.fields = fields.Everything()
	}
	var err error
	if s.fields, err = s.fields.Transform(t.resource.convertField); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if t.name == "" {
		return s, nil
	}
	if !s.fields.Empty() {
		if name, ok := s.fields.RequiresExactMatch("metadata.name"); !ok || name != t.name {
			return nil, apierrors.NewBadRequest(
				"fieldSelector metadata.name doesn't match requested name")
		}
		return s, nil
	}
	s.fields = fields.OneTermEqualSelector("metadata.name", t.name)
	return s, nil
}

func (r *Resource) convertField(label, value string) (string, string, error) {
	switch {
	case label == "metadata.name",
		label == "metadata.namespace" && (r.Namespaced || r.plainFieldErrors),
		slices.Contains(r.Fields, label):
		return label, value, nil
	case r.plainFieldErrors:
		return "", "", fmt.Errorf("%q is not a known field selector: only %q, %q", label,
			"metadata.name", "metadata.namespace")
	}
	return "", "", fmt.Errorf("field label not supported: %s", label)
}

// counts reports whether the remaining items of a page are counted, as in the real server.
func (s *selector) counts() bool {
	return s.labels.Empty() && s.fields.Empty() && s.shards == nil
}

// matches ignores the namespace: lists read only the keys in it.
func (s *selector) matches(v *version) bool {
	return s.labels.Matches(v.labels) && (s.fields.Empty() || s.fields.Matches(v.fieldView())) &&
		s.inShards(v)
}

func (s *selector) inShards(v *version) bool {
	if s.shards == nil {
		return true
	}
	in, err := s.shards.Matches(&metav1.PartialObjectMetadata{ObjectMeta: v.object.meta})
	return in && err == nil // it fails for another field, which parseShards refuses
}

// fieldView presents a version to field selectors.
type fieldView struct{ v *version }

func (v *version) fieldView() fields.Fields { return fieldView{v} }

// Has reports whether the object has the field.
func (f fieldView) Has(field string) bool {
	_, ok := f.v.fields[field]
	return ok || !f.v.resource.builtin || field == "metadata.name" || field == "metadata.namespace"
}

// Get returns the field's value, or "" if it has no value.
func (f fieldView) Get(field string) string {
	switch field {
	case "metadata.name":
		return f.v.name
	case "metadata.namespace":
		return f.v.namespace
	}
	if !f.v.resource.builtin {
		return f.v.object.fieldAt(field)
	}
	return f.v.fields[field]
}

// fieldSet returns the values that field selectors see besides name and namespace. Those of a
// custom kind are looked up when they are asked for, because its definition may change.
func (r *Resource) fieldSet(obj *object) map[string]string {
	if len(r.Fields) == 0 || !r.builtin {
		return nil
	}
	set := make(map[string]string, len(r.Fields))
	seen := map[string]fieldMap{}
	for _, path := range r.Fields {
		set[path] = lookup(obj.fields, path, seen)
	}
	r.defaultFields(set, obj)
	return set
}

// defaultFields fills in the defaults that Kubernetes uses for selection although the object leaves
// them out.
func (r *Resource) defaultFields(set map[string]string, obj *object) {
	orDefault := func(path, value string) {
		if set[path] == "" && slices.Contains(r.Fields, path) {
			set[path] = value
		}
	}
	switch r.Plural {
	case "pods":
		orDefault("spec.restartPolicy", "Always")
		orDefault("spec.schedulerName", "default-scheduler")
		orDefault("spec.hostNetwork", "false")
	case "nodes":
		orDefault("spec.unschedulable", "false")
	case "services":
		orDefault("spec.type", "ClusterIP")
	case "secrets":
		orDefault("type", "Opaque")
	case "events":
		if set["source"] = obj.fieldAt("source.component"); set["source"] == "" {
			set["source"] = obj.fieldAt("reportingComponent")
		}
	}
}
