// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgo "k8s.io/client-go/tools/cache"

	"example.com/informerstack/compat/cache"
)

// call formats the results of a function: equal values of both sides print the same text.
func call(value any, err error) []any {
	if err != nil {
		return []any{"error", err.Error()}
	}
	if text, ok := value.(interface{ String() string }); ok {
		value = text.String()
	}
	return []any{value}
}

// Functions that hand on to the core hand on to the right one.
func TestKeyFunctions_AsInClientGo(t *testing.T) {
	split := func(f func(string) (string, string, error)) func(string) (any, error) {
		return func(key string) (any, error) {
			namespace, name, err := f(key)
			return []string{namespace, name}, err
		}
	}
	for _, key := range []string{"", "a", "ns/a", "a/b/c", "/a", "ns/"} {
		require.Equal(t, call(split(clientgo.SplitMetaNamespaceKey)(key)),
			call(split(cache.SplitMetaNamespaceKey)(key)), key)
		theirs, theirErr := clientgo.ParseObjectName(key)
		ours, err := cache.ParseObjectName(key)
		require.Equal(t, call(theirs, theirErr), call(ours, err), key)
	}
	cluster := &v1.Node{}
	cluster.Name = "n"
	for _, obj := range []any{
		pod("a", 1), cluster, "text", nil,
		cache.ExplicitKey("ns/a"), cache.DeletedFinalStateUnknown{Key: "ns/gone"},
	} {
		theirObj := obj
		switch o := obj.(type) {
		case cache.ExplicitKey:
			theirObj = clientgo.ExplicitKey(o)
		case cache.DeletedFinalStateUnknown:
			theirObj = clientgo.DeletedFinalStateUnknown{Key: o.Key}
		}
		theirs, theirErr := clientgo.DeletionHandlingObjectToName(theirObj)
		ours, err := cache.DeletionHandlingObjectToName(obj)
		require.Equal(t, theirErr == nil, err == nil, "%v", obj)
		require.Equal(t, theirs.String(), ours.String(), "%v", obj)
		theirs, theirErr = clientgo.ObjectToName(theirObj)
		ours, err = cache.ObjectToName(obj)
		require.Equal(t, theirErr == nil, err == nil, "%v", obj)
		require.Equal(t, theirs.String(), ours.String(), "%v", obj)
	}
	require.Equal(t, "ns/a", cache.MetaObjectToName(pod("a", 1)).String())
	require.Equal(t, cache.NewObjectName("ns", "a"),
		cache.NamespacedNameAsObjectName(types.NamespacedName{Namespace: "ns", Name: "a"}))
	key, err := cache.IndexFuncToKeyFuncAdapter(byNode)(podOnNode("a", 1, "node", ""))
	require.NoError(t, err)
	require.Equal(t, "node", key)
	typed := cache.TypedIndexerFuncToIndexerFunc(
		func(p *v1.Pod) ([]string, error) { return []string{p.Spec.NodeName}, nil },
	)
	values, err := typed(podOnNode("a", 1, "node", ""))
	require.NoError(t, err)
	require.Equal(t, []string{"node"}, values)
}

// A list function finds the objects that a selector matches, in all namespaces or in one. The store
// holds transformed objects.
func TestListAll(t *testing.T) {
	far := podOnNode("far", 2, "", "")
	far.Namespace = "other"
	near := podOnNode("near", 1, "", "")
	near.Labels, far.Labels = map[string]string{"mine": "yes"}, map[string]string{"mine": "yes"}
	drop := func(obj any) (any, error) {
		obj.(*v1.Pod).Spec = v1.PodSpec{}
		return obj, nil
	}
	indexer := cache.NewIndexer(
		cache.MetaNamespaceKeyFunc,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc},
		cache.WithTransformer(drop),
	)
	for _, p := range []*v1.Pod{near, far, podOnNode("unlabelled", 3, "node", "")} {
		require.NoError(t, indexer.Add(p))
	}
	got, _, _ := indexer.GetByKey("ns/unlabelled")
	require.Empty(t, got.(*v1.Pod).Spec.NodeName, "transformed")
	var ours, theirs []string
	noteIn := func(names *[]string) func(any) {
		return func(obj any) { *names = append(*names, obj.(*v1.Pod).Name) }
	}
	mine := labels.SelectorFromSet(labels.Set{"mine": "yes"})
	require.NoError(t, cache.ListAll(indexer, mine, noteIn(&ours)))
	require.NoError(t, clientgo.ListAll(indexer, mine, noteIn(&theirs)))
	require.ElementsMatch(t, []string{"near", "far"}, ours)
	require.ElementsMatch(t, theirs, ours)

	var inNamespace, everywhere []string
	require.NoError(t, cache.ListAllByNamespace(indexer, "ns", mine, noteIn(&inNamespace)))
	require.NoError(t,
		cache.ListAllByNamespace(indexer, "", labels.Everything(), noteIn(&everywhere)))
	require.Equal(t, []string{"near"}, inNamespace)
	require.Len(t, everywhere, 3)
}

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
