// SPDX-License-Identifier: Apache-2.0

package realserver

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// cleanupTimeout bounds the deletion of a namespace.
const cleanupTimeout = time.Minute

// maxPrefix bounds the part of a namespace's name that comes from the test's.
const maxPrefix = 40

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// Namespace creates a namespace for a test, named after the test, and returns its name. When the
// test ends, the objects in it are deleted, and then the namespace. Objects with finalizers stay,
// and with them the namespace, which is Terminating.
func Namespace(t testing.TB, config *rest.Config) string {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatalf("make a client: %v", err)
	}
	prefix := notInNames.ReplaceAllString(strings.ToLower(t.Name()), "-")
	prefix = strings.Trim(prefix[:min(len(prefix), maxPrefix)], "-") + "-"
	namespace, err := client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix}},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create a namespace: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
		defer cancel()
		if err := remove(ctx, config, client, namespace.Name); err != nil {
			t.Errorf("delete namespace %s: %v", namespace.Name, err)
		}
	})
	return namespace.Name
}

// remove deletes a namespace as a controller manager does: it becomes Terminating, so that nothing
// more is created in it, its objects are deleted, and it goes after the last one.
func remove(
	ctx context.Context, config *rest.Config, client kubernetes.Interface, name string,
) error {
	namespaces := client.CoreV1().Namespaces()
	err := namespaces.Delete(ctx, name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = namespaces.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) { // the server is package apitest's
		return nil
	}
	held, err := empty(ctx, config, client.Discovery(), name)
	if err != nil || held {
		return err
	}
	namespace, err := namespaces.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	namespace.Spec.Finalizers = nil
	_, err = namespaces.Finalize(ctx, namespace, metav1.UpdateOptions{})
	return err
}

// empty deletes the objects of a namespace. Finalizers hold some of them if held is true.
func empty(
	ctx context.Context, config *rest.Config, kinds discovery.DiscoveryInterface, namespace string,
) (held bool, err error) {
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{} // of kinds that are deprecated
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return false, err
	}
	lists, err := kinds.ServerPreferredNamespacedResources()
	if err != nil && len(lists) == 0 { // else some group's server does not answer
		return false, err
	}
	var failed error
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return false, err
		}
		for _, kind := range list.APIResources {
			if !slices.Contains(kind.Verbs, "list") ||
				!slices.Contains(kind.Verbs, "deletecollection") {
				continue
			}
			resource := client.Resource(version.WithResource(kind.Name)).Namespace(namespace)
			left, err := deleteAll(ctx, resource)
			if err != nil {
				failed = errors.Join(failed, fmt.Errorf("delete its %s: %w", kind.Name, err))
			}
			held = held || left
		}
	}
	return held, failed
}

// deleteAll deletes the objects of a collection, and reports whether some are left.
func deleteAll(ctx context.Context, resource metadata.ResourceInterface) (left bool, err error) {
	objects, err := resource.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil || len(objects.Items) == 0 {
		return false, err
	}
	now := int64(0) // no kubelet ends a pod's grace
	err = resource.DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &now},
		metav1.ListOptions{})
	if err != nil {
		return true, err
	}
	objects, err = resource.List(ctx, metav1.ListOptions{Limit: 1})
	return err != nil || len(objects.Items) > 0, err
}
