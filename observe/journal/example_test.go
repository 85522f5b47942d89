// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/informer"
	"example.com/informerstack/observe/journal"
	"example.com/informerstack/workqueue"
)

// A worker asks why it got its key.
func Example() {
	j := journal.New()
	j.Record(time.Minute)
	queue := journal.NewRateLimitingQueue(j, "settings", workqueue.NewTypedRateLimitingQueue(
		workqueue.DefaultTypedControllerRateLimiter[string](), workqueue.Config[string]{}))
	defer queue.ShutDown()
	handler := journal.NewHandler(j, "configmaps", informer.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, obj any) { queue.Add("default/" + obj.(*corev1.ConfigMap).Name) },
	})
	handler.Named("updates")

	config := func(version, color string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: "a", ResourceVersion: version},
			Data: map[string]string{"color": color},
		}
	}
	handler.OnUpdate(config("4", "red"), config("5", "blue"))
	addEveryHour(queue)

	key, _ := queue.Get()
	queue.Forget(key)
	queue.Done(key)
	_, queues := j.About(key)
	for _, reconcile := range queues[0].Last {
		_, causes, _ := strings.Cut(reconcile.String(), ": ")
		fmt.Println(reconcile.Result, "because of",
			strings.NewReplacer("; ", "\n  and ", ", informer", "\n  informer").Replace(causes))
	}
	// Output:
	// forgotten because of update of default/a from resourceVersion 4 to 5 (changed: .data.color)
	//   informer configmaps, handler updates
	//   and added by journal_test.addEveryHour
}

// addEveryHour is neither a handler nor a worker.
func addEveryHour(queue workqueue.TypedInterface[string]) { queue.Add("default/a") }
