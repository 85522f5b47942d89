// SPDX-License-Identifier: Apache-2.0

package informer_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"example.com/informerstack/apitest"
	"example.com/informerstack/informer"
	"example.com/informerstack/internal/tools/testserver"
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
	server := testserver.New(t, apitest.Options{})
	for i := range count {
		require.NoError(t, server.Create(configMap("ns", fmt.Sprint("a", i), nil)))
	}
	run := func(options informer.Options) *informer.Informer[*settings] {
		options.Reflector.UseWatchList = &streaming
		i := informer.New[*settings](server.Client(), "configmaps", options)
		go i.Run(t.Context())
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
