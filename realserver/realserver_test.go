// SPDX-License-Identifier: Apache-2.0

package realserver_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/informerstack/realserver"
	"example.com/informerstack/realserver/cluster"
)

const (
	// patience bounds the waits for what must happen.
	patience = 3 * time.Minute
	pause    = 10 * time.Millisecond
)

var gadgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}

func TestStart_InYourOwnTests(t *testing.T) {
	config := realserver.Start(t, realserver.Options{CRDs: []string{"testdata/crds"}})
	namespace := realserver.Namespace(t, config) // emptied and deleted when the test ends
	client := dynamic.NewForConfigOrDie(config).Resource(gadgets).Namespace(namespace)
	gadget := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": map[string]any{"name": "a"},
		"spec": map[string]any{"size": int64(11)},
	}}
	_, err := client.Create(t.Context(), gadget, metav1.CreateOptions{})
	require.ErrorContains(t, err, "should be less than or equal to 10")
}

// Objects of files are created, those of custom kinds too, and updated when they are loaded again.
func TestStart_LoadsFiles(t *testing.T) {
	options := realserver.Options{
		CRDs: []string{"testdata/crds"}, Load: []string{"testdata/objects.yaml"},
	}
	config := realserver.Start(t, options)
	loaded, err := dynamic.NewForConfigOrDie(config).Resource(gadgets).Namespace("workshop").
		Get(t.Context(), "small", metav1.GetOptions{})
	require.NoError(t, err)
	assert.NotEmpty(t, loaded.GetUID())
	settings := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("workshop")
	text, err := os.ReadFile("testdata/objects.yaml")
	require.NoError(t, err)
	changed := filepath.Join(t.TempDir(), "changed.yaml")
	require.NoError(t, os.WriteFile(changed,
		bytes.ReplaceAll(text, []byte(`size: "3"`), []byte(`size: "4"`)), 0o600))
	realserver.Start(t, realserver.Options{Load: []string{changed}})
	now, err := settings.Get(t.Context(), "settings", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, "4", now.Data["size"])
}

// RBAC decides about every user but the administrator.
func TestStart_UsersNeedRoles(t *testing.T) {
	config := realserver.Start(t, realserver.Options{})
	namespace := realserver.Namespace(t, config)
	admin := kubernetes.NewForConfigOrDie(config)
	user := rest.CopyConfig(config)
	user.Impersonate.UserName = "alice"
	maps := kubernetes.NewForConfigOrDie(user).CoreV1().ConfigMaps(namespace)
	_, err := maps.List(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		Rules: []rbacv1.PolicyRule{
			{Verbs: []string{"list"}, APIGroups: []string{""}, Resources: []string{"configmaps"}},
		}}
	_, err = admin.RbacV1().Roles(namespace).Create(t.Context(), role, metav1.CreateOptions{})
	require.NoError(t, err)
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "alice-reads"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
		Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "alice"}}}
	_, err = admin.RbacV1().RoleBindings(namespace).Create(t.Context(), binding,
		metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool { // the authorizer reads from a watch
		_, err := maps.List(t.Context(), metav1.ListOptions{})
		return err == nil
	}, patience, pause)
}

// A server of a test's own has its own objects and flags, and ends with the test.
func TestStart_Own(t *testing.T) {
	var own *rest.Config
	t.Run("owner", func(t *testing.T) {
		own = realserver.Start(t, realserver.Options{Own: true,
			APIServerArgs: []string{"--authorization-mode=AlwaysAllow"}})
		user := rest.CopyConfig(own)
		user.Impersonate.UserName = "alice"
		_, err := kubernetes.NewForConfigOrDie(user).CoreV1().Namespaces().
			List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
	})
	_, err := kubernetes.NewForConfigOrDie(own).Discovery().ServerVersion()
	assert.Error(t, err)
}

// The namespace of a test is gone after the test, with pods that no kubelet ends. A finalizer holds
// it.
func TestNamespace_EndsWithItsTest(t *testing.T) {
	config := realserver.Start(t, realserver.Options{})
	client := kubernetes.NewForConfigOrDie(config)
	var ended, held string
	t.Run("ended", func(t *testing.T) {
		ended = realserver.Namespace(t, config)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "a", Image: "a"}}}}
		_, err := client.CoreV1().Pods(ended).Create(t.Context(), pod, metav1.CreateOptions{})
		require.NoError(t, err)
	})
	t.Run("held", func(t *testing.T) {
		held = realserver.Namespace(t, config)
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a",
			Finalizers: []string{"example.com/hold"}}}
		_, err := client.CoreV1().ConfigMaps(held).Create(t.Context(), object,
			metav1.CreateOptions{})
		require.NoError(t, err)
	})
	assert.Contains(t, ended, "testnamespace-endswithitstest-ended-")
	namespaces := client.CoreV1().Namespaces()
	_, err := namespaces.Get(t.Context(), ended, metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err), "%v", err)
	left, err := namespaces.Get(t.Context(), held, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, corev1.NamespaceTerminating, left.Status.Phase)
}

// A version that is not known is refused, with those that are.
func TestSelected(t *testing.T) {
	for version, want := range map[string]string{
		"": cluster.Versions[0], "1.36.3": "1.36.3", "v1.37.2": "1.37.2", "1.36": "1.36.3",
	} {
		got, err := cluster.Selected(version)
		require.NoError(t, err)
		assert.Equal(t, want, got, version)
	}
	for _, version := range []string{"1.3", "1.35.0", "latest"} {
		_, err := cluster.Selected(version)
		assert.ErrorContains(t, err, `version "`+version+`": want one of 1.37.2, 1.36.3`)
	}
	t.Setenv("REALSERVER_VERSION", "1.1")
	_, err := cluster.Selected("")
	assert.ErrorContains(t, err, `REALSERVER_VERSION "1.1"`)
}
