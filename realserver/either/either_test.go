// SPDX-License-Identifier: Apache-2.0

package either_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"example.com/informerstack/realserver"
	"example.com/informerstack/realserver/either"
	"example.com/informerstack/realserver/either/answers"
)

func TestStart_OnBoth(t *testing.T) {
	config := either.Start(t, realserver.Options{})
	client := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps(either.Namespace(t, config))
	a := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	_, err := client.Create(t.Context(), a, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = client.Create(t.Context(), a, metav1.CreateOptions{})
	require.True(t, apierrors.IsAlreadyExists(err), "%v", err)
}

// Objects of files are in both servers.
func TestStart_LoadsFiles(t *testing.T) {
	config := either.Start(t, realserver.Options{CRDs: []string{"../testdata/crds"},
		Load: []string{"../testdata/objects.yaml"}})
	gadgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}
	small, err := dynamic.NewForConfigOrDie(config).Resource(gadgets).Namespace("workshop").
		Get(t.Context(), "small", metav1.GetOptions{})
	require.NoError(t, err)
	assert.NotEmpty(t, small.GetUID())
}

// A namespace ends with its test.
func TestNamespace(t *testing.T) {
	config := either.Start(t, realserver.Options{})
	client := kubernetes.NewForConfigOrDie(config)
	var name string
	t.Run("inner", func(t *testing.T) {
		name = either.Namespace(t, config)
		_, err := client.CoreV1().ConfigMaps(name).Create(t.Context(),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
		require.NoError(t, err)
	})
	_, err := client.CoreV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err), "%v", err)
}

// A test of the report runs this one, which passes on a real server only.
func TestDiffers(t *testing.T) {
	if os.Getenv(answers.Variable) == "" {
		t.Skip("it is a test for the report")
	}
	config := either.Start(t, realserver.Options{})
	client := kubernetes.NewForConfigOrDie(config)
	_, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), "a", metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err), "%v", err)
	_, err = client.RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	require.NoError(t, err)
}
