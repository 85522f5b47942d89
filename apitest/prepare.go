// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/uuid"
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
	if c == nil || len(meta.OwnerReferences) < 2 {
		return
	}
	var kept []metav1.OwnerReference
	var twice []string
	seen := map[string]bool{} // by all fields: a reference has pointers
	for _, ref := range meta.OwnerReferences {
		if seen[ref.String()] {
			twice = append(twice, string(ref.UID))
			continue
		}
		seen[ref.String()] = true
		kept = append(kept, ref)
	}
	if len(twice) == 0 {
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
	defer r.complete(obj, nil)
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
	if r.approval {
		keepRequest(obj, old, subresource)
	}
	if subresource != "status" {
		r.complete(obj, old)
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

// own fills in the defaults of an object, and notes which fields are the writer's: these, but not
// those that admission or the server sets later.
func (s *Server) own(t target, obj, old *object, w write) {
	if t.resource.isNamespaces() {
		labelNamespace(obj)
	}
	if r := t.resource; r.rules != nil && t.subresource != "status" {
		obj.fill(func(content map[string]any) { r.rules.Default(content) })
	}
	s.track(t, obj, old, w)
}

// complete fills in what an object of a built-in kind leaves out, and what the server decides, by
// the rules of the kind.
func (r *Resource) complete(obj, old *object) {
	if r.rules != nil {
		obj.fill(func(content map[string]any) {
			r.rules.Default(content) // of what admission has added
			r.rules.Complete(content, old.content())
		})
	}
}

// fill changes the object by its content.
func (o *object) fill(change func(content map[string]any)) {
	content := o.content()
	change(content)
	filled, err := fromContent(content)
	if err != nil {
		return // accept reports it
	}
	o.fields = filled.fields
	for name, value := range content {
		if value == nil { // parsed objects have no such field, and some kinds show it
			o.setField(name, json.RawMessage("null"))
		}
	}
	m, from := &o.meta, &filled.meta
	m.Labels, m.Annotations, m.Finalizers = from.Labels, from.Annotations, from.Finalizers
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
