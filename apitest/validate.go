// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// matchNamespace gives the object the namespace of the request, and refuses an object that names
// another.
func matchNamespace(r *Resource, namespace string, meta *metav1.ObjectMeta) error {
	if !r.Namespaced {
		meta.Namespace = ""
		return nil
	}
	if meta.Namespace == "" {
		meta.Namespace = namespace
	}
	if meta.Namespace != namespace {
		return apierrors.NewBadRequest(
			"the namespace of the provided object does not match the namespace sent on the request")
	}
	return nil
}

// singleOwners removes the owner references that are there twice, and warns of them. A nil call is
// a direct write.
func (c *call) singleOwners(meta *metav1.ObjectMeta) {
	var kept []metav1.OwnerReference
	var twice []string
	seen := map[types.UID]bool{}
	for _, ref := range meta.OwnerReferences {
		same := func(other metav1.OwnerReference) bool { return reflect.DeepEqual(ref, other) }
		if seen[ref.UID] && slices.ContainsFunc(kept, same) {
			twice = append(twice, string(ref.UID))
			continue
		}
		seen[ref.UID] = true
		kept = append(kept, ref)
	}
	if len(twice) == 0 || c == nil {
		return
	}
	meta.OwnerReferences = kept
	when := ""
	if c.Verb == "patch" {
		when = " after mutating admission happens"
	}
	c.warn(fmt.Sprintf(".metadata.ownerReferences contains duplicate entries%s; API server dedups "+
		"owner references in 1.20+, and may reject such requests as early as 1.24; please fix "+
		"your requests; duplicate UID(s) observed: %s", when, strings.Join(twice, ", ")))
}

const (
	generatedSuffixLen = 5
	generatedPrefixLen = 63 - generatedSuffixLen
)

func generateName(prefix string) string {
	return prefix[:min(len(prefix), generatedPrefixLen)] + rand.String(generatedSuffixLen)
}

// prepareForCreate sets what the server decides about a new object.
func (r *Resource) prepareForCreate(obj *object, keepStatus bool) {
	m := &obj.meta
	m.UID = uuid.NewUUID()
	m.CreationTimestamp = metav1.Now().Rfc3339Copy()
	m.DeletionTimestamp, m.DeletionGracePeriodSeconds = nil, nil
	//lint:ignore SA1019 old clients send it
	m.SelfLink = ""
	if !r.noGeneration { // otherwise the client's value stays
		m.Generation = 1
	}
	registers := r.builtin && r.Plural == "nodes" // a kubelet creates its node with a status
	if r.Status && !keepStatus && !registers {
		obj.setField("status", nil)
	}
	if r.isNamespaces() {
		prepareNamespace(obj)
	}
	defer r.rules.prepare(obj, nil)
	if _, ok := obj.fields["status"]; ok || r.Group != "" {
		return
	}
	switch r.Plural {
	case "pods":
		obj.setField("status", json.RawMessage(`{"phase":"Pending"}`))
	case "namespaces":
		obj.setField("status", json.RawMessage(`{"phase":"Active"}`))
	}
}

// prepareForUpdate carries over the values that an update cannot change.
func (r *Resource) prepareForUpdate(obj, old *object, subresource string) {
	switch {
	case subresource == "status":
		status := obj.fields["status"]
		meta := obj.meta
		c := old.copy()
		c.setField("status", status)
		r.resetMeta(&meta, &c.meta)
		c.meta = meta
		*obj = *c
	case (subresource == "" || subresource == finalize) && r.Status:
		obj.setField("status", old.fields["status"])
	}
	if subresource != "status" {
		r.rules.prepare(obj, old)
	}
	if r.isNamespaces() {
		labelNamespace(obj)
		if subresource != finalize {
			obj.setField("spec", old.fields["spec"])
		}
	}
	m, was := &obj.meta, &old.meta
	m.Generation = was.Generation
	//lint:ignore SA1019 old clients send it
	m.SelfLink = ""
	if m.UID == "" {
		m.UID = was.UID
	}
	m.CreationTimestamp = was.CreationTimestamp
	m.DeletionTimestamp = was.DeletionTimestamp
	if m.DeletionGracePeriodSeconds == nil {
		m.DeletionGracePeriodSeconds = was.DeletionGracePeriodSeconds
	}
	ofSpec := subresource != "status" && subresource != "binding"
	if ofSpec && !r.noGeneration && r.specChanged(obj, old) {
		m.Generation++
	}
}

// resetMeta undoes the changes to the metadata that a write of the status cannot make. In a
// built-in kind it can change annotations, and in most of them labels.
func (r *Resource) resetMeta(m, was *metav1.ObjectMeta) {
	switch {
	case !r.builtin || r.isDefinitions():
		reset := *was
		reset.ResourceVersion, reset.UID = m.ResourceVersion, m.UID
		reset.ManagedFields = m.ManagedFields
		*m = reset
	case r.keepsLabels():
		m.Labels = was.Labels
	case r.Group == "" && r.Plural == "pods":
		m.OwnerReferences = was.OwnerReferences
	}
}

// keepsLabels reports whether a write of the status of a built-in kind cannot change its labels.
func (r *Resource) keepsLabels() bool { return r.Group == "apps" && r.Plural == "deployments" }

// specChanged reports whether the object differs in what its generation counts: for a built-in kind
// the spec, for a custom one everything but metadata, and but status where that is a subresource.
func (r *Resource) specChanged(obj, old *object) bool {
	if r.builtin {
		if _, ok := old.fields["spec"]; ok {
			return string(obj.fields["spec"]) != string(old.fields["spec"])
		}
	}
	except := ""
	if r.Status {
		except = "status"
	}
	return !obj.sameFields(old, except)
}

func (r *Resource) validateName(name string, prefix bool) []string {
	switch r.name {
	case labelName:
		return validation.NameIsDNSLabel(name, prefix)
	case dns1035Name:
		return validation.NameIsDNS1035Label(name, prefix)
	case pathSegmentName:
		//lint:ignore SA1019 what it should be replaced by is a copy of it
		return path.ValidatePathSegmentName(name, prefix)
	}
	return validation.NameIsDNSSubdomain(name, prefix)
}

// accept checks an object by the rules of its kind, and gives it the form that is stored. old is
// the object that it replaces, or nil.
func (r *Resource) accept(obj, old *object, subresource string) error {
	errs := r.validateMeta(obj, old)
	if subresource != "binding" { // which sets the node of a pod, as no update can
		errs = append(errs, r.rules.refuse(obj, old)...)
	}
	if r.isDefinitions() {
		errs = append(errs, validateDefinitionName(obj)...)
	}
	if r.schema != nil {
		errs = append(errs, r.schema.Validate(obj.content(), old.content(), subresource)...)
	}
	errs = append(errs, r.validateScale(obj, subresource)...)
	if len(errs) > 0 {
		return apierrors.NewInvalid(r.GroupVersionKind().GroupKind(), obj.meta.Name, errs)
	}
	return r.family.stored.conform(obj, true)
}

// validateMeta checks an object's metadata, and compares it with the old object's if that is not
// nil. As from the real server, an error of a custom kind's update is reported twice.
func (r *Resource) validateMeta(obj, old *object) field.ErrorList {
	at := field.NewPath("metadata")
	errs := validation.ValidateObjectMeta(&obj.meta, r.Namespaced, r.validateName, at)
	if r.builtin && !r.anyFinalizer {
		errs = append(errs, plainFinalizers(obj.meta.Finalizers, at.Child("finalizers"))...)
	}
	if old != nil {
		errs = append(errs, validation.ValidateObjectMetaUpdate(&obj.meta, &old.meta, at)...)
		if !r.builtin {
			errs = append(errs, errs...)
		}
	}
	return errs
}

// plainFinalizers reports the finalizers without a domain that Kubernetes does not have.
func plainFinalizers(finalizers []string, at *field.Path) (errs field.ErrorList) {
	standard := []string{namespaceFinalizer, metav1.FinalizerOrphanDependents,
		metav1.FinalizerDeleteDependents}
	for i, f := range finalizers {
		if !strings.Contains(f, "/") && !slices.Contains(standard, f) {
			errs = append(errs, field.Invalid(at.Index(i), f,
				"name is neither a standard finalizer name nor is it fully qualified"))
		}
	}
	return errs
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
