// SPDX-License-Identifier: Apache-2.0

package apitest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"

	"example.com/informerstack/apitest"
)

const (
	applyType   = "application/apply-patch+yaml"
	gadgetsPath = "/apis/example.org/v1/gadgets/"
	crdsPath    = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
)

// applied sends the configuration, and returns the metadata of the answer.
func applied(t *testing.T, s *apitest.Server, path, manager,
	configuration string) metav1.ObjectMeta {
	t.Helper()
	got := send(t, s, "PATCH", path+"?fieldManager="+manager, applyType, configuration)
	require.Less(t, got.code, 300, got.body)
	return metaOf(t, got)
}

func metaOf(t *testing.T, got answer) metav1.ObjectMeta {
	var obj metav1.PartialObjectMetadata
	require.NoError(t, json.Unmarshal([]byte(got.body), &obj), got.body)
	return obj.ObjectMeta
}

// managers are the entries of the managed fields, without their fields.
func managers(m metav1.ObjectMeta) (all []string) {
	for _, entry := range m.ManagedFields {
		all = append(all, fmt.Sprintf("%s %s %s", entry.Manager, entry.Operation,
			entry.Time.UTC().Format(time.TimeOnly)))
	}
	return all
}

// An object has no managed fields before its first apply. From then on, every write is noted with
// its time.
func TestManagedFields_BeginWithTheFirstApply(t *testing.T) {
	bubble(t, apitest.Options{}, func(t *testing.T, s *apitest.Server) {
		cm := configMap("default", "a", "k", "1")
		require.NoError(t, s.Create(cm))
		got := send(t, s, "PATCH", mapsPath+"/a", "application/merge-patch+json", `{"data":{"k":"2"}}`)
		assert.Empty(t, metaOf(t, got).ManagedFields)

		time.Sleep(time.Hour)
		const config = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"l":"1"}}`
		first := applied(t, s, mapsPath+"/a", "one", config)
		assert.Equal(t, []string{"one Apply 01:00:00", "before-first-apply Update 01:00:00"},
			managers(first))

		time.Sleep(time.Hour)
		assert.Equal(t, first, applied(t, s, mapsPath+"/a", "one", config))

		require.NoError(t, s.Get(cm))
		cm.Data["k"] = "3"
		require.NoError(t, s.Update(cm))
		assert.Equal(t, []string{"one Apply 01:00:00", "before-first-apply Update 01:00:00",
			"apitest Update 02:00:00"}, managers(cm.ObjectMeta))

		got = send(t, s, "PUT", mapsPath+"/a", "", `{"metadata":{"name":"a"},"data":{"l":"1"}}`)
		assert.Equal(t, []string{"one Apply 01:00:00", "before-first-apply Update 01:00:00"},
			managers(metaOf(t, got)), "the field of the last manager is gone")
	})
}

// With Options.ManagedFields, every object has them from its creation on.
func TestManagedFields_OfAllObjects(t *testing.T) {
	bubble(t, apitest.Options{ManagedFields: true}, func(t *testing.T, s *apitest.Server) {
		cm := configMap("default", "a", "k", "1")
		require.NoError(t, s.Create(cm))
		assert.Equal(t, []string{"apitest Update 00:00:00"}, managers(cm.ObjectMeta))
		got := send(t, s, "POST", mapsPath, "", `{"metadata":{"name":"b"},"data":{"k":"1"}}`)
		assert.Equal(t, []string{"Go-http-client Update 00:00:00"}, managers(metaOf(t, got)))
	})
}

// A write that ends in the same object is not stored, even if the library noted another time for
// it: here because the status of the configuration is ignored.
func TestApply_ThatChangesNothing(t *testing.T) {
	bubble(t, apitest.Options{}, func(t *testing.T, s *apitest.Server) {
		const config = `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"},
			"spec":{"podCIDR":"10.0.0.0/24"},"status":{"phase":"Running"}}`
		first := applied(t, s, "/api/v1/nodes/n", "one", config)
		time.Sleep(time.Hour)
		assert.Equal(t, first, applied(t, s, "/api/v1/nodes/n", "one", config))
		changed := strings.Replace(config, "0/24", "0/25", 1)
		assert.Equal(t, []string{"one Apply 01:00:00"},
			managers(applied(t, s, "/api/v1/nodes/n", "one", changed)))
	})
}

// Every built-in kind can be applied, with and without the Go types.
func TestApply_KnowsEveryKind(t *testing.T) {
	for _, options := range []apitest.Options{{}, {Scheme: scheme.Scheme}} {
		s := start(t, options)
		for _, gvk := range s.BuiltinKinds() {
			if gvk.Group == "apiextensions.k8s.io" || strings.HasSuffix(gvk.Kind, "Review") {
				continue // TestApply_OfADefinition; a review is not stored
			}
			resource, _ := meta.UnsafeGuessKindToResource(gvk)
			config := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":"a",
				"labels":{"l":"1"}}}`, gvk.GroupVersion(), gvk.Kind)
			path := "/apis/" + gvk.GroupVersion().String()
			if gvk.Group == "" {
				path = "/api/v1"
			}
			code := 0
			for _, scope := range []string{"/namespaces/default/", "/"} {
				if code != 201 {
					code = send(t, s, "PATCH", path+scope+resource.Resource+"/a?fieldManager=one",
						applyType, config).code
				}
			}
			assert.Equal(t, 201, code, gvk)
		}
	}
}

func definition(openAPI string) string {
	return `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
		"metadata":{"name":"gadgets.example.org"},"spec":{"group":"example.org","scope":"Cluster",
		"names":{"plural":"gadgets","kind":"Gadget"},"versions":[{"name":"v1","served":true,
		"schema":{"openAPIV3Schema":` + openAPI + `}}]}}`
}

// A definition can be applied. Its kind follows the list types of its schema, even of a new one.
func TestApply_OfADefinition(t *testing.T) {
	bubble(t, apitest.Options{}, func(t *testing.T, s *apitest.Server) {
		const path = crdsPath + "gadgets.example.org"
		gadget := func(manager, items string) string {
			got := send(t, s, "PATCH", gadgetsPath+"g?fieldManager="+manager, applyType,
				`{"apiVersion":"example.org/v1","kind":"Gadget","metadata":{"name":"g"},"items":`+
					items+`}`)
			var obj struct{ Items json.RawMessage }
			require.NoError(t, json.Unmarshal([]byte(got.body), &obj))
			return fmt.Sprint(got.code, " ", string(obj.Items))
		}
		applied(t, s, path, "one", definition(
			`{"type":"object","x-kubernetes-preserve-unknown-fields":true}`))
		assert.Equal(t, `201 [{"name":"a"}]`, gadget("one", `[{"name":"a"}]`))
		assert.Equal(t, `409 `, gadget("two", `[{"name":"b"}]`))

		applied(t, s, path, "one", definition(`{"type":"object","properties":{"items":{"type":"array",
			"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],
			"items":{"type":"object","properties":{"name":{"type":"string"}}}}}}`))
		assert.Equal(t, `200 [{"name":"a"},{"name":"b"}]`, gadget("two", `[{"name":"b"}]`))
		assert.Equal(t, `200 [{"name":"a"}]`, gadget("two", `[]`))

		applied(t, s, path, "one", definition(`{"type":"fish"}`))
		assert.Equal(t, `500 `, gadget("two", `[]`))
	})
}

// Kinds without a schema can be applied; their lists are set as a whole.
func TestApply_WithoutASchema(t *testing.T) {
	s := start(t, apitest.Options{Resources: []apitest.Resource{
		{Group: "example.org", Version: "v1", Kind: "Gadget", Plural: "gadgets"}}})
	const config = `{"apiVersion":"example.org/v1","kind":"Gadget","metadata":{"name":"g",
		"finalizers":["example.org/%[1]s"]},"list":[1],"fields":{"%[1]s":{}}}`
	applied(t, s, gadgetsPath+"g", "one", fmt.Sprintf(config, "a"))
	m := applied(t, s, gadgetsPath+"g", "two", fmt.Sprintf(config, "b"))
	assert.Equal(t, []string{"example.org/a", "example.org/b"}, m.Finalizers)
	assert.JSONEq(t, `{"f:metadata":{"f:finalizers":{"v:\"example.org/a\"":{}}},"f:list":{},
		"f:fields":{".":{},"f:a":{}}}`, m.ManagedFields[0].FieldsV1.GetRawString())
}

// client-go's typed client applies, and recognises a conflict.
func TestApply_TypedClient(t *testing.T) {
	s := start(t, apitest.Options{Scheme: scheme.Scheme})
	client := kubernetes.NewForConfigOrDie(config(s)).CoreV1().ConfigMaps("default")
	one := v1.ConfigMap("a", "default").WithData(map[string]string{"k": "1"})
	_, err := client.Apply(t.Context(), one, metav1.ApplyOptions{FieldManager: "one"})
	require.NoError(t, err)
	two := v1.ConfigMap("a", "default").WithData(map[string]string{"k": "2"})
	_, err = client.Apply(t.Context(), two, metav1.ApplyOptions{FieldManager: "two"})
	assert.True(t, apierrors.IsConflict(err), "%v", err)
	assert.True(t, apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict))
	force := metav1.ApplyOptions{FieldManager: "two", Force: true}
	got, err := client.Apply(t.Context(), two, force)
	require.NoError(t, err)
	assert.Equal(t, "2", got.Data["k"])
	extracted, err := v1.ExtractConfigMap(got, "two")
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"k": "2"}, extracted.Data)
}

// Managers that write at the same time lose nothing.
func TestApply_Concurrently(t *testing.T) {
	bubble(t, apitest.Options{}, func(t *testing.T, s *apitest.Server) {
		var group sync.WaitGroup
		for i := range 8 {
			group.Go(func() {
				for n := range 4 {
					got := send(t, s, "PATCH", fmt.Sprintf("%s/a?fieldManager=m%d", mapsPath, i),
						applyType, fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap",
							"metadata":{"name":"a"},"data":{"k%d":"%d"}}`, i, n))
					assert.Less(t, got.code, 300, got.body)
				}
			})
		}
		group.Wait()
		cm := configMap("default", "a")
		require.NoError(t, s.Get(cm))
		assert.Len(t, cm.ManagedFields, 8)
		for i := range 8 {
			assert.Equal(t, "3", cm.Data[fmt.Sprint("k", i)])
		}
	})
}

// The managed fields that a client sends for another version of the kind are dropped.
func TestManagedFields_OfAnotherVersion(t *testing.T) {
	s := start(t, apitest.Options{})
	gvk := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	require.Contains(t, s.BuiltinKinds(), gvk)
	got := send(t, s, "POST", "/apis/apps/v1/namespaces/default/deployments", "", `{"metadata":{
		"name":"d","managedFields":[{"manager":"old","operation":"Apply","apiVersion":"apps/v1beta1",
		"fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:replicas":{}}}}]},"spec":{"replicas":1}}`)
	require.Equal(t, 201, got.code, got.body)
	m := metaOf(t, got)
	require.Len(t, m.ManagedFields, 1)
	assert.Equal(t, "Go-http-client", m.ManagedFields[0].Manager)
}

// The cost of a write with and without managed fields.
func BenchmarkManagedFields(b *testing.B) {
	for _, on := range []bool{false, true} {
		b.Run(fmt.Sprintf("on=%t", on), func(b *testing.B) {
			s := apitest.NewServer(apitest.Options{ManagedFields: on})
			pod := benchPod(0)
			require.NoError(b, s.Create(pod))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				pod.Labels["i"] = fmt.Sprint(i)
				require.NoError(b, s.Update(pod))
			}
		})
	}
}
