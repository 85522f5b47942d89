// SPDX-License-Identifier: Apache-2.0

package apitest_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"example.com/informerstack/apitest"
	"example.com/informerstack/internal/tools/narrate"
)

// A server, and a client of it.
func Example() {
	server := apitest.NewServer(apitest.Options{Scheme: scheme.Scheme})
	if err := server.Start(); err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()

	client := kubernetes.NewForConfigOrDie(
		&rest.Config{Host: server.URL, Transport: server.Transport()})
	ctx := context.Background()
	maps := client.CoreV1().ConfigMaps("default")
	made, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}},
		metav1.CreateOptions{})
	fmt.Println(made.Name, made.ResourceVersion, err)
	_, err = maps.Get(ctx, "b", metav1.GetOptions{})
	fmt.Println(err)
	// Output:
	// a 5 <nil>
	// configmaps "b" not found
}

// Failures on demand: the next two lists are refused.
func ExampleFaults_Fail() {
	server := apitest.NewServer(apitest.Options{})
	if err := server.Start(); err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	server.Faults().Fail(2, apitest.Match{Verb: "list", Resource: "pods"},
		apierrors.NewTooManyRequests("later", 1))

	for range 3 {
		resp, err := server.Client().Get(server.URL + "/api/v1/pods")
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s, Retry-After: %q\n", resp.Status, resp.Header.Get("Retry-After"))
		_ = resp.Body.Close()
	}
	for _, r := range server.Requests(apitest.Match{Verb: "list"}) {
		fmt.Println(r.Verb, r.Resource, r.Code)
	}
	// Output:
	// 429 Too Many Requests, Retry-After: "1"
	// 429 Too Many Requests, Retry-After: "1"
	// 200 OK, Retry-After: ""
	// list pods 429
	// list pods 429
	// list pods 200
}

// A custom kind.
func ExampleServer_Register() {
	server := apitest.NewServer(apitest.Options{})
	err := server.Register(apitest.Resource{
		Group: "example.com", Version: "v1", Kind: "Widget", Plural: "widgets", Namespaced: true,
		Status: true,
	})
	fmt.Println(err)
	fmt.Println(server.Register(apitest.Resource{Version: "v1", Kind: "Pod", Plural: "pods"}))
	// Output:
	// <nil>
	// register resource pods in v1: served already
}

// labelPods is a controller to test: it labels each pod with its node.
func labelPods(ctx context.Context, client kubernetes.Interface) {
	factory := informers.NewSharedInformerFactory(client, 0)
	label := func(obj any) {
		pod, ok := obj.(*corev1.Pod)
		if !ok || pod.Labels["node"] == pod.Spec.NodeName {
			return
		}
		pod = pod.DeepCopy()
		pod.Labels = map[string]string{"node": pod.Spec.NodeName}
		// after a conflict, the informer delivers the newer pod
		_, _ = client.CoreV1().Pods(pod.Namespace).Update(ctx, pod, metav1.UpdateOptions{})
	}
	_, _ = factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: label, UpdateFunc: func(_, obj any) { label(obj) },
	})
	factory.Start(ctx.Done())
	<-ctx.Done()
	factory.Shutdown()
}

// How to test a controller: everything in one bubble, so that hours take no time, and synctest.Wait
// returns when nothing is left to do. No sleep waits for a condition.
func TestExample_Controller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := apitest.NewServer(apitest.Options{Scheme: scheme.Scheme})
		require.NoError(t, server.StartPipe())
		defer server.Close()
		client := kubernetes.NewForConfigOrDie(
			&rest.Config{Host: server.URL, Transport: server.Transport()})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go labelPods(ctx, client)

		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"},
			Spec: corev1.PodSpec{NodeName: "n1"}}
		require.NoError(t, server.Create(pod))
		synctest.Wait() // the controller has seen the pod and written it
		require.NoError(t, server.Get(pod))
		require.Equal(t, "n1", pod.Labels["node"])

		// The server goes away for ten minutes, and another client moves the pod meanwhile.
		allow := server.Faults().RefuseConnections()
		pod.Spec.NodeName = "n2"
		require.NoError(t, server.Update(pod))
		time.Sleep(10 * time.Minute)
		require.NoError(t, allow())
		// longer than the longest pause between two attempts of the controller
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		require.NoError(t, server.Get(pod))
		require.Equal(t, "n2", pod.Labels["node"])
	})
}

// With -v, selected examples print their output.
func TestMain(m *testing.M) { os.Exit(narrate.Run(m)) }
