// SPDX-License-Identifier: Apache-2.0

package api

import (
	_ "embed"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"
)

// CRD defines Foos, for kubectl apply.
//
//go:embed crd.yaml
var CRD []byte

// Clientset is the custom clientset of the post.
type Clientset struct {
	client rest.Interface
}

// FooInterface reads and writes the Foos of one namespace.
type FooInterface = *gentype.ClientWithList[*Foo, *FooList]

// NewForConfig returns a clientset. It does not change config.
func NewForConfig(config *rest.Config) (*Clientset, error) {
	config = rest.CopyConfig(config)
	config.GroupVersion = &GroupVersion
	config.APIPath = "/apis"
	config.NegotiatedSerializer = serializer.NewCodecFactory(Scheme).WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, err
	}
	return &Clientset{client}, nil
}

// Foos returns the client of the Foos in a namespace.
func (c *Clientset) Foos(namespace string) FooInterface {
	return gentype.NewClientWithList(
		"foos", c.client, runtime.NewParameterCodec(Scheme), namespace,
		func() *Foo { return &Foo{} },
		func() *FooList { return &FooList{} },
	)
}

// RESTClient returns the client that sends the requests of the set.
func (c *Clientset) RESTClient() rest.Interface { return c.client }
