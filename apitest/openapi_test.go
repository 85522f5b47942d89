// SPDX-License-Identifier: Apache-2.0

package apitest_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"example.com/informerstack/apitest"
)

// schemas returns the schemas in a document.
func schemas(t *testing.T, s *apitest.Server, path string) map[string]map[string]any {
	got := send(t, s, "GET", "/openapi/v3/"+path, "", "")
	require.Equal(t, 200, got.code, got.body)
	var document struct {
		Components struct {
			Schemas map[string]map[string]any `json:"schemas"`
		} `json:"components"`
	}
	require.NoError(t, json.Unmarshal([]byte(got.body), &document))
	assert.Contains(t, got.body, `"name":"fieldValidation"`, "a parameter of patches")
	return document.Components.Schemas
}

func fieldOf(model map[string]any, name string) map[string]any {
	properties, _ := model["properties"].(map[string]any)
	property, _ := properties[name].(map[string]any)
	return property
}

// The schemas of built-in kinds are those of their Go types.
func TestOpenAPI_DescribesTypes(t *testing.T) {
	s := start(t, apitest.Options{Scheme: scheme.Scheme})
	all := schemas(t, s, "apis/apps/v1")
	deployment := all["io.k8s.api.apps.v1.Deployment"]
	assert.Equal(t, []any{map[string]any{"group": "apps", "version": "v1", "kind": "Deployment"}},
		deployment["x-kubernetes-group-version-kind"])
	assert.Equal(t, []any{map[string]any{
		"$ref": "#/components/schemas/io.k8s.api.apps.v1.DeploymentSpec"}},
		fieldOf(deployment, "spec")["allOf"])
	spec := all["io.k8s.api.apps.v1.DeploymentSpec"]
	assert.Equal(t, []any{"selector", "template"}, spec["required"])
	assert.Equal(t, "integer", fieldOf(spec, "replicas")["type"])
	assert.Contains(t, fieldOf(spec, "replicas")["description"], "Number of desired pods")
	assert.NotEmpty(t, fieldOf(deployment, "kind")["description"], "of an inlined struct")
	assert.Equal(t, map[string]any{"type": "string", "format": "date-time"},
		all["io.k8s.apimachinery.pkg.apis.meta.v1.Time"])
	assert.Len(t, all["io.k8s.apimachinery.pkg.util.intstr.IntOrString"]["oneOf"], 2)
}

// The schema of a custom kind is that of its definition, with the fields of every object.
func TestOpenAPI_DescribesDefinitions(t *testing.T) {
	s := start(t, apitest.Options{Resources: []apitest.Resource{
		{Group: "example.com", Version: "v1", Kind: "Free", Plural: "frees"}}})
	got := send(t, s, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "", `{
		"metadata":{"name":"gears.example.com"},"spec":{"group":"example.com","scope":"Namespaced",
		"names":{"plural":"gears","kind":"Gear"},"versions":[{"name":"v1","served":true,
		"storage":true,"schema":{"openAPIV3Schema":{"type":"object","description":"A wheel.",
		"properties":{"spec":{"type":"object","description":"Its shape."}}}}}]}}`)
	require.Equal(t, 201, got.code, got.body)
	all := schemas(t, s, "apis/example.com/v1")
	gear := all["com.example.v1.Gear"]
	assert.Equal(t, "A wheel.", gear["description"])
	assert.Equal(t, "Its shape.", fieldOf(gear, "spec")["description"])
	assert.NotEmpty(t, fieldOf(gear, "metadata")["allOf"])
	assert.Equal(t, true, all["com.example.v1.Free"]["x-kubernetes-preserve-unknown-fields"])
	assert.NotEmpty(t, fieldOf(all["com.example.v1.Free"], "metadata")["allOf"])
}

// client-go's client reads the document of version 2, which is in protobuf.
func TestOpenAPI_Version2(t *testing.T) {
	s := start(t, apitest.Options{Scheme: scheme.Scheme})
	client := discovery.NewDiscoveryClientForConfigOrDie(
		&rest.Config{Host: s.URL, Transport: s.Transport()})
	document, err := client.OpenAPISchema()
	require.NoError(t, err)
	found := false
	for _, definition := range document.Definitions.AdditionalProperties {
		if definition.Name != "io.k8s.api.core.v1.Pod" {
			continue
		}
		for _, property := range definition.Value.Properties.AdditionalProperties {
			if property.Name == "spec" {
				found = true
				assert.Equal(t, "#/definitions/io.k8s.api.core.v1.PodSpec", property.Value.XRef)
			}
		}
	}
	assert.True(t, found)
}
