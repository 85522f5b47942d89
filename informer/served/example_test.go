// SPDX-License-Identifier: Apache-2.0

package served_test

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"example.com/informerstack/apitest"
	"example.com/informerstack/client"
	"example.com/informerstack/informer"
	"example.com/informerstack/informer/factory"
	"example.com/informerstack/informer/served"
)

// Website is a custom resource.
type Website struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Host              string `json:"host,omitempty"`
}

func (w *Website) DeepCopyObject() runtime.Object {
	copied := *w
	w.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	return &copied
}

var websites = schema.GroupVersionResource{
	Group: "example.com", Version: "v1", Resource: "websites"}

const definition = `{
	"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
	"metadata": {"name": "websites.example.com"},
	"spec": {"group": "example.com", "scope": "Namespaced",
		"names": {"plural": "websites", "kind": "Website"},
		"versions": [{"name": "v1", "served": true, "storage": true}]}}`

// An informer that starts before its kind exists.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	server := apitest.NewServer(apitest.Options{})
	if err := server.StartPipe(); err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	config := &rest.Config{Host: server.URL, Transport: server.Transport()}

	kinds, err := served.New(served.Config{Client: config})
	if err != nil {
		fmt.Println(err)
		return
	}
	sites, err := client.New[*Website](config, websites, client.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	cached := informer.New[*Website](sites.REST(), "websites",
		kinds.Options(websites, served.Optional, informer.Options{}))
	calls := make(chan string)
	_, err = cached.AddEventHandler(informer.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { calls <- "add " + obj.(*Website).Host },
		DeleteFunc: func(any) { calls <- "delete" },
	})
	fmt.Println("handler added:", err)
	go kinds.Run(ctx)
	go cached.Run(ctx)

	fmt.Println("synced:", informer.WaitForSync(ctx, cached))
	fmt.Println(kinds.Status()[0].Reason)

	var crd unstructured.Unstructured
	fmt.Println("defined:", crd.UnmarshalJSON([]byte(definition)), server.Create(&crd))
	_, err = sites.Namespace("default").Create(ctx, &Website{
		ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Host: "shop.example.com",
	}, metav1.CreateOptions{})
	fmt.Println("created:", err)
	fmt.Println(<-calls)
	fmt.Println("undefined:", server.Delete(&crd))
	fmt.Println(<-calls)
	// Output:
	// handler added: <nil>
	// synced: <nil>
	// there is no CustomResourceDefinition websites.example.com
	// defined: <nil> <nil>
	// created: <nil>
	// add shop.example.com
	// undefined: <nil>
	// delete
}

// A Factory that makes informers of the metadata of any kind.
func ExampleKinds_Options_factory() {
	config := &rest.Config{Host: "https://server"}
	kinds, err := served.New(served.Config{Client: config, Aggregated: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	shared := factory.New(
		func(key informer.Collection) (informer.SharedIndexInformer, error) {
			all, err := client.New[*metav1.PartialObjectMetadata](config, key.Resource,
				client.Options{})
			if err != nil {
				return nil, err
			}
			options := informer.Options{Namespace: key.Namespace}
			return informer.New[*metav1.PartialObjectMetadata](all.REST(), key.Resource.Resource,
				kinds.Options(key.Resource, served.Optional, options)), nil
		})
	_, err = shared.Informer(informer.Collection{Resource: websites})
	fmt.Println(err) // then go kinds.Run(ctx), and shared.Start(ctx)
	// Output: <nil>
}
