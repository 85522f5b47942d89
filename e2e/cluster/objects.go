// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// NewNamespace creates a namespace for a test, on any server, and returns its name.
func NewNamespace(t testing.TB, client kubernetes.Interface) string {
	t.Helper()
	namespace, err := client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}},
		metav1.CreateOptions{})
	require.NoError(t, err)
	return namespace.Name
}

// Each calls do for 0 to n-1, many at a time, and fails the test if one fails.
func Each(t testing.TB, n int, do func(i int) error) {
	t.Helper()
	failed := make([]error, 64)
	var running sync.WaitGroup
	for part := range failed {
		running.Go(func() {
			for i := part; i < n && failed[part] == nil; i += len(failed) {
				failed[part] = do(i)
			}
		})
	}
	running.Wait()
	require.NoError(t, errors.Join(failed...))
}

// Definitions is the resource of CustomResourceDefinitions.
var Definitions = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
}

// Definition returns the CustomResourceDefinition of objects with any fields, in YAML. The scope is
// "Namespaced" or "Cluster".
func Definition(resource schema.GroupVersionResource, kind, scope string) []byte {
	return fmt.Appendf(nil, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.%[2]s}
spec:
  group: %[2]s
  scope: %[5]s
  names: {plural: %[1]s, kind: %[4]s}
  versions:
  - name: %[3]s
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, resource.Resource, resource.Group, resource.Version, kind, scope)
}

// Define creates a CustomResourceDefinition, and returns when its objects are served. A kind is
// established a little before.
func Define(t testing.TB, config *rest.Config, definition []byte) {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	text, err := yaml.ToJSON(definition)
	require.NoError(t, err)
	var object unstructured.Unstructured
	require.NoError(t, object.UnmarshalJSON(text))
	var defined struct {
		Spec struct {
			Group    string
			Names    struct{ Plural string }
			Versions []struct{ Name string }
		}
	}
	require.NoError(t, json.Unmarshal(text, &defined))
	_, err = client.Resource(Definitions).Create(t.Context(), &object, metav1.CreateOptions{})
	require.NoError(t, err)
	spec := defined.Spec
	resource := client.Resource(schema.GroupVersionResource{
		Group: spec.Group, Version: spec.Versions[0].Name, Resource: spec.Names.Plural,
	})
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	for {
		_, err := resource.List(ctx, metav1.ListOptions{})
		if err == nil {
			return
		}
		require.NoError(t, ctx.Err(), "the new kind is not served: %v", err)
		<-time.After(20 * time.Millisecond)
	}
}
