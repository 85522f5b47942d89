// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/informerstack/compat/cache"
)

// A generic lister finds objects by namespace and name, and its errors name the resource.
func TestGenericLister(t *testing.T) {
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for _, text := range []string{
		"ns/a app=web", "ns/b app=db", "other/c app=web", "node-1 app=web",
	} {
		require.NoError(t, indexer.Add(parsePod(text)))
	}
	generic := cache.NewGenericLister(indexer,
		schema.GroupResource{Group: "apps", Resource: "deployments"})
	obj, err := generic.ByNamespace("ns").Get("a")
	require.NoError(t, err)
	require.IsType(t, &v1.Pod{}, obj)
	_, err = generic.Get("none")
	require.EqualError(t, err, `deployments.apps "none" not found`)
	list, err := generic.List(labels.Everything())
	require.NoError(t, err)
	require.Len(t, list, 4)
	list, err = generic.ByNamespace("other").List(labels.SelectorFromSet(labels.Set{"app": "web"}))
	require.NoError(t, err)
	require.Len(t, list, 1)
}
