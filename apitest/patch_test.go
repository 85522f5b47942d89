// SPDX-License-Identifier: Apache-2.0

package apitest_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"

	"example.com/informerstack/apitest"
)

// A strategic merge patch has the same result with and without the Go types.
func TestStrategicPatch_AsWithTypes(t *testing.T) {
	const template = `{"metadata":{"labels":{"app":"a"}},"spec":{
		"containers":[{"name":"c","image":"i:1","env":[{"name":"A","value":"1"},{"name":"B","value":"2"}],
			"ports":[{"containerPort":80,"name":"http"}],"volumeMounts":[{"mountPath":"/v","name":"v"}],"args":["x","y"]}],
		"volumes":[{"name":"v","emptyDir":{}}],"tolerations":[{"key":"t"}],"imagePullSecrets":[{"name":"s"}]}}`
	const deployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d","finalizers":["a/b"],
		"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n","uid":"u"}]},
		"spec":{"replicas":1,"selector":{"matchLabels":{"app":"a"}},"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":1}},
		"template":` + template + `}}`
	const service = `{"apiVersion":"v1","kind":"Service","metadata":{"name":"s"},
		"spec":{"ports":[{"port":80,"name":"http"},{"port":81,"name":"other"}],"selector":{"app":"a"}}}`
	const node = `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"},"spec":{"taints":[{"key":"k","effect":"NoSchedule"}]},
		"status":{"conditions":[{"type":"Ready","status":"True"}],"addresses":[{"type":"Hostname","address":"n"}]}}`
	for _, test := range []struct{ path, object, patch string }{
		{"/apis/apps/v1/namespaces/default/deployments/d", deployment,
			`{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"i:2"},{"name":"new","image":"n"}]}}}}`},
		{"/apis/apps/v1/namespaces/default/deployments/d", deployment,
			`{"spec":{"template":{"spec":{"containers":[{"name":"c","env":[{"name":"B","$patch":"delete"},{"name":"C","value":"3"}],"args":["z"]}]}}}}`},
		{"/apis/apps/v1/namespaces/default/deployments/d", deployment,
			`{"spec":{"template":{"spec":{"containers":[{"name":"c","ports":[{"containerPort":80,"protocol":"UDP"},{"containerPort":81}],"volumeMounts":[{"mountPath":"/v","readOnly":true,"name":"v"}]}]}}}}`},
		{"/apis/apps/v1/namespaces/default/deployments/d", deployment,
			`{"spec":{"template":{"spec":{"volumes":[{"name":"v","$retainKeys":["name","hostPath"],"hostPath":{"path":"/x"}}],"tolerations":[{"key":"u"}],"imagePullSecrets":[{"name":"r"}]}}}}`},
		{"/apis/apps/v1/namespaces/default/deployments/d", deployment,
			`{"spec":{"strategy":{"$retainKeys":["type"],"type":"Recreate"}}}`},
		{"/apis/apps/v1/namespaces/default/deployments/d", deployment,
			`{"metadata":{"finalizers":["c/d"],"$deleteFromPrimitiveList/finalizers":["a/b"],"ownerReferences":[{"uid":"u","controller":true}]}}`},
		{"/apis/apps/v1/namespaces/default/deployments/d", deployment,
			`{"spec":{"template":{"spec":{"$setElementOrder/containers":[{"name":"new"},{"name":"c"}],"containers":[{"name":"new","image":"n"}]}}}}`},
		{"/api/v1/namespaces/default/services/s", service,
			`{"spec":{"ports":[{"port":81,"targetPort":8081},{"port":82,"name":"third"}]}}`},
		{"/api/v1/nodes/n", node, `{"spec":{"taints":[{"key":"l","effect":"NoExecute"}]}}`},
	} {
		var got [2]map[string]any
		for i, options := range []apitest.Options{{}, {Scheme: scheme.Scheme}} {
			s := start(t, options)
			var u unstructured.Unstructured
			require.NoError(t, u.UnmarshalJSON([]byte(test.object)))
			if u.GetKind() != "Node" {
				u.SetNamespace("default")
			}
			require.NoError(t, s.Create(&u))
			got[i] = patched(t, s, test.path, test.patch)
		}
		assert.Equal(t, got[1], got[0], test.patch)
	}
}

// The merge rules that are used without the Go types equal the tags of the types.
func TestStrategicPatch_KnowsTheTags(t *testing.T) {
	s := apitest.NewServer(apitest.Options{})
	for _, gvk := range s.BuiltinKinds() {
		if gvk.Group == "apiextensions.k8s.io" {
			continue // not in client-go's scheme
		}
		obj, err := scheme.Scheme.New(gvk)
		require.NoError(t, err)
		checkTags(t, gvk.Kind, reflect.TypeOf(obj).Elem())
	}
}

func checkTags(t *testing.T, path string, typ reflect.Type) {
	if typ.Kind() != reflect.Struct {
		return
	}
	for i := range typ.NumField() {
		field := typ.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" {
			checkTags(t, path, field.Type) // inlined
			continue
		}
		inner := field.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if kind := inner.Kind(); kind == reflect.Slice || kind == reflect.Struct {
			want := field.Tag.Get("patchStrategy") + " " + field.Tag.Get("patchMergeKey")
			assert.Equal(t, want, apitest.MergeRule(path, name), path+"."+name)
		}
		if inner.Kind() == reflect.Slice {
			inner = inner.Elem()
		}
		checkTags(t, path+"."+name, inner)
	}
}

// patched applies a patch and returns the answer without the values that differ between runs and
// without the empty values that typed objects have.
func patched(t *testing.T, s *apitest.Server, path, patch string) map[string]any {
	resp := send(t, s, "PATCH", path, "application/strategic-merge-patch+json", patch)
	require.Equal(t, 200, resp.code, resp.body)
	var obj map[string]any
	require.NoError(t, json.Unmarshal([]byte(resp.body), &obj))
	meta, ok := obj["metadata"].(map[string]any)
	require.True(t, ok)
	delete(meta, "uid")
	delete(meta, "creationTimestamp")
	prune(obj)
	return obj
}

func prune(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for key, field := range v {
			if prune(field) {
				delete(v, key)
			}
		}
		return len(v) == 0
	case []any:
		for _, item := range v {
			prune(item)
		}
	case string:
		return v == ""
	case float64:
		return v == 0
	case nil:
		return true
	}
	return false
}
