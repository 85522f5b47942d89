// SPDX-License-Identifier: Apache-2.0

package recipes

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crfake "sigs.k8s.io/controller-runtime/pkg/client/fake"

	"example.com/informerstack/apitest"
)

// On client-go's fake client, a write of an old copy succeeds. On both fake clients, a watch lacks
// the changes between a list and its own beginning.
func TestFakes(t *testing.T) {
	ofFake := func(c kubernetes.Interface) watcher {
		return func(t *testing.T, version string) watch.Interface {
			w, err := c.CoreV1().ConfigMaps("default").Watch(t.Context(),
				metav1.ListOptions{ResourceVersion: version})
			require.NoError(t, err)
			return w
		}
	}
	clientset := fake.NewClientset()
	runtimeFake := crfake.NewClientBuilder().Build()
	server := apitest.Start(t, apitest.Options{})
	clients := kubernetes.NewForConfigOrDie(server.Config())
	for _, test := range []struct {
		name                string
		maps                maps
		watch               watcher
		conflicts, complete bool
	}{
		{"client-go-fake", ofClientGo(clientset), ofFake(clientset), false, false},
		{"controller-runtime-fake", ofControllerRuntime(runtimeFake),
			func(t *testing.T, version string) watch.Interface {
				w, err := runtimeFake.Watch(t.Context(), &corev1.ConfigMapList{},
					&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: version}})
				require.NoError(t, err)
				return w
			}, true, false},
		{"apitest", ofClientGo(clients), ofFake(clients), true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx := t.Context()
			a := object(0)
			require.NoError(t, test.maps.create(ctx, a))
			old := a.DeepCopy()
			a.Data["more"] = "y"
			require.NoError(t, test.maps.update(ctx, a))
			old.Data["more"] = "z"
			err := test.maps.update(ctx, old)
			assert.Equal(t, test.conflicts, err != nil, "%v", err)

			w := test.watch(t, old.ResourceVersion)
			defer w.Stop()
			require.NoError(t, test.maps.remove(ctx, a))
			event := <-w.ResultChan()
			assert.Equal(t, test.complete, event.Type == watch.Modified,
				"the first event is %s", event.Type)
		})
	}
}

// watcher watches from a version.
type watcher func(t *testing.T, version string) watch.Interface
