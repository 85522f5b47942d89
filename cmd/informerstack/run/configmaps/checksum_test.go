// SPDX-License-Identifier: Apache-2.0

package configmaps

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"example.com/informerstack/apitest"
	"example.com/informerstack/controller"
	"example.com/informerstack/store"
)

// Another client has changed the object, and the cache has the copy from before. Without Writes
// each call sends a write that is refused, with it only the first one does.
func TestKeeper_OldCopy(t *testing.T) {
	for name, noted := range map[string]*controller.Writes[string]{"noted": {}, "plain": nil} {
		t.Run(name, func(t *testing.T) {
			server := apitest.NewServer(apitest.Options{})
			require.NoError(t, server.StartPipe())
			defer server.Close()
			config := dynamic.ConfigFor(&rest.Config{
				Host: server.URL, Transport: server.Transport(), APIPath: "/api", QPS: -1,
			})
			config.GroupVersion = &schema.GroupVersion{Version: "v1"}
			client, err := rest.RESTClientFor(config)
			require.NoError(t, err)
			w := NewWorkload(server, 1, 0, 0)
			require.NoError(t, w.Create("default/a"))
			cache := store.New(store.MetaNamespaceKeyFunc, store.Options{Indexers: store.Indexers{
				store.NamespaceIndex: store.MetaNamespaceIndexFunc,
			}})
			fetch := func() {
				all, err := server.List("configmaps", "default")
				require.NoError(t, err)
				require.NoError(t, cache.Add(&all[0]))
			}
			keeper := Keeper{
				Client: client, Writes: noted,
				Lister: store.NewLister[*unstructured.Unstructured](cache,
					schema.GroupResource{Resource: "configmaps"}),
			}

			fetch()
			require.NoError(t, w.Change("default/a"))
			for range 3 {
				_, err := keeper.Reconcile(t.Context(), "default/a")
				isStale := errors.Is(err, controller.ErrStale)
				assert.Equal(t, noted != nil, isStale, "%v", err)
				assert.True(t, isStale || apierrors.IsConflict(err), "%v", err)
			}
			sent := len(server.Requests(apitest.Match{Verb: "patch"}))
			assert.Equal(t, map[string]int{"noted": 1, "plain": 3}[name], sent)

			fetch()
			_, err = keeper.Reconcile(t.Context(), "default/a")
			require.NoError(t, err)
			fetch()
			_, err = keeper.Reconcile(t.Context(), "default/a")
			require.NoError(t, err)
			assert.Len(t, server.Requests(apitest.Match{Verb: "patch"}), sent+1, "nothing to do")
		})
	}
}
