// SPDX-License-Identifier: Apache-2.0

// Package client reads and writes the objects of one resource as Go values, such as those of a
// custom resource. It needs no generated clientset, and no scheme.
//
//	worker -> [client] -> API server
//
// To use it, make a [Client] with [New], give its REST client to informer.New, and write with the
// client of a namespace. In a reconcile, read from the informer's store, not with Get or List.
//
// The methods are those of client-go's typed clients and have their arguments. Client-go's package
// gentype has the same for types that are in a scheme and have a list type.
//
// Read this file, then namespace.go; then go test -v ./client. Goroutines: none. Locking: none.
package client

import (
	"cmp"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

// Object is the constraint of the objects of a Client. Pointers to all Kubernetes API types satisfy
// it, and so does a pointer to a struct with metav1.TypeMeta, metav1.ObjectMeta and a method
// DeepCopyObject.
type Object interface {
	runtime.Object
	metav1.Object
}

// Client reads and writes the objects of one resource. T is a pointer to their Go type. All methods
// are safe for concurrent use.
type Client[T Object] struct {
	rest     rest.Interface
	resource string
	kind     schema.GroupVersionKind
}

// New returns a client of resource. config is not changed. The kind is the name of the Go type,
// unless a Kind is set in options.
//
// Requests and answers are JSON. Each client has a rate limiter of its own, unless config has a
// RateLimiter, which its clients then share.
func New[T Object](
	config *rest.Config, resource schema.GroupVersionResource, options Options,
) (*Client[T], error) {
	object := reflect.TypeFor[T]()
	if object.Kind() != reflect.Pointer || object.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("make client of %s: %v is not a pointer to a struct",
			resource.GroupResource(), object)
	}
	gv := resource.GroupVersion()
	kind := gv.WithKind(cmp.Or(options.Kind, object.Elem().Name()))
	if kind.Version == "" || kind.Kind == "" || resource.Resource == "" {
		return nil, fmt.Errorf("make client of %q: version, resource or kind is empty: %v",
			resource.GroupResource(), kind)
	}
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(kind, newObject[T]())
	metav1.AddToGroupVersion(scheme, gv)
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"}) // of a Status

	own := rest.CopyConfig(config)
	own.GroupVersion, own.APIPath = &gv, "/apis"
	if gv.Group == "" {
		own.APIPath = "/api"
	}
	own.ContentType, own.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	own.UserAgent = cmp.Or(own.UserAgent, rest.DefaultKubernetesUserAgent())
	own.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	restClient, err := rest.RESTClientFor(own)
	if err != nil {
		return nil, fmt.Errorf("make client of %s: %w", resource.GroupResource(), err)
	}
	return &Client[T]{restClient, resource.Resource, kind}, nil
}

// Options configures a Client.
type Options struct {
	// Kind is the kind of the objects, if the Go type has another name.
	Kind string
}

// REST returns the client of the resource's group and version, for informer.New.
func (c *Client[T]) REST() rest.Interface { return c.rest }

// Namespace returns the client of the objects in namespace; "" means the objects of a cluster-wide
// resource, and for List and Watch those of all namespaces.
func (c *Client[T]) Namespace(namespace string) Namespace[T] {
	return Namespace[T]{c.rest, c.resource, c.kind, namespace}
}

func newObject[T Object]() T { return reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T) }
