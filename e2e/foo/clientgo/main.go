// SPDX-License-Identifier: Apache-2.0

package foo

import (
	"context"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"example.com/informerstack/e2e/foo/api"

	"k8s.io/client-go/tools/cache"
)

// resyncPeriod is how often every Foo is synced again without a change.
const resyncPeriod = 10 * time.Minute

// Main is the program around the controller: it handles the Foos of a namespace until ctx is done.
func Main(ctx context.Context, config *rest.Config, namespace string, threadiness int) error {
	kubeclientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a clientset: %w", err)
	}
	sampleclientset, err := api.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a clientset for Foos: %w", err)
	}
	broadcaster := record.NewBroadcaster(record.WithContext(ctx)) // ends with ctx
	broadcaster.StartRecordingToSink(
		&typedcorev1.EventSinkImpl{Interface: kubeclientset.CoreV1().Events("")})
	recorder := broadcaster.NewRecorder(api.Scheme, corev1.EventSource{Component: "foo-controller"})

	deploymentInformer := newInformer(kubeclientset.AppsV1().RESTClient(), "deployments", namespace,
		&appsv1.Deployment{})
	fooInformer := newInformer(sampleclientset.RESTClient(), "foos", namespace, &api.Foo{})
	controller, err := NewController(kubeclientset, sampleclientset, deploymentInformer,
		fooInformer, recorder)
	if err != nil {
		return err
	}
	var informers sync.WaitGroup
	defer informers.Wait()
	informers.Go(func() { deploymentInformer.RunWithContext(ctx) })
	informers.Go(func() { fooInformer.RunWithContext(ctx) })
	return controller.Run(ctx, threadiness)
}

// newInformer does the work of a generated factory: it returns an informer of one resource, with
// the index by namespace that listers use.
func newInformer(client rest.Interface, resource, namespace string,
	example runtime.Object) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformer(
		cache.NewListWatchFromClient(client, resource, namespace, fields.Everything()),
		example,
		resyncPeriod,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc},
	)
}
