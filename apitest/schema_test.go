// SPDX-License-Identifier: Apache-2.0

package apitest_test

import (
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"example.com/informerstack/apitest"
)

// rules is a schema with the fields spec.size, which is at most max, and spec.kind, which is by
// default the apiVersion.
type rules struct{ max int64 }

func (r rules) Definitions() apitest.Schema { return anything{} }

func (r rules) Compile(definition map[string]any) (map[string]apitest.Schema, error) {
	versions, _, _ := unstructured.NestedSlice(definition, "spec", "versions")
	all := map[string]apitest.Schema{}
	for _, v := range versions {
		all[v.(map[string]any)["name"].(string)] = r
	}
	return all, nil
}

func (r rules) Prune(obj map[string]any) (unknown []error, err error) {
	spec, _ := obj["spec"].(map[string]any)
	for name := range spec {
		if name != "size" && name != "kind" {
			delete(spec, name)
			unknown = append(unknown, fmt.Errorf("unknown field %q", "spec."+name))
		}
	}
	return unknown, nil
}

func (r rules) Default(obj map[string]any) {
	if spec, ok := obj["spec"].(map[string]any); ok && spec["kind"] == nil {
		spec["kind"] = obj["apiVersion"]
	}
}

func (r rules) Validate(obj, old map[string]any, subresource string) field.ErrorList {
	size, _, _ := unstructured.NestedInt64(obj, "spec", "size")
	before, _, _ := unstructured.NestedInt64(old, "spec", "size")
	if subresource == "status" || size <= r.max || (old != nil && size == before) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "size"), size, "too large")}
}

// anything is a schema without rules.
type anything struct{}

func (anything) Prune(map[string]any) ([]error, error)                      { return nil, nil }
func (anything) Default(map[string]any)                                     {}
func (anything) Validate(_, _ map[string]any, _ string) (e field.ErrorList) { return e }

func object(t *testing.T, text string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	require.NoError(t, u.UnmarshalJSON([]byte(text)))
	return u
}

func gadgets(t *testing.T, versions string) *unstructured.Unstructured {
	return object(t, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",`+
		`"metadata":{"name":"gadgets.example.org"},"spec":{"group":"example.org",`+
		`"scope":"Cluster","names":{"plural":"gadgets","kind":"Gadget"},"versions":`+versions+`}}`)
}

func gadget(t *testing.T, version, rest string) *unstructured.Unstructured {
	return object(t,
		`{"apiVersion":"example.org/`+version+`","kind":"Gadget","metadata":{"name":"a"}`+rest+`}`)
}

// The server prunes, defaults and validates the objects of requests and of its own methods.
func TestSchemas_RulesApplyToEveryWrite(t *testing.T) {
	bubble(t, apitest.Options{Schemas: rules{max: 5}}, func(t *testing.T, s *apitest.Server) {
		require.NoError(t, s.Create(gadgets(t,
			`[{"name":"v1","served":true,"storage":true,"subresources":{"status":{}}}]`)))
		direct := gadget(t, "v1", `,"spec":{"size":3,"x":1},"status":{"ok":true}`)
		require.NoError(t, s.Create(direct))
		assert.Equal(t, map[string]any{"size": int64(3), "kind": "example.org/v1"},
			direct.Object["spec"])
		assert.Equal(t, map[string]any{"ok": true}, direct.Object["status"])
		direct.Object["spec"] = map[string]any{"size": int64(6)}
		assert.ErrorContains(t, s.Update(direct), "spec.size: Invalid value: 6: too large")

		const path = "/apis/example.org/v1/gadgets"
		large := `{"apiVersion":"example.org/v1","kind":"Gadget","metadata":{"name":"b"},` +
			`"spec":{"size":6,"x":1}}`
		assert.Equal(t, http.StatusUnprocessableEntity, send(t, s, "POST", path, "", large).code)
		const merge = "application/merge-patch+json"
		assert.Equal(t, http.StatusUnprocessableEntity,
			send(t, s, "PATCH", path+"/a", merge, `{"spec":{"size":6}}`).code)
		assert.Equal(t, http.StatusOK,
			send(t, s, "PATCH", path+"/a/status", merge, `{"spec":{"size":6}}`).code)
		warned := send(t, s, "PATCH", path+"/a", merge, `{"spec":{"y":2}}`)
		assert.Equal(t, []string{`299 - "unknown field \"spec.y\""`}, warned.head["Warning"])
		strict := send(t, s, "PATCH", path+"/a?fieldValidation=Strict", merge, `{"spec":{"y":2}}`)
		assert.Equal(t, http.StatusUnprocessableEntity, strict.code)
		silent := send(t, s, "PATCH", path+"/a?fieldValidation=Ignore", merge, `{"spec":{"y":2}}`)
		assert.Empty(t, silent.head["Warning"])
		assert.Equal(t, http.StatusOK, silent.code)
	})
}

// An object is stored with the defaults of the stored version, and keeps them in the others.
func TestSchemas_DefaultsOfTheStoredVersion(t *testing.T) {
	bubble(t, apitest.Options{Schemas: rules{max: 5}}, func(t *testing.T, s *apitest.Server) {
		v1 := `{"name":"v1","served":true,"storage":true}`
		require.NoError(t, s.Create(gadgets(t, `[`+v1+`]`)))
		require.NoError(t, s.Create(gadget(t, "v1", `,"spec":{}`)))
		d := gadgets(t, `[`+v1+`]`)
		require.NoError(t, s.Get(d))
		both := gadgets(t,
			`[{"name":"v1","served":true},{"name":"v2","served":true,"storage":true}]`)
		d.Object["spec"] = both.Object["spec"]
		require.NoError(t, s.Update(d))
		stored, _, err := unstructured.NestedStringSlice(d.Object, "status", "storedVersions")
		require.NoError(t, err)
		assert.Equal(t, []string{"v1", "v2"}, stored)
		got := gadget(t, "v2", "")
		require.NoError(t, s.Get(got))
		assert.Equal(t, "example.org/v2", got.GetAPIVersion())
		assert.Equal(t, map[string]any{"kind": "example.org/v1"}, got.Object["spec"])
	})
}

// Without schemas, a warning says that the schema of a definition is ignored.
func TestSchemas_IgnoredOnesAreNamed(t *testing.T) {
	s := start(t, apitest.Options{})
	const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	definition := func(schema, more string) string {
		return `{"metadata":{"name":"gadgets.example.org"},"spec":{"group":"example.org",` + more +
			`"scope":"Cluster","names":{"plural":"gadgets","kind":"Gadget"},"versions":[` +
			`{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":` + schema +
			`}}]}}`
	}
	const free = `{"type":"object","x-kubernetes-preserve-unknown-fields":true}`
	got := send(t, s, "POST", path, "", definition(`{"type":"object","properties":{}}`, ""))
	assert.Equal(t, []string{`299 - "this server ignores the schema of version v1"`},
		got.head["Warning"])
	const merge = "application/merge-patch+json"
	got = send(t, s, "PATCH", path+"/gadgets.example.org", merge, definition(free, ""))
	assert.Empty(t, got.head["Warning"])
	got = send(t, s, "PATCH", path+"/gadgets.example.org", merge,
		definition(free, `"conversion":{"strategy":"Webhook"},`))
	assert.Equal(t, []string{`299 - "this server ignores the conversion webhook"`},
		got.head["Warning"])
}

// The subresource scale is in the lists of resources that clients look it up in.
func TestScale_IsDiscovered(t *testing.T) {
	s := start(t, apitest.Options{})
	require.NoError(t, s.Create(gadgets(t, `[{"name":"v1","served":true,"storage":true,`+
		`"subresources":{"scale":{"specReplicasPath":".spec.n",`+
		`"statusReplicasPath":".status.n"}}}]`)))
	assert.Contains(t, send(t, s, "GET", "/apis/example.org/v1", "", "").body,
		`{"name":"gadgets/scale","singularName":"","namespaced":false,"group":"autoscaling",`+
			`"version":"v1","kind":"Scale","verbs":["get","patch","update"]}`)
	require.NoError(t, s.Create(gadget(t, "v1", `,"spec":{"n":3}`)))
	req, err := http.NewRequest(http.MethodGet, s.URL+"/apis/example.org/v1/gadgets/a/scale", nil)
	require.NoError(t, err)
	req.Header.Set("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")
	resp, err := s.Client().Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	assert.Contains(t, string(body), `"cells":["a",3,0,"0s"]`)
}
