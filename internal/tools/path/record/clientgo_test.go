// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/features"
	featurestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// clientGo runs an informer, a queue and a worker of client-go, as its example of a controller.
func clientGo(inOrder bool) start {
	return func(t *testing.T, w *world, client rest.Interface, reconciled func()) {
		featurestesting.SetFeatureDuringTest(t, features.InOrderInformers, inOrder)
		lw := cache.NewListWatchFromClient(client, "pods", metav1.NamespaceAll, fields.Everything())
		pods := cache.NewSharedIndexInformer(lw, &corev1.Pod{}, 0,
			cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
		queue := workqueue.NewTypedRateLimitingQueue(
			workqueue.DefaultTypedControllerRateLimiter[string]())
		enqueue := func(obj any) {
			key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
			assert.NoError(t, err)
			queue.Add(key)
		}
		_, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    enqueue,
			UpdateFunc: func(_, obj any) { enqueue(obj) },
			DeleteFunc: enqueue,
		})
		require.NoError(t, err)
		w.run(pods.RunWithContext)
		w.run(func(ctx context.Context) {
			defer context.AfterFunc(ctx, queue.ShutDown)()
			for {
				key, shutdown := queue.Get()
				if shutdown {
					return
				}
				reconciled()
				queue.Forget(key)
				queue.Done(key)
			}
		})
	}
}
