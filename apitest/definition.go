// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const definitionGroup = "apiextensions.k8s.io"

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
	Versions []struct {
		Name   string `json:"name"`
		Served bool   `json:"served"`
		Schema struct {
			OpenAPIV3Schema json.RawMessage `json:"openAPIV3Schema"`
		} `json:"schema"`
		Subresources struct {
			Status *struct{} `json:"status"`
		} `json:"subresources"`
		SelectableFields []struct {
			JSONPath string `json:"jsonPath"`
		} `json:"selectableFields"`
	} `json:"versions"`
}

func (d *definition) resources() []*Resource {
	var all []*Resource
	for _, v := range d.Versions {
		r := &Resource{
			Group: d.Group, Version: v.Name, Kind: d.Names.Kind, Plural: d.Names.Plural,
			Singular:   d.Names.Singular,
			ShortNames: d.Names.ShortNames, Categories: d.Names.Categories,
			Namespaced: d.Scope == "Namespaced", Status: v.Subresources.Status != nil,
			traits: traits{unserved: !v.Served},
		}
		r.types = customTypes(r.GroupVersionKind(), v.Schema.OpenAPIV3Schema)
		for _, f := range v.SelectableFields {
			if len(f.JSONPath) > 1 {
				r.Fields = append(r.Fields, f.JSONPath[1:])
			}
		}
		all = append(all, r)
	}
	return all
}

// defineLocked starts to serve the kind that a CustomResourceDefinition defines and reports that in
// its status, as the controllers in a real server do a moment later. Each version is a separate
// collection: there is no conversion. A change of a definition adds versions, and serves others or
// no longer; the objects of a version stay. A served version gets the new schema, and is otherwise
// left as it is.
func (s *Server) defineLocked(obj *object) error {
	var d definition
	if err := json.Unmarshal(obj.fields["spec"], &d); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	kind := s.definitions.GroupVersionKind().GroupKind()
	if want := d.Names.Plural + "." + d.Group; obj.meta.Name != want {
		return apierrors.NewInvalid(kind, obj.meta.Name, field.ErrorList{field.Invalid(
			field.NewPath("metadata", "name"), obj.meta.Name,
			`must be spec.names.plural+"."+spec.group`)})
	}
	if len(d.Versions) == 0 {
		return apierrors.NewInvalid(kind, obj.meta.Name, field.ErrorList{field.Required(
			field.NewPath("spec", "versions"), "must have at least one version")})
	}
	for _, r := range d.resources() {
		if err := r.validate(); err != nil {
			return apierrors.NewInvalid(kind, obj.meta.Name,
				field.ErrorList{field.Invalid(field.NewPath("spec"), r.Plural, err.Error())})
		}
		served := s.log.resources.find(r.Group, r.Version, r.Plural)
		switch {
		case served == nil && !r.unserved:
			s.log.serveLocked(r)
		case served != nil && r.unserved && !served.builtin:
			s.log.unserveLocked(served)
		case served != nil && !served.builtin:
			served.types = r.types
		}
	}
	if len(obj.fields["status"]) == 0 || !json.Valid(obj.fields["status"]) ||
		string(obj.fields["status"]) == "{}" {
		status, err := d.established()
		if err != nil {
			return err
		}
		obj.setField("status", status)
	}
	return nil
}

func (d *definition) established() (json.RawMessage, error) {
	now := time.Now().UTC().Format(time.RFC3339)
	condition := func(kind, reason, message string) map[string]string {
		return map[string]string{
			"type": kind, "status": "True", "reason": reason, "message": message,
			"lastTransitionTime": now,
		}
	}
	names := d.Names
	if names.ListKind == "" {
		names.ListKind = names.Kind + "List"
	}
	var stored []string
	for _, v := range d.Versions {
		stored = append(stored, v.Name)
	}
	raw, err := json.Marshal(map[string]any{
		"acceptedNames":  names,
		"storedVersions": stored,
		"conditions": []any{
			condition("NamesAccepted", "NoConflicts", "no conflicts found"),
			condition("Established", "InitialNamesAccepted",
				"the initial names have been accepted"),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("encode status of definition: %w", err)
	}
	return canonical(raw)
}

// undefineLocked stops serving a kind before its definition is deleted. It deletes the kind's
// objects and ends its open watches.
func (s *Server) undefineLocked(obj *object) {
	var d definition
	if json.Unmarshal(obj.fields["spec"], &d) != nil {
		return
	}
	for _, r := range d.resources() {
		s.log.forgetLocked(r)
		served := s.log.resources.find(r.Group, r.Version, r.Plural)
		if served == nil || served.builtin {
			continue
		}
		c := s.log.collectionLocked(served)
		var last []*version
		c.stateLocked("", "", s.log.rv, func(v *version) bool {
			last = append(last, v)
			return true
		})
		for _, v := range last {
			s.log.deleteLocked(c, v)
		}
		s.log.unserveLocked(served)
		s.log.forgetLocked(served)
	}
}
