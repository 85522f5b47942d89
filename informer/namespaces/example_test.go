// SPDX-License-Identifier: Apache-2.0

package namespaces_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/informerstack/apitest"
	"example.com/informerstack/informer"
	"example.com/informerstack/informer/namespaces"
	"example.com/informerstack/store"
)

// One informer of the ConfigMaps of some teams. Team b joins later, and team a leaves.
func ExampleNew() {
	server, client := teams("a", "b", "c")
	defer server.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	maps := namespaces.New[*corev1.ConfigMap](client, "configmaps", namespaces.Options{
		Namespaces: []string{"team-a", "team-c"},
		Tolerate:   namespaces.Forbidden,
	})
	calls := make(chan string)
	_, err := maps.AddEventHandler(informer.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { calls <- "add " + obj.(*corev1.ConfigMap).Namespace },
		DeleteFunc: func(obj any) {
			name, _ := store.DeletionHandlingObjectToName(obj)
			calls <- "delete " + name.Namespace
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	go maps.Run(ctx)
	if err := informer.WaitForSync(ctx, maps); err != nil {
		log.Fatal(err)
	}
	fmt.Println(<-calls) // team-c is left out
	maps.Add("team-b")
	fmt.Println(<-calls)
	maps.Remove("team-a")
	fmt.Println(<-calls)
	for _, n := range maps.Namespaces() {
		fmt.Println(n.Namespace, "synced:", n.HasSynced, "left out:", n.LeftOut)
	}
	// Output:
	// add team-a
	// add team-b
	// delete team-a
	// team-b synced: true left out: false
	// team-c synced: false left out: true
}

// teams starts a server with a ConfigMap in the namespace of each team. team-c is forbidden.
func teams(names ...string) (*apitest.Server, rest.Interface) {
	server := apitest.NewServer(apitest.Options{AnyNamespace: true})
	for _, name := range names {
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: "team-" + name, Name: "settings",
		}}
		if err := server.Create(m); err != nil {
			log.Fatal(err)
		}
	}
	server.Faults().Fail(0, apitest.Match{Resource: "configmaps", Namespace: "team-c"},
		apierrors.NewForbidden(corev1.Resource("configmaps"), "", errors.New("no role")))
	if err := server.Start(); err != nil {
		log.Fatal(err)
	}
	config := &rest.Config{Host: server.URL}
	return server, kubernetes.NewForConfigOrDie(config).CoreV1().RESTClient()
}
