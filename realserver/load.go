// SPDX-License-Identifier: Apache-2.0

package realserver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"example.com/informerstack/internal/helpers/manifests"
)

// servedTimeout bounds the wait until a new custom kind is served, which takes a part of a second.
const servedTimeout = time.Minute

// manager owns the fields of the objects that are loaded.
const manager = "realserver"

var definitions = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
}

// Load creates or updates the CustomResourceDefinitions in crds and files, waits until their kinds
// are served, and then creates or updates the other objects in files, in their order. Both name
// YAML or JSON files, or folders of them; the other documents in crds are left out. An object
// without a namespace is created in default. An error names the file and the object.
func Load(ctx context.Context, config *rest.Config, crds, files []string) error {
	if len(crds)+len(files) == 0 {
		return nil
	}
	definitions, objects, err := manifests.Read(crds, files)
	if err != nil {
		return err
	}
	l, err := newLoader(config)
	if err != nil {
		return err
	}
	if err := l.applyAll(ctx, definitions); err != nil {
		return err
	}
	if err := l.waitServed(ctx, definitions); err != nil {
		return err
	}
	return l.applyAll(ctx, objects)
}

// loader writes objects of any kind.
type loader struct {
	client dynamic.Interface
	mapper *restmapper.DeferredDiscoveryRESTMapper
}

func newLoader(config *rest.Config) (*loader, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	cached := memory.NewMemCacheClient(kinds)
	return &loader{client, restmapper.NewDeferredDiscoveryRESTMapper(cached)}, nil
}

func (l *loader) applyAll(ctx context.Context, documents []manifests.Document) error {
	for _, d := range documents {
		if err := l.apply(ctx, d); err != nil {
			return d.Wrap(err)
		}
	}
	return nil
}

// apply creates or updates an object.
func (l *loader) apply(ctx context.Context, d manifests.Document) error {
	kind := d.GroupVersionKind()
	mapping, err := l.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	var client dynamic.ResourceInterface = l.client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		if d.GetNamespace() == "" {
			d.SetNamespace(metav1.NamespaceDefault)
		}
		client = l.client.Resource(mapping.Resource).Namespace(d.GetNamespace())
	}
	_, err = client.Apply(ctx, d.GetName(), d.Unstructured,
		metav1.ApplyOptions{FieldManager: manager, Force: true})
	return err
}

// waitServed waits until the kinds of the definitions are served. A definition is established a
// little before.
func (l *loader) waitServed(ctx context.Context, definitions []manifests.Document) error {
	ctx, cancel := context.WithTimeout(ctx, servedTimeout)
	defer cancel()
	for _, d := range definitions {
		group, _, _ := unstructured.NestedString(d.Object, "spec", "group")
		plural, _, _ := unstructured.NestedString(d.Object, "spec", "names", "plural")
		versions, _, _ := unstructured.NestedSlice(d.Object, "spec", "versions")
		for _, v := range versions {
			version, _ := v.(map[string]any)
			name, _ := version["name"].(string)
			if served, _ := version["served"].(bool); !served {
				continue
			}
			resource := schema.GroupVersionResource{Group: group, Version: name, Resource: plural}
			if err := l.waitListed(ctx, resource); err != nil {
				return fmt.Errorf("%s: %s is not served: %w%s", d.File, d.GetName(), err,
					l.conditions(d))
			}
		}
	}
	l.mapper.Reset()
	return nil
}

// waitListed waits until a resource can be listed.
func (l *loader) waitListed(ctx context.Context, resource schema.GroupVersionResource) error {
	for {
		_, err := l.client.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1})
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// conditions returns what the server says about a definition, for a message.
func (l *loader) conditions(d manifests.Document) string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	now, err := l.client.Resource(definitions).Get(ctx, d.GetName(), metav1.GetOptions{})
	if err != nil {
		return ""
	}
	conditions, _, _ := unstructured.NestedSlice(now.Object, "status", "conditions")
	text := ""
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		text += fmt.Sprintf("\n  %v=%v: %v", condition["type"], condition["status"],
			condition["message"])
	}
	return text
}
