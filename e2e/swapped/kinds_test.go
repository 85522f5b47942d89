// SPDX-License-Identifier: Apache-2.0

package swapped_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"example.com/informerstack/e2e/cluster"
)

// moduleFolder returns the folder of a module that the module in dir depends on.
func moduleFolder(t *testing.T, dir, module string) string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module)
	list.Dir, list.Env = dir, environ("off")
	out, err := list.Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(out))
}

// defineKinds creates the CustomResourceDefinitions in files, and waits until their objects are
// served.
func defineKinds(t *testing.T, servers *cluster.Cluster, files ...string) {
	t.Helper()
	client, err := dynamic.NewForConfig(servers.Config(cluster.AdminToken))
	require.NoError(t, err)
	definitions := client.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		crd := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal(text, crd))
		_, err = definitions.Create(t.Context(), crd, metav1.CreateOptions{})
		require.NoError(t, err)
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			crd, err := definitions.Get(t.Context(), crd.GetName(), metav1.GetOptions{})
			require.NoError(c, err)
			conditions, _, err := unstructured.NestedSlice(crd.Object, "status", "conditions")
			require.NoError(c, err)
			require.True(c, slices.ContainsFunc(conditions, isEstablished), "%v", conditions)
			// a kind is established a little before it is served
			_, err = client.Resource(resourceOf(c, crd)).List(t.Context(), metav1.ListOptions{})
			require.NoError(c, err)
		}, patience, 50*time.Millisecond)
	}
}

func isEstablished(condition any) bool {
	fields, ok := condition.(map[string]any)
	return ok && fields["type"] == "Established" && fields["status"] == "True"
}

// resourceOf returns the first version of the resource that crd defines.
func resourceOf(
	t require.TestingT, crd *unstructured.Unstructured,
) (resource schema.GroupVersionResource) {
	var definition struct {
		Spec struct {
			Group    string
			Names    struct{ Plural string }
			Versions []struct{ Name string }
		}
	}
	text, err := crd.MarshalJSON()
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &definition))
	spec := definition.Spec
	return schema.GroupVersionResource{Group: spec.Group, Version: spec.Versions[0].Name,
		Resource: spec.Names.Plural}
}

// newNamespace returns the name of a new namespace.
func newNamespace(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	namespace, err := client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "answers-"}},
		metav1.CreateOptions{})
	require.NoError(t, err)
	return namespace.Name
}
