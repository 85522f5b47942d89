// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"example.com/informerstack/informer"
	"example.com/informerstack/informer/served"
	"example.com/informerstack/internal/helpers/printable"
	"example.com/informerstack/store"
)

// With Settings.Custom, the pipeline follows this kind in the place of Options.Resource. Its
// objects are unstructured, and the controller has nothing to write.
var (
	CustomKind     = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	CustomResource = CustomKind.GroupVersion().WithResource("widgets")
)

const customDefinition = `{
	"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
	"metadata": {"name": "widgets.example.com"},
	"spec": {"group": "example.com", "scope": "Namespaced",
		"names": {"plural": "widgets", "kind": "Widget"},
		"versions": [{"name": "v1", "served": true, "storage": true}]}}`

var errNotCustom = errors.New("the program does not follow a custom kind")

// FollowKind returns options for the informer of the pipeline that is built, and a function that
// runs beside the informer until its context is done. With Settings.Custom the informer follows its
// kind, which may be absent. Otherwise the options are unchanged. config is that of a client.
func (l *Lab) FollowKind(
	config *rest.Config, options informer.Options,
) (informer.Options, func(context.Context), error) {
	var kinds *served.Kinds
	run := func(context.Context) {}
	if l.restarts.get().Custom {
		var err error
		if kinds, err = served.New(served.Config{Client: config}); err != nil {
			return options, nil, err
		}
		options, run = kinds.Options(CustomResource, served.Optional, options), kinds.Run
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kinds = kinds
	return options, run, nil
}

// resource is what the pipeline follows: "configmaps", "widgets.example.com".
func (l *Lab) resource() string {
	if l.restarts.get().Custom {
		return CustomResource.GroupResource().String()
	}
	return l.options.Resource
}

// kindView describes the custom kind that the informer follows, or returns nil.
func (l *Lab) kindView() *KindView {
	l.mu.Lock()
	kinds := l.kinds
	l.mu.Unlock()
	if kinds == nil {
		return nil
	}
	for _, s := range kinds.Status() {
		return &KindView{l.resource(), string(s.Phase), printable.Short(s.Reason)}
	}
	return nil
}

// define creates the definition of the custom kind, or deletes it with all objects of the kind.
func (l *Lab) define(on bool) error {
	var definition unstructured.Unstructured
	if err := definition.UnmarshalJSON([]byte(customDefinition)); err != nil {
		return err
	}
	if on {
		return l.options.Server.Create(&definition)
	}
	return l.options.Server.Delete(&definition)
}

// undefine makes the custom kind absent.
func (l *Lab) undefine() error {
	if l.options.Server == nil {
		return nil
	}
	if err := l.define(false); !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}

// changeCustom creates, changes or deletes an object of the custom kind. Without a key, it creates
// an object with a new name.
func (l *Lab) changeCustom(c command) error {
	server, name := l.options.Server, c.Key
	if name == "" {
		name = fmt.Sprintf("default/widget-%s", server.ResourceVersion())
	}
	namespace, name, err := store.SplitMetaNamespaceKey(name)
	if err != nil {
		return err
	}
	var obj unstructured.Unstructured
	obj.SetGroupVersionKind(CustomKind)
	obj.SetNamespace(namespace)
	obj.SetName(name)
	switch c.Do {
	case "create":
		return server.Create(&obj)
	case "delete":
		return server.Delete(&obj)
	}
	for {
		if err := server.Get(&obj); err != nil {
			return err
		}
		obj.Object["changed"] = server.ResourceVersion()
		if err := server.Update(&obj); !apierrors.IsConflict(err) {
			return err
		}
	}
}
