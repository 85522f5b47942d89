// SPDX-License-Identifier: Apache-2.0

package informer_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/informerstack/apitest"
	"example.com/informerstack/informer"
)

// settings is a ConfigMap under another Go name.
type settings struct{ corev1.ConfigMap }

func (s *settings) DeepCopyObject() runtime.Object { return &settings{*s.DeepCopy()} }

// An informer of a Go type with another name than its kind reports that, also while there are no
// objects, and works once its options have the kind.
func TestNew_TypeWithAnotherName(t *testing.T) {
	for _, streaming := range []bool{false, true} {
		for _, count := range []int{0, 3} {
			t.Run(fmt.Sprint("streaming=", streaming, " objects=", count), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { testOtherName(t, streaming, count) })
			})
		}
	}
}

func testOtherName(t *testing.T, streaming bool, count int) {
	server := apitest.NewServer(apitest.Options{})
	require.NoError(t, server.StartPipe())
	defer server.Close()
	for i := range count {
		require.NoError(t, server.Create(configMap("ns", fmt.Sprint("a", i), nil)))
	}
	config := &rest.Config{Host: server.URL, Transport: server.Transport(), QPS: -1}
	client := kubernetes.NewForConfigOrDie(config).CoreV1().RESTClient()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	run := func(options informer.Options) *informer.Informer[*settings] {
		options.Reflector.UseWatchList = &streaming
		i := informer.New[*settings](client, "configmaps", options)
		go i.Run(ctx)
		return i
	}

	broken, works := run(informer.Options{}), run(informer.Options{
		Kind: corev1.SchemeGroupVersion.WithKind("ConfigMap"),
	})
	time.Sleep(2 * time.Minute)
	synctest.Wait()
	require.False(t, broken.HasSynced())
	require.ErrorContains(t, broken.Err(), `expected a list of kind "settingsList" of "v1", `+
		`got "ConfigMapList" of "v1"`)
	require.ErrorContains(t, broken.Health().Fresh(time.Now(), time.Hour), "has not synced")

	require.NoError(t, works.Err())
	require.True(t, works.HasSynced())
	require.NoError(t, works.Health().Fresh(time.Now(), 2*time.Minute))
	objects, err := works.Lister().List(nil)
	require.NoError(t, err)
	require.Len(t, objects, count)
}
