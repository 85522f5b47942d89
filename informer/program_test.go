// SPDX-License-Identifier: Apache-2.0

package informer_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/informerstack/apitest"
	"example.com/informerstack/controller"
	"example.com/informerstack/informer"
	"example.com/informerstack/observe/sizes"
	"example.com/informerstack/store"
	"example.com/informerstack/store/compact"
)

// A complete controller. It is called with the name of each Pod of the application that is new, has
// changed, or is gone, and reads the Pod from the informer's store.
func ExampleNew() {
	ctx, stop := context.WithCancel(context.Background())
	client := newClientset(ctx)

	pods := informer.New[*corev1.Pod](client.CoreV1().RESTClient(), "pods", informer.Options{
		Namespace: "default", LabelSelector: "app=web",
	})
	reconcile := func(ctx context.Context, pod store.ObjectName) (controller.Result, error) {
		found, err := pods.Lister().ByNamespace(pod.Namespace).Get(pod.Name)
		switch {
		case apierrors.IsNotFound(err):
			fmt.Println(pod, "is gone")
			stop()
			return controller.Result{}, nil
		case err != nil:
			return controller.Result{}, err
		}
		fmt.Println(pod, "runs on", found.Spec.NodeName)
		return controller.Result{}, client.CoreV1().Pods(pod.Namespace).Delete(
			ctx, pod.Name, metav1.DeleteOptions{})
	}
	ctrl := controller.New("pods", reconcile, controller.Options[store.ObjectName]{
		WaitFor: []controller.Synced{pods.HasSyncedChecker()},
	})
	enqueue := ctrl.Handler(store.DeletionHandlingObjectToName)
	if _, err := pods.AddEventHandler(enqueue); err != nil {
		fmt.Println(err)
	}
	go pods.Run(ctx)
	if err := ctrl.Run(ctx); err != nil {
		fmt.Println(err)
	}
	// Output:
	// default/web-0 runs on node-1
	// default/web-0 is gone
}

// nodeOf is what a program reads of a Pod.
type nodeOf struct {
	compact.Meta
	Node string
}

// A program that needs too much memory measures its store, and keeps less of each object.
func ExampleNewProjected() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	client := newClientset(ctx).CoreV1().RESTClient()

	smaller := informer.Options{Form: compact.Compressed()}
	smaller.Reflector.Transform = func(obj any) (any, error) {
		obj.(*corev1.Pod).ManagedFields = nil
		return obj, nil
	}
	whole := informer.New[*corev1.Pod](client, "pods", smaller)
	fields := informer.NewProjected(client, "pods",
		compact.FieldsOf[*corev1.Pod]("spec.nodeName", "metadata.labels"), informer.Options{})
	summaries := informer.NewProjected(client, "pods",
		compact.Summary(func(pod *corev1.Pod) *nodeOf {
			return &nodeOf{Node: pod.Spec.NodeName}
		}), informer.Options{})
	go whole.Run(ctx)
	go fields.Run(ctx)
	go summaries.Run(ctx)
	if err := informer.WaitForSync(ctx, whole, fields, summaries); err != nil {
		fmt.Println(err)
	}

	fmt.Println(sizes.Measure(whole.GetIndexer()).Objects, "objects are measured")
	pod, err := whole.Lister().ByNamespace("default").Get("web-0")
	fmt.Println(pod.Name, "runs on", pod.Spec.NodeName, err)
	summary, err := summaries.Lister().ByNamespace("default").Get("web-0")
	fmt.Println(summary.Name, "runs on", summary.Node, err)
	kept, _ := fields.Lister().ByNamespace("default").Get("web-0")
	node, err := compact.Get[string](kept, "spec.nodeName")
	fmt.Println(kept.Name, "runs on", node, err)
	// Output:
	// 2 objects are measured
	// web-0 runs on node-1 <nil>
	// web-0 runs on node-1 <nil>
	// web-0 runs on node-1 <nil>
}

// A complete program. It runs in a cluster until it is interrupted.
func ExampleNew_program() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	config, err := rest.InClusterConfig()
	if err != nil {
		log.Fatal(err)
	}
	client := kubernetes.NewForConfigOrDie(config)

	pods := informer.New[*corev1.Pod](client.CoreV1().RESTClient(), "pods", informer.Options{
		LabelSelector: "app=web",
	})
	reconcile := func(ctx context.Context, name store.ObjectName) (controller.Result, error) {
		pod, err := pods.Lister().ByNamespace(name.Namespace).Get(name.Name)
		if apierrors.IsNotFound(err) {
			fmt.Println(name, "is gone")
			return controller.Result{}, nil
		} else if err != nil {
			return controller.Result{}, err
		}
		fmt.Println(name, "is", pod.Status.Phase)
		return controller.Result{}, nil
	}
	ctrl := controller.New("pods", reconcile, controller.Options[store.ObjectName]{
		WaitFor: []controller.Synced{pods.HasSyncedChecker()},
	})
	enqueue := ctrl.Handler(store.DeletionHandlingObjectToName)
	if _, err := pods.AddEventHandler(enqueue); err != nil {
		log.Fatal(err)
	}
	go pods.Run(ctx)
	if err := ctrl.Run(ctx); err != nil {
		log.Fatal(err)
	}
}

// newClientset returns a client of a test server, which has two Pods and stops with ctx.
func newClientset(ctx context.Context) kubernetes.Interface {
	server := apitest.NewServer(apitest.Options{})
	if err := server.StartPipe(); err != nil {
		panic(err)
	}
	context.AfterFunc(ctx, server.Close)
	for name, app := range map[string]string{"web-0": "web", "db-0": "db"} {
		if err := server.Create(&corev1.Pod{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: name, Labels: map[string]string{"app": app},
			},
			Spec: corev1.PodSpec{NodeName: "node-1"},
		}); err != nil {
			panic(err)
		}
	}
	return kubernetes.NewForConfigOrDie(&rest.Config{
		Host: server.URL, Transport: server.Transport(),
		ContentConfig: rest.ContentConfig{ContentType: "application/json"},
	})
}
