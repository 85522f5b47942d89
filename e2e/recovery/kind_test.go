// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"example.com/informerstack/e2e/fixture"
	"example.com/informerstack/realserver/cluster"
)

// kind is the kind of the objects in a world.
type kind struct {
	name     string
	resource schema.GroupVersionResource
	path     string // in etcd
	defined  bool   // by a CustomResourceDefinition
}

var (
	configMap = kind{
		name:     "ConfigMap",
		resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
		path:     "configmaps",
	}
	widget = kind{
		name: "Widget",
		resource: schema.GroupVersionResource{
			Group: "recovery.example.com", Version: "v1", Resource: "widgets",
		},
		path:    "recovery.example.com/widgets",
		defined: true,
	}
)

// object returns an object with one value in its data.
func (k kind) object(name, field, value string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{
		"data": map[string]any{field: value},
	}}
	object.SetAPIVersion(k.resource.GroupVersion().String())
	object.SetKind(k.name)
	object.SetName(name)
	return object
}

// client returns a client of the kind's API group, with unstructured objects.
func (k kind) client(t *testing.T, config *rest.Config) rest.Interface {
	client, err := rest.RESTClientFor(groupConfig(config, k.resource.GroupVersion()))
	require.NoError(t, err)
	return client
}

// groupConfig returns the configuration for an API group.
func groupConfig(config *rest.Config, group schema.GroupVersion) *rest.Config {
	config = dynamic.ConfigFor(config)
	config.GroupVersion = &group
	config.APIPath = "/apis"
	if group.Group == "" {
		config.APIPath = "/api"
	}
	return config
}

// prepare makes the server know the kind.
func (k kind) prepare(w *world) {
	if k.defined {
		fixture.Define(w.t, w.cluster.Config(cluster.AdminToken),
			fixture.Definition(k.resource, k.name, "Namespaced"))
	}
}

// remove deletes the kind and all its objects.
func (k kind) remove(w *world) {
	client, name := w.dynamic.Resource(fixture.Definitions), k.resource.GroupResource().String()
	require.NoError(w.t, client.Delete(w.t.Context(), name, metav1.DeleteOptions{}))
	require.Eventually(w.t, func() bool {
		_, err := client.Get(w.t.Context(), name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, patience, sampleEvery)
}
