// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// serveOpenAPI answers the paths below /openapi. A document has the schemas of a version's
// kinds, which kubectl explain prints. Its paths have only the operation patch: from its parameters
// kubectl learns that the server validates fields itself. For a List, it asks for the one document
// of version 2, and validates the objects in it before it sends them.
func (c *call) serveOpenAPI(path string) bool {
	if path == "openapi/v2" {
		return c.serveOpenAPI2()
	}
	rest, ok := strings.CutPrefix(path, "openapi/v3")
	if !ok {
		return false
	}
	s := c.server
	s.log.mu.RLock()
	defer s.log.mu.RUnlock()
	if rest == "" {
		paths := map[string]any{}
		for _, r := range s.log.resources.all {
			at := r.versionPath()
			paths[at] = map[string]string{"serverRelativeURL": "/openapi/v3/" + at}
		}
		writeJSON(c.w, http.StatusOK, map[string]any{"paths": paths})
		return true
	}
	paths, found := map[string]any{}, &models{byName: map[string]any{}}
	for _, r := range s.log.resources.all {
		if r.versionPath() == strings.Trim(rest, "/") {
			paths["/"+r.objectPath()] = map[string]any{"patch": r.patchOperation()}
			s.modelLocked(r, found)
		}
	}
	if len(paths) == 0 {
		return false
	}
	writeJSON(c.w, http.StatusOK, map[string]any{
		"openapi":    "3.0.0",
		"info":       map[string]string{"title": "Kubernetes", "version": serverVersion.GitVersion},
		"paths":      paths,
		"components": map[string]any{"schemas": found.byName},
	})
	return true
}

// modelLocked adds the schema of the kind: that of its Go type, or else that of its definition with
// the fields that all objects have.
func (s *Server) modelLocked(r *Resource, all *models) {
	var model map[string]any
	if typed := s.codecs.newObject(r); typed != nil {
		model = all.addType(typed)
	} else {
		model = s.definedSchemaLocked(r)
		properties, _ := model["properties"].(map[string]any)
		if properties == nil {
			properties = map[string]any{}
		}
		common := all.addType(&metav1.PartialObjectMetadata{})["properties"].(map[string]any)
		delete(all.byName, modelName(&metav1.PartialObjectMetadata{}))
		for name, property := range common {
			properties[name] = property
		}
		model["type"], model["properties"] = "object", properties
		group := strings.Split(r.Group, ".")
		slices.Reverse(group)
		all.byName[strings.Join(append(group, r.Version, r.Kind), ".")] = model
	}
	model[gvkExtension] = []any{r.patchOperation()[gvkExtension]}
}

// definedSchemaLocked returns the schema in the definition of a custom kind. A kind without one has
// any fields.
func (s *Server) definedSchemaLocked(r *Resource) map[string]any {
	definition := s.log.collectionLocked(s.definitions).get(r.GroupResource().String())
	if definition != nil {
		var spec struct {
			Versions []struct {
				Name   string
				Schema struct{ OpenAPIV3Schema map[string]any }
			}
		}
		_ = json.Unmarshal(definition.object.fields["spec"], &spec) // it was read before
		for _, v := range spec.Versions {
			if v.Name == r.Version && v.Schema.OpenAPIV3Schema != nil {
				return v.Schema.OpenAPIV3Schema
			}
		}
	}
	return map[string]any{"x-kubernetes-preserve-unknown-fields": true}
}

const gvkExtension = "x-kubernetes-group-version-kind"

// versionPath is the path of the resource's group and version, without the first slash.
func (r *Resource) versionPath() string {
	if r.Group == "" {
		return "api/" + r.Version
	}
	return "apis/" + schema.GroupVersion{Group: r.Group, Version: r.Version}.String()
}

func (r *Resource) objectPath() string {
	at := r.versionPath()
	if r.Namespaced {
		at += "/namespaces/{namespace}"
	}
	return at + "/" + r.Plural + "/{name}"
}

func (r *Resource) patchOperation() map[string]any {
	parameter := func(name string) map[string]any {
		return map[string]any{"name": name, "in": "query",
			"schema": map[string]any{"type": "string", "uniqueItems": true}}
	}
	return map[string]any{
		"x-kubernetes-action": "patch",
		gvkExtension: map[string]string{"group": r.Group, "version": r.Version,
			"kind": r.Kind},
		"parameters": []any{parameter("dryRun"), parameter("fieldManager"),
			parameter("fieldValidation")},
		"responses": map[string]any{"200": map[string]string{"description": "OK"}},
	}
}
