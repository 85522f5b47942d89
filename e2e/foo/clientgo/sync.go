// SPDX-License-Identifier: Apache-2.0

package foo

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"example.com/informerstack/e2e/foo/api"

	"k8s.io/client-go/tools/cache"
)

// ErrResourceExists is the reason of the event for a Deployment that belongs to another owner.
const ErrResourceExists = "ErrResourceExists"

// syncHandler makes the Deployment match the Foo. It compares whole states, not changes, so it may
// be called any number of times, for any reason. The key is retried after an error. (6. The core
// logic.)
func (c *Controller) syncHandler(ctx context.Context, key string) error {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "Not a key", "key", key)
		return nil
	}
	obj, err := c.foosLister.ByNamespace(namespace).Get(name)
	if apierrors.IsNotFound(err) {
		return nil // deleted since it was enqueued
	}
	if err != nil {
		return fmt.Errorf("get Foo %s: %w", key, err)
	}
	foo := obj.(*api.Foo)
	if foo.Spec.DeploymentName == "" {
		utilruntime.HandleErrorWithContext(ctx, nil, "A Foo must name its Deployment", "foo", key)
		return nil // only its next change may help, a retry would not
	}
	deployment, err := c.syncDeployment(ctx, foo)
	if err != nil {
		return fmt.Errorf("sync Deployment %s of Foo %s: %w", foo.Spec.DeploymentName, key, err)
	}
	if err := c.updateFooStatus(ctx, foo, deployment); err != nil {
		return fmt.Errorf("update status of Foo %s: %w", key, err)
	}
	return nil
}

// syncDeployment returns the Foo's Deployment, after creating or scaling it if necessary.
func (c *Controller) syncDeployment(ctx context.Context, foo *api.Foo) (*appsv1.Deployment, error) {
	client := c.kubeclientset.AppsV1().Deployments(foo.Namespace)
	obj, err := c.deploymentsLister.ByNamespace(foo.Namespace).Get(foo.Spec.DeploymentName)
	if apierrors.IsNotFound(err) {
		return client.Create(ctx, newDeployment(foo), metav1.CreateOptions{})
	}
	if err != nil {
		return nil, err
	}
	deployment := obj.(*appsv1.Deployment)
	if !metav1.IsControlledBy(deployment, foo) {
		c.recorder.Eventf(foo, corev1.EventTypeWarning, ErrResourceExists,
			"Deployment %s is not this Foo's", deployment.Name)
		return nil, errors.New("it exists and is not this Foo's")
	}
	want, got := foo.Spec.Replicas, deployment.Spec.Replicas
	if want == nil || got != nil && *got == *want {
		return deployment, nil
	}
	deployment = deployment.DeepCopy() // objects in a cache are shared: copy before writing
	deployment.Spec.Replicas = want
	return client.Update(ctx, deployment, metav1.UpdateOptions{})
}

// updateFooStatus copies the Deployment's number of available replicas into the Foo's status.
func (c *Controller) updateFooStatus(ctx context.Context, foo *api.Foo,
	deployment *appsv1.Deployment) error {
	if foo.Status.AvailableReplicas == deployment.Status.AvailableReplicas {
		return nil
	}
	foo = foo.DeepCopy()
	foo.Status.AvailableReplicas = deployment.Status.AvailableReplicas
	_, err := c.sampleclientset.Foos(foo.Namespace).UpdateStatus(ctx, foo, metav1.UpdateOptions{})
	return err
}

// newDeployment returns the Deployment of a Foo. By its owner reference handleObject finds the Foo,
// and the garbage collector deletes it after the Foo.
func newDeployment(foo *api.Foo) *appsv1.Deployment {
	labels := map[string]string{"app": "nginx", "foo": foo.Name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Name:            foo.Spec.DeploymentName,
			Namespace:       foo.Namespace,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(foo, api.FooKind)},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: foo.Spec.Replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "nginx",
					Image: "nginx"}}},
			},
		},
	}
}
