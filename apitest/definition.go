// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kubeversion "k8s.io/apimachinery/pkg/version"

	"example.com/informerstack/apitest/internal/table"
)

const definitionGroup = "apiextensions.k8s.io"

// anyFields is a schema without rules: any field may be set, and a list only as a whole.
const anyFields = `{"type":"object","x-kubernetes-preserve-unknown-fields":true}`

func (r *Resource) isDefinitions() bool {
	return r.builtin && r.Group == definitionGroup && r.Plural == "customresourcedefinitions"
}

// definition is the part of a CustomResourceDefinition's spec that the server follows.
type definition struct {
	Group string `json:"group"`
	Scope string `json:"scope"`
	Names struct {
		Plural     string   `json:"plural"`
		Singular   string   `json:"singular,omitempty"`
		ShortNames []string `json:"shortNames,omitempty"`
		Kind       string   `json:"kind"`
		ListKind   string   `json:"listKind,omitempty"`
		Categories []string `json:"categories,omitempty"`
	} `json:"names"`
	Conversion struct {
		Strategy string `json:"strategy"`
	} `json:"conversion"`
	Versions []definedVersion `json:"versions"`
}

type definedVersion struct {
	Name               string  `json:"name"`
	Served             bool    `json:"served"`
	Storage            bool    `json:"storage"`
	Deprecated         bool    `json:"deprecated"`
	DeprecationWarning *string `json:"deprecationWarning"`
	Schema             struct {
		OpenAPI json.RawMessage `json:"openAPIV3Schema"`
	} `json:"schema"`
	Subresources struct {
		Status *struct{}   `json:"status"`
		Scale  *scalePaths `json:"scale"`
	} `json:"subresources"`
	SelectableFields []struct {
		JSONPath string `json:"jsonPath"`
	} `json:"selectableFields"`
	Columns []table.Column `json:"additionalPrinterColumns"`
}

// storage returns the version that is stored: the first one if the definition does not say it.
func (d *definition) storage() int {
	return max(0, slices.IndexFunc(d.Versions, func(v definedVersion) bool { return v.Storage }))
}

// resources returns the versions in the order of the definition, without their schemas.
func (d *definition) resources() []*Resource {
	var all []*Resource
	openAPI := map[string]string{} // by version
	for i := range d.Versions {
		v := &d.Versions[i]
		r := &Resource{
			Group: d.Group, Version: v.Name, Kind: d.Names.Kind, Plural: d.Names.Plural,
			Singular:   d.Names.Singular,
			ShortNames: d.Names.ShortNames, Categories: d.Names.Categories,
			Namespaced: d.Scope == "Namespaced", Status: v.Subresources.Status != nil,
			traits: traits{
				unserved: !v.Served, deprecation: d.deprecation(v),
				scale: v.Subresources.Scale, table: table.Custom(v.Columns),
			},
		}
		openAPI[v.Name] = string(v.Schema.OpenAPI)
		for _, f := range v.SelectableFields {
			if len(f.JSONPath) > 1 {
				r.Fields = append(r.Fields, f.JSONPath[1:])
			}
		}
		all = append(all, r)
	}
	types := customTypes(schema.GroupKind{Group: d.Group, Kind: d.Names.Kind}, openAPI)
	for _, r := range all {
		r.types = types
	}
	return all
}

// deprecation returns the warning of a deprecated version, which names the newest served one that
// replaces it.
func (d *definition) deprecation(v *definedVersion) string {
	if !v.Deprecated {
		return ""
	}
	if v.DeprecationWarning != nil {
		return *v.DeprecationWarning
	}
	newest := v.Name
	for _, other := range d.Versions {
		if other.Served && !other.Deprecated &&
			kubeversion.CompareKubeAwareVersionStrings(newest, other.Name) < 0 {
			newest = other.Name
		}
	}
	text := fmt.Sprintf("%s/%s %s is deprecated", d.Group, v.Name, d.Names.Kind)
	if newest != v.Name {
		text += fmt.Sprintf("; use %s/%s %s", d.Group, newest, d.Names.Kind)
	}
	return text
}

func validateDefinitionName(obj *object) field.ErrorList {
	var d definition
	_ = json.Unmarshal(obj.fields["spec"], &d) // defineLocked reports it
	if want := d.Names.Plural + "." + d.Group; obj.meta.Name != want {
		return field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), obj.meta.Name,
			`must be spec.names.plural+"."+spec.group`)}
	}
	return nil
}

// defineLocked starts to serve the kind that a CustomResourceDefinition defines and reports that in
// its status, as the controllers in a real server do a moment later. All versions of the kind share
// one collection. A change of the spec ends the open watches of the kind; its objects stay.
func (s *Server) defineLocked(obj *object, old *version) error {
	var d definition
	if err := json.Unmarshal(obj.fields["spec"], &d); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if old == nil || !bytes.Equal(old.object.fields["spec"], obj.fields["spec"]) {
		if err := s.refuseDefinitionLocked(&d, obj, old); err != nil {
			return apierrors.NewInvalid(obj.gvk.GroupKind(), obj.meta.Name, field.ErrorList{err})
		}
		if err := s.serveDefinedLocked(&d, obj); err != nil {
			return err
		}
		d.report(obj)
	}
	return nil
}

// refuseDefinitionLocked reports what the server cannot follow, with and without schemas: changes
// that the stored objects do not allow, and names that another definition has. A real server stores
// the latter, and does not serve the kind.
func (s *Server) refuseDefinitionLocked(d *definition, obj *object, old *version) *field.Error {
	at, names := field.NewPath("spec"), field.NewPath("spec", "names")
	if d.Scope != "Cluster" && d.Scope != "Namespaced" {
		return field.NotSupported(at.Child("scope"), d.Scope, []string{"Cluster", "Namespaced"})
	}
	for _, r := range s.log.resources.all {
		if r.Group != d.Group || r.Plural == d.Names.Plural {
			continue
		}
		if r.Kind == d.Names.Kind || slices.ContainsFunc(r.ShortNames, func(name string) bool {
			return slices.Contains(d.Names.ShortNames, name)
		}) {
			return field.Invalid(names, d.Names.Kind, fmt.Sprintf("apitest: %s has this kind, or "+
				"one of the short names; a real server would not serve it", r.GroupResource()))
		}
	}
	if old == nil {
		return nil
	}
	var was definition
	_ = json.Unmarshal(old.object.fields["spec"], &was) // it was stored
	switch {
	case d.Scope != was.Scope:
		return field.Invalid(at.Child("scope"), d.Scope, validation.FieldImmutableErrorMsg)
	case d.Names.Kind != was.Names.Kind:
		return field.Invalid(names.Child("kind"), d.Names.Kind, validation.FieldImmutableErrorMsg)
	}
	var status struct{ StoredVersions []string }
	_ = json.Unmarshal(obj.fields["status"], &status) // the server has written it
	for i, name := range status.StoredVersions {
		if !slices.ContainsFunc(d.Versions, func(v definedVersion) bool { return v.Name == name }) {
			return field.Invalid(field.NewPath("status", "storedVersions").Index(i), name,
				fmt.Sprintf("missing from spec.versions; %[1]s was previously a storage version, "+
					"and must remain in spec.versions until a storage migration ensures no data "+
					"remains persisted in %[1]s and removes %[1]s from status.storedVersions",
					name))
		}
	}
	return nil
}

// serveDefinedLocked serves the versions of d in the place of those that were served before.
func (s *Server) serveDefinedLocked(d *definition, obj *object) error {
	invalid := func(err *field.Error) error {
		return apierrors.NewInvalid(s.definitions.GroupVersionKind().GroupKind(), obj.meta.Name,
			field.ErrorList{err})
	}
	if len(d.Versions) == 0 {
		return invalid(field.Required(field.NewPath("spec", "versions"),
			"must have at least one version"))
	}
	var schemas map[string]Schema
	if s.options.Schemas != nil {
		var err error
		if schemas, err = s.options.Schemas.Compile(obj.content()); err != nil {
			return err
		}
	}
	versions := d.resources()
	for i, r := range versions {
		if err := r.validate(); err != nil {
			return invalid(field.Invalid(field.NewPath("spec"), r.Plural, err.Error()))
		}
		for _, column := range d.Versions[i].Columns {
			if err := column.Check(); err != nil {
				return invalid(field.Invalid(field.NewPath("spec", "versions"), column.JSONPath,
					err.Error()))
			}
		}
		r.schema = schemas[r.Version]
	}
	stored := versions[d.storage()]
	if c := s.log.kindLocked(stored.GroupResource()); c != nil {
		if c.resource.builtin {
			return nil
		}
		s.log.unserveLocked(c)
		c.resource = stored
	}
	s.log.registerLocked(stored, versions...)
	return nil
}

// warnIgnored warns the writer of a definition of what the server does not follow.
func (c *call) warnIgnored(obj *object) {
	if !c.resource.isDefinitions() || c.Verb == "get" || c.Verb == "delete" {
		return
	}
	var d definition
	_ = json.Unmarshal(obj.fields["spec"], &d) // defineLocked reports it
	for _, v := range d.Versions {
		text := string(v.Schema.OpenAPI)
		if text != "" && text != anyFields && c.server.options.Schemas == nil {
			c.warn("this server ignores the schema of version " + v.Name)
		}
	}
	if d.Conversion.Strategy == "Webhook" {
		c.warn("this server ignores the conversion webhook")
	}
}

// report writes the status of a definition that is followed. The versions that were stored before
// stay in it.
func (d *definition) report(obj *object) {
	var before struct{ Conditions []any }
	_ = json.Unmarshal(obj.fields["status"], &before) // what is no status has no conditions
	if len(before.Conditions) == 0 {
		obj.setCondition("NamesAccepted", "True", "NoConflicts", "no conflicts found")
		obj.setCondition("Established", "True", "InitialNamesAccepted",
			"the initial names have been accepted")
	}
	obj.edit("status", func(status map[string]any) {
		d.Names.ListKind = cmp.Or(d.Names.ListKind, d.Names.Kind+"List")
		status["acceptedNames"] = d.Names
		was, _ := status["storedVersions"].([]any)
		if stored := d.Versions[d.storage()].Name; !slices.Contains(was, any(stored)) {
			status["storedVersions"] = append(was, stored)
		}
	})
}

// undefineLocked stops serving a kind before its definition is deleted. It deletes the kind's
// objects and ends its open watches.
func (s *Server) undefineLocked(obj *object) {
	var d definition
	if json.Unmarshal(obj.fields["spec"], &d) != nil {
		return
	}
	c := s.log.kindLocked(schema.GroupResource{Group: d.Group, Resource: d.Names.Plural})
	if c == nil || c.resource.builtin {
		return
	}
	var last []*version
	c.stateLocked("", "", s.log.rv, func(v *version) bool {
		last = append(last, v)
		return true
	})
	for _, v := range last {
		s.log.deleteLocked(c, v)
	}
	s.log.unserveLocked(c)
	s.log.forgetLocked(c)
}
