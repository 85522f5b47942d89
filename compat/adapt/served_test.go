// SPDX-License-Identifier: Apache-2.0

package adapt_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"example.com/informerstack/apitest"
	"example.com/informerstack/compat/adapt"
	"example.com/informerstack/informer"
	"example.com/informerstack/informer/served"
	"example.com/informerstack/internal/tools/testserver"
)

// An informer with client-go's types and client-go's ListWatch follows its kind.
func TestNewSharedIndexInformerWithOptions_FollowsItsKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := testserver.New(t, apitest.Options{})
		websites := schema.GroupVersionResource{
			Group: "example.com", Version: "v1", Resource: "websites"}
		kinds, err := served.New(served.Config{Client: server.Config()})
		require.NoError(t, err)
		all := dynamic.NewForConfigOrDie(server.Config()).Resource(websites)
		cached := adapt.NewSharedIndexInformerWithOptions(
			&cache.ListWatch{
				ListWithContextFunc: func(
					ctx context.Context, options metav1.ListOptions,
				) (runtime.Object, error) {
					return all.List(ctx, options)
				},
				WatchFuncWithContext: all.Watch,
			},
			&unstructured.Unstructured{},
			kinds.Options(websites, served.Optional, informer.Options{}))
		var calls []string
		_, err = cached.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { calls = append(calls, "add") },
			DeleteFunc: func(obj any) {
				_, isTombstone := obj.(cache.DeletedFinalStateUnknown)
				assert.True(t, isTombstone)
				calls = append(calls, "tombstone")
			},
		})
		require.NoError(t, err)
		stop := testserver.Run(t.Context(), kinds.Run, cached.RunWithContext)
		time.Sleep(time.Hour)
		assert.True(t, cached.HasSynced())
		ofWebsites := apitest.Match{Resource: "websites"}
		assert.Empty(t, server.Requests(ofWebsites))
		definition := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": map[string]any{"name": "websites.example.com"},
			"spec": map[string]any{
				"group": "example.com", "scope": "Namespaced",
				"names":    map[string]any{"plural": "websites", "kind": "Website"},
				"versions": []any{map[string]any{"name": "v1", "served": true}},
			},
			"status": map[string]any{"conditions": []any{
				map[string]any{"type": "Established", "status": "True"},
			}},
		}}
		for range 2 {
			require.NoError(t, server.Create(definition))
			require.NoError(t, server.Create(&unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "example.com/v1", "kind": "Website",
				"metadata": map[string]any{"namespace": "default", "name": "a"},
			}}))
			time.Sleep(time.Second)
			synctest.Wait()
			assert.Equal(t, []string{"default/a"}, cached.GetStore().ListKeys())
			server.Faults().Break(ofWebsites, apitest.StallStream)
			require.NoError(t, server.Delete(definition))
			definition.SetResourceVersion("")
			definition.SetUID("")
			time.Sleep(time.Minute)
		}
		stop()
		synctest.Wait()
		assert.Equal(t, []string{"add", "tombstone", "add", "tombstone"}, calls)
	})
}
