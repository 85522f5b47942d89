// SPDX-License-Identifier: Apache-2.0

// Package openapi makes the documents from which kubectl learns the fields of the kinds.
//
// A document has the schemas of kinds, which kubectl explain prints. The paths of version 3 have
// only the operation patch: from its parameters kubectl learns that the server validates fields
// itself. For a List, it asks for the one document of version 2, and validates the objects in it
// before it sends them.
//
// Read openapi.go, models.go (schemas of Go types), then openapi2.go.
//
// There are no goroutines, and no state.
//
// To see it work: go test -run TestOpenAPI ./apitest
package openapi

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is one version of a kind.
type Kind struct {
	schema.GroupVersionKind
	ObjectPath string // of an object, with the names in braces
	// Type is an empty object of the Go type, or nil if that is not known.
	Type runtime.Object
	// Schema is that of a kind without a type. nil allows any fields.
	Schema map[string]any
}

// Document3 returns the document of version 3 of one group and version.
func Document3(serverVersion string, kinds []Kind) any {
	paths, found := map[string]any{}, &models{byName: map[string]any{}}
	for _, k := range kinds {
		paths[k.ObjectPath] = map[string]any{"patch": k.patchOperation()}
		if k.Type != nil {
			found.addTyped(k)
		} else {
			found.addCustom(k)
		}
	}
	return map[string]any{
		"openapi":    "3.0.0",
		"info":       info(serverVersion),
		"paths":      paths,
		"components": map[string]any{"schemas": found.byName},
	}
}

// Document2 returns the document of version 2. The schemas of kinds without a type allow any
// fields, since version 2 cannot express them all.
func Document2(serverVersion string, kinds []Kind) any {
	all := &models{byName: map[string]any{}, v2: true}
	for _, k := range kinds {
		if k.Type != nil {
			all.addTyped(k)
			continue
		}
		all.byName[k.GroupVersion().String()+"."+k.Kind] = map[string]any{"type": "object",
			kindExtension: k.extension()}
	}
	return map[string]any{
		"swagger":     "2.0",
		"info":        info(serverVersion),
		"paths":       map[string]any{},
		"definitions": all.byName,
	}
}

func info(version string) map[string]string {
	return map[string]string{"title": "Kubernetes", "version": version}
}

// addTyped adds the schema of a kind's Go type.
func (m *models) addTyped(k Kind) {
	m.addType(k.Type)[kindExtension] = k.extension()
}

// addCustom adds the schema of a kind without a type, with the fields that all objects have.
func (m *models) addCustom(k Kind) {
	model := k.Schema
	if model == nil {
		model = map[string]any{"x-kubernetes-preserve-unknown-fields": true}
	}
	properties, _ := model["properties"].(map[string]any)
	if properties == nil {
		properties = map[string]any{}
	}
	partial := &metav1.PartialObjectMetadata{}
	common, _ := m.addType(partial)["properties"].(map[string]any)
	delete(m.byName, modelName(partial))
	maps.Copy(properties, common)
	model["type"], model["properties"] = "object", properties
	model[kindExtension] = k.extension()
	group := strings.Split(k.Group, ".")
	slices.Reverse(group)
	m.byName[strings.Join(append(group, k.Version, k.Kind), ".")] = model
}

const kindExtension = "x-kubernetes-group-version-kind"

func (k Kind) extension() []any { return []any{k.named()} }

func (k Kind) named() map[string]string {
	return map[string]string{"group": k.Group, "version": k.Version, "kind": k.Kind}
}

func (k Kind) patchOperation() map[string]any {
	parameter := func(name string) map[string]any {
		return map[string]any{"name": name, "in": "query",
			"schema": map[string]any{"type": "string", "uniqueItems": true}}
	}
	return map[string]any{
		"x-kubernetes-action": "patch",
		kindExtension:         k.named(),
		"parameters": []any{parameter("dryRun"), parameter("fieldManager"),
			parameter("fieldValidation")},
		"responses": map[string]any{"200": map[string]string{"description": "OK"}},
	}
}
