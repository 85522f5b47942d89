// SPDX-License-Identifier: Apache-2.0

package apitest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"

	"example.com/informerstack/apitest"
)

// Without schemas too, a definition cannot be changed so that its objects are lost, and has names
// of its own.
func TestDefinition_ThatCannotBeFollowed(t *testing.T) {
	s := start(t, apitest.Options{})
	require.NoError(t, s.Create(gadgets(t, `[{"name":"v1","served":true,"storage":true}]`)))
	require.NoError(t, s.Create(gadget(t, "v1", "")))
	const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	for patch, want := range map[string]string{
		`{"scope":"Namespaced"}`:     `spec.scope: Invalid value: \"Namespaced\": field is immutable`,
		`{"scope":"Everywhere"}`:     `spec.scope: Unsupported value: \"Everywhere\"`,
		`{"names":{"kind":"Other"}}`: `spec.names.kind: Invalid value: \"Other\": field is immutable`,
		`{"versions":[{"name":"v2","served":true,"storage":true}]}`: `status.storedVersions[0]: ` +
			`Invalid value: \"v1\": missing from spec.versions`,
	} {
		got := send(t, s, "PATCH", path+"/gadgets.example.org", mergePatch, `{"spec":`+patch+`}`)
		assert.Equal(t, 422, got.code, got.body)
		assert.Contains(t, got.body, want)
	}
	other := strings.ReplaceAll(text(t, gadgets(t, `[{"name":"v1","served":true,"storage":true}]`)),
		"gadgets", "others")
	got := send(t, s, "POST", path, "", other)
	assert.Equal(t, 422, got.code, got.body)
	assert.Contains(t, got.body, "apitest: gadgets.example.org has this kind")
	got = send(t, s, "POST", path, "", strings.ReplaceAll(other, "Gadget", "Other"))
	assert.Equal(t, 201, got.code, got.body)
}

func text(t *testing.T, obj *unstructured.Unstructured) string {
	raw, err := obj.MarshalJSON()
	require.NoError(t, err)
	return string(raw)
}

// An object that the storage of a real server does not take is refused.
func TestSize(t *testing.T) {
	s := start(t, apitest.Options{Scheme: scheme.Scheme, BuiltinRules: true})
	require.NoError(t, s.Create(gadgets(t, `[{"name":"v1","served":true,"storage":true}]`)))
	create := func(size int) answer {
		return send(t, s, "POST", "/apis/example.org/v1/gadgets", "", text(t,
			gadget(t, "v1", `,"text":"`+strings.Repeat("x", size)+`"`)))
	}
	got := create(3 << 19)
	assert.Equal(t, 500, got.code)
	assert.Contains(t, got.body, "etcdserver: request is too large")
	assert.Equal(t, 201, create(1_500_000).code)

	for path, data := range map[string]string{
		"configmaps": strings.Repeat("x", 1<<20), "secrets": strings.Repeat("eHh4", 1<<20/3),
	} {
		send := func(more string) answer {
			return send(t, s, "POST", "/api/v1/namespaces/default/"+path+"?dryRun=All", "",
				`{"metadata":{"name":"a"},"data":{"a":"`+data+`"`+more+`}}`)
		}
		assert.Equal(t, 201, send("").code, path)
		got := send(`,"b":"eHh4"`)
		assert.Equal(t, 422, got.code, path)
		assert.Contains(t, got.body, "Too long: may not be more than 1048576 bytes")
	}
}

// Owners that are there twice are removed, however many there are; others with the same uid stay,
// in their order.
func TestOwners_Many(t *testing.T) {
	s := start(t, apitest.Options{Scheme: scheme.Scheme})
	obj := configMap("default", "a")
	for i := range 4000 {
		obj.OwnerReferences = append(obj.OwnerReferences, metav1.OwnerReference{APIVersion: "v1",
			Kind: "ConfigMap", Name: fmt.Sprint(i % 2000), UID: "u"})
	}
	sent, err := json.Marshal(obj)
	require.NoError(t, err)
	got := send(t, s, "POST", configMaps, "", string(sent))
	require.Equal(t, 201, got.code, got.body)
	stored := configMap("default", "a")
	require.NoError(t, s.Get(stored))
	assert.Equal(t, obj.OwnerReferences[:2000], stored.OwnerReferences)
}

// A decision with a status of the wrong type leaves what was asked for, without rules of the kind,
// too.
func TestCertificates_ASpecDoesNotChange(t *testing.T) {
	s := start(t, apitest.Options{})
	const path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
	got := send(t, s, "POST", path, "",
		`{"metadata":{"name":"a"},"spec":{"signerName":"example.com/a","request":"eA=="}}`)
	require.Equal(t, 201, got.code, got.body)
	for _, at := range []string{"/a", "/a/approval", "/a/status"} {
		got = send(t, s, "PATCH", path+at, mergePatch,
			`{"spec":{"signerName":"example.com/b"},"status":{"conditions":"x"}}`)
		require.Equal(t, 200, got.code, got.body)
		assert.Contains(t, got.body, `"signerName":"example.com/a"`, at)
	}
}
