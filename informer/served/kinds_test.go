// SPDX-License-Identifier: Apache-2.0

package served

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

type configMap = corev1.ConfigMap

var configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")

// Every group that client-go's scheme knows is built in.
func TestBuiltIn_AllGroups(t *testing.T) {
	for _, gv := range scheme.Scheme.PrioritizedVersionsAllGroups() {
		assert.Contains(t, builtIn, gv.Group)
	}
	assert.True(t, slices.IsSorted(builtIn))
}

func TestDefinition_Judge(t *testing.T) {
	for _, test := range []struct {
		established bool
		versions    []string
		phase       Phase
		reason      string
	}{
		{true, []string{"v1"}, Serving, ""},
		{true, []string{"v2", "v1"}, Serving, ""},
		{false, []string{"v1"}, NotEstablished, "CustomResourceDefinition websites.example.com " +
			`is not established: "websites" is in use`},
		{true, []string{"-v1", "v2", "-v3", "v4"}, VersionNotServed,
			"v1 is not served; served: v2, v4"},
		{true, []string{"-v1"}, VersionNotServed, "v1 is not served; no version is"},
		{true, []string{"v2"}, VersionNotServed, "v1 is not served; served: v2"},
	} {
		raw, err := crd(test.established, test.versions...).MarshalJSON()
		require.NoError(t, err)
		var d definition
		require.NoError(t, json.Unmarshal(raw, &d))
		d.UID = "7"
		assert.Equal(t, verdict{test.phase, test.reason, "7"}, d.judge("v1"), test.versions)
		assert.Equal(t, &d, d.DeepCopyObject())
	}
}

// Only another server, or Kubernetes itself, is shown by an APIService.
func TestAPIService_Serves(t *testing.T) {
	for text, want := range map[string]bool{
		`{"spec":{"service":{"name":"metrics"}}}`:                    true,
		`{"metadata":{"labels":{"` + managedLabel + `":"onstart"}}}`: true,
		`{"metadata":{"labels":{"` + managedLabel + `":"true"}}}`:    false,
		`{"metadata":{"name":"v1.example.com"},"status":null}`:       false,
	} {
		var s apiService
		require.NoError(t, json.Unmarshal([]byte(text), &s))
		assert.Equal(t, want, s.serves(), text)
		assert.Equal(t, &s, s.DeepCopyObject())
	}
}

// A definition is kept without the metadata that are not read.
func TestSlim(t *testing.T) {
	d := &definition{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "1", ResourceVersion: "2",
		Annotations: map[string]string{"long": "text"}}}
	kept, err := slim(d)
	require.NoError(t, err)
	assert.Equal(t, metav1.ObjectMeta{Name: "a", UID: "1", ResourceVersion: "2"},
		kept.(*definition).ObjectMeta)
}
