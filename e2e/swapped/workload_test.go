// SPDX-License-Identifier: Apache-2.0

package swapped_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"example.com/informerstack/realserver/cluster"
)

// patience bounds each wait. A step takes a second or two, and longer on a busy machine.
const patience = 2 * time.Minute

// workload is a Deployment "web" in a new namespace. Its pods become ready as if a kubelet ran
// them.
type workload struct {
	t         testing.TB
	client    kubernetes.Interface
	namespace string
}

func newWorkload(t testing.TB, servers *cluster.Cluster) *workload {
	config := servers.Config(cluster.AdminToken)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	w := &workload{t, client, "swapped"}
	_, err = client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}, metav1.CreateOptions{})
	require.NoError(t, err)
	done := make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		defer close(done)
		w.runPods(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-done
	})
	return w
}

// runPods acts as the kubelet: it marks every pod as ready. It retries failed writes.
func (w *workload) runPods(ctx context.Context) {
	for ctx.Err() == nil {
		pods, err := w.client.CoreV1().Pods(w.namespace).List(ctx,
			metav1.ListOptions{ResourceVersion: "0"})
		for i := 0; err == nil && i < len(pods.Items); i++ {
			if pod := &pods.Items[i]; pod.Status.Phase != corev1.PodRunning {
				pod.Status.Phase = corev1.PodRunning
				pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady,
					Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
				_, _ = w.client.CoreV1().Pods(w.namespace).UpdateStatus(ctx, pod,
					metav1.UpdateOptions{})
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (w *workload) deploy(image string, replicas int32) {
	w.t.Helper()
	labels := map[string]string{"app": "web"}
	_, err := w.client.AppsV1().Deployments(w.namespace).Create(w.t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web",
					Image: image}}},
			},
		},
	}, metav1.CreateOptions{})
	require.NoError(w.t, err)
}

func (w *workload) scale(replicas int32) {
	w.t.Helper()
	scale := &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: w.namespace},
		Spec:       autoscalingv1.ScaleSpec{Replicas: replicas},
	}
	_, err := w.client.AppsV1().Deployments(w.namespace).UpdateScale(w.t.Context(), "web", scale,
		metav1.UpdateOptions{})
	require.NoError(w.t, err)
}

// roll changes the image.
func (w *workload) roll(image string) {
	w.t.Helper()
	patch := fmt.Sprintf(
		`{"spec": {"template": {"spec": {"containers": [{"name": "web", "image": %q}]}}}}`, image)
	_, err := w.client.AppsV1().Deployments(w.namespace).Patch(w.t.Context(), "web",
		"application/strategic-merge-patch+json", []byte(patch), metav1.PatchOptions{})
	require.NoError(w.t, err)
}

// delete leaves the Deployment's dependents to the garbage collector.
func (w *workload) delete() {
	w.t.Helper()
	background := metav1.DeletePropagationBackground
	require.NoError(w.t, w.client.AppsV1().Deployments(w.namespace).Delete(w.t.Context(), "web",
		metav1.DeleteOptions{PropagationPolicy: &background}))
}

// runs waits until the Deployment reports that the rollout is complete, and its pods have the
// image.
func (w *workload) runs(replicas int32, image string) {
	w.t.Helper()
	require.EventuallyWithT(w.t, func(t *assert.CollectT) {
		deployment, err := w.client.AppsV1().Deployments(w.namespace).Get(w.t.Context(), "web",
			metav1.GetOptions{})
		require.NoError(t, err)
		status := deployment.Status
		assert.Equal(t, deployment.Generation, status.ObservedGeneration)
		assert.Equal(t, []int32{replicas, replicas, replicas},
			[]int32{status.Replicas, status.UpdatedReplicas, status.AvailableReplicas})
		sets := w.replicaSets(t)
		require.Contains(t, sets, image)
		pods, err := w.client.CoreV1().Pods(w.namespace).List(w.t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		assert.Len(t, pods.Items, int(replicas))
		for _, pod := range pods.Items {
			assert.Equal(t, image, pod.Spec.Containers[0].Image)
			if owner := metav1.GetControllerOf(&pod); assert.NotNil(t, owner) {
				assert.Equal(t, sets[image].UID, owner.UID)
			}
		}
		if owner := metav1.GetControllerOf(sets[image]); assert.NotNil(t, owner) {
			assert.Equal(t, deployment.UID, owner.UID)
		}
	}, patience, 50*time.Millisecond)
}

// hasReplicaSets checks the number of replicas of each image's ReplicaSet.
func (w *workload) hasReplicaSets(want map[string]int32) {
	w.t.Helper()
	got := map[string]int32{}
	for image, set := range w.replicaSets(w.t) {
		got[image] = *set.Spec.Replicas
	}
	assert.Equal(w.t, want, got)
}

// isGone waits until all dependents of the Deployment are deleted.
func (w *workload) isGone() {
	w.t.Helper()
	require.EventuallyWithT(w.t, func(t *assert.CollectT) {
		assert.Empty(t, w.replicaSets(t))
		pods, err := w.client.CoreV1().Pods(w.namespace).List(w.t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		assert.Empty(t, pods.Items)
	}, patience, 50*time.Millisecond)
}

// deleteNamespace waits until the namespace is deleted with all its objects.
func (w *workload) deleteNamespace() {
	w.t.Helper()
	_, err := w.client.CoreV1().ServiceAccounts(w.namespace).Get(w.t.Context(), "default",
		metav1.GetOptions{})
	require.NoError(w.t, err)
	require.NoError(w.t,
		w.client.CoreV1().Namespaces().Delete(w.t.Context(), w.namespace, metav1.DeleteOptions{}))
	require.EventuallyWithT(w.t, func(t *assert.CollectT) {
		_, err := w.client.CoreV1().Namespaces().Get(w.t.Context(), w.namespace,
			metav1.GetOptions{})
		assert.True(t, apierrors.IsNotFound(err), "%v", err)
	}, patience, 50*time.Millisecond)
}

// replicaSets returns those of the namespace, by image.
func (w *workload) replicaSets(t require.TestingT) map[string]*appsv1.ReplicaSet {
	list, err := w.client.AppsV1().ReplicaSets(w.namespace).List(w.t.Context(),
		metav1.ListOptions{})
	require.NoError(t, err)
	sets := map[string]*appsv1.ReplicaSet{}
	for i, set := range list.Items {
		sets[set.Spec.Template.Spec.Containers[0].Image] = &list.Items[i]
	}
	return sets
}
