// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/informerstack/internal/tools/narrate"
	"example.com/informerstack/store"
)

func newPod(namespace, name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace,
			Name:      name,
			Labels:    map[string]string{"app": "web"},
		},
		Spec: corev1.PodSpec{NodeName: node},
	}
}

func byNode(obj any) ([]string, error) {
	return []string{obj.(*corev1.Pod).Spec.NodeName}, nil
}

// names prints objects in a fixed order, because a store has no order.
func names(list []any) string {
	var names []string
	for _, obj := range list {
		names = append(names, obj.(*corev1.Pod).Name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// printMaps prints the three maps of a store with indexes: the objects by key, the index functions
// by index name, and the keys by index name and indexed value.
func printMaps(indexer store.Indexer) {
	keys := indexer.ListKeys()
	slices.Sort(keys)
	fmt.Println("items:   ", strings.Join(keys, ", "))
	indexNames := slices.Sorted(maps.Keys(indexer.GetIndexers()))
	fmt.Println("indexers:", strings.Join(indexNames, ", "))
	for _, name := range indexNames {
		values := indexer.ListIndexFuncValues(name)
		slices.Sort(values)
		for _, value := range values {
			keys, _ := indexer.IndexKeys(name, value)
			fmt.Printf("indices[%q][%q] = {%s}\n", name, value, strings.Join(keys, ", "))
		}
	}
	fmt.Println()
}

// The three maps of a store with indexes (items, indexers and indices) after each of three pods. An
// index function computes a value from an object; an index leads from the value back to the keys of
// the objects that have it.
func Example() {
	indexer := store.New(store.MetaNamespaceKeyFunc, store.Options{Indexers: store.Indexers{
		store.NamespaceIndex: store.MetaNamespaceIndexFunc,
		"byNode":             byNode,
	}})
	for _, pod := range []*corev1.Pod{
		newPod("NamespaceA", "PodA", "node-1"),
		newPod("NamespaceA", "PodB", "node-2"),
		newPod("NamespaceB", "PodC", "node-1"),
	} {
		if err := indexer.Add(pod); err != nil {
			fmt.Println(err)
		}
		printMaps(indexer)
	}
	// Output:
	// items:    NamespaceA/PodA
	// indexers: byNode, namespace
	// indices["byNode"]["node-1"] = {NamespaceA/PodA}
	// indices["namespace"]["NamespaceA"] = {NamespaceA/PodA}
	//
	// items:    NamespaceA/PodA, NamespaceA/PodB
	// indexers: byNode, namespace
	// indices["byNode"]["node-1"] = {NamespaceA/PodA}
	// indices["byNode"]["node-2"] = {NamespaceA/PodB}
	// indices["namespace"]["NamespaceA"] = {NamespaceA/PodA, NamespaceA/PodB}
	//
	// items:    NamespaceA/PodA, NamespaceA/PodB, NamespaceB/PodC
	// indexers: byNode, namespace
	// indices["byNode"]["node-1"] = {NamespaceA/PodA, NamespaceB/PodC}
	// indices["byNode"]["node-2"] = {NamespaceA/PodB}
	// indices["namespace"]["NamespaceA"] = {NamespaceA/PodA, NamespaceA/PodB}
	// indices["namespace"]["NamespaceB"] = {NamespaceB/PodC}
}

// Four questions about the same data: the objects that share a value with an object, the objects
// that have a value, their keys, and all values.
func ExampleIndexer() {
	indexer := store.New(
		store.MetaNamespaceKeyFunc,
		store.Options{Indexers: store.Indexers{"byNode": byNode}},
	)
	podA := newPod("NamespaceA", "PodA", "node-1")
	_ = indexer.Add(podA)
	_ = indexer.Add(newPod("NamespaceA", "PodB", "node-2"))
	_ = indexer.Add(newPod("NamespaceB", "PodC", "node-1"))

	objects, err := indexer.Index("byNode", podA)
	fmt.Println("on the node of PodA:", names(objects), err)
	objects, err = indexer.ByIndex("byNode", "node-1")
	fmt.Println("on node-1:          ", names(objects), err)
	keys, err := indexer.IndexKeys("byNode", "node-1")
	fmt.Println("their keys:         ", keys, err)
	values := indexer.ListIndexFuncValues("byNode")
	slices.Sort(values)
	fmt.Println("nodes with pods:    ", values)

	_, err = indexer.ByIndex("byZone", "zone-1")
	fmt.Println(err)
	// Output:
	// on the node of PodA: PodA PodC <nil>
	// on node-1:           PodA PodC <nil>
	// their keys:          [NamespaceA/PodA NamespaceB/PodC] <nil>
	// nodes with pods:     [node-1 node-2]
	// Index with name byZone does not exist
}

// Get returns the cached object itself, which all readers share. Copy it before changing it: a
// change in place is visible to every reader, and does not reach the indexes.
func Example_sharedObjects() {
	indexer := store.New(store.MetaNamespaceKeyFunc,
		store.Options{Indexers: store.Indexers{"byNode": byNode}})
	_ = indexer.Add(newPod("ns", "a", "node-1"))

	mine, _, _ := indexer.GetByKey("ns/a")
	mine.(*corev1.Pod).Spec.NodeName = "node-2" // wrong

	theirs, _, _ := indexer.GetByKey("ns/a")
	fmt.Println("another reader sees:", theirs.(*corev1.Pod).Spec.NodeName)
	fmt.Println("the index still says:", indexer.ListIndexFuncValues("byNode"))

	right := theirs.(*corev1.Pod).DeepCopy()
	right.Spec.NodeName = "node-3"
	fmt.Println("after changing a copy:", theirs.(*corev1.Pod).Spec.NodeName)
	// Output:
	// another reader sees: node-2
	// the index still says: [node-1]
	// after changing a copy: node-2
}

// A lister gives typed objects, and NotFound errors that name the resource.
func ExampleNewLister() {
	indexer := store.New(store.MetaNamespaceKeyFunc, store.Options{Indexers: store.Indexers{
		store.NamespaceIndex: store.MetaNamespaceIndexFunc,
	}})
	_ = indexer.Add(newPod("ns", "a", "node-1"))

	pods := store.NewLister[*corev1.Pod](indexer, schema.GroupResource{Resource: "pods"})
	pod, err := pods.ByNamespace("ns").Get("a")
	fmt.Println(pod.Spec.NodeName, err)
	_, err = pods.ByNamespace("ns").Get("b")
	fmt.Println(err, apierrors.IsNotFound(err))
	web, err := pods.List(labels.SelectorFromSet(labels.Set{"app": "web"}))
	fmt.Println(len(web), err)
	// Output:
	// node-1 <nil>
	// pods "b" not found true
	// 1 <nil>
}

// A typed indexer saves the assertions.
func ExampleNewTypedIndexer() {
	pods := store.NewTypedIndexer[*corev1.Pod](
		store.New(store.MetaNamespaceKeyFunc, store.Options{}),
	)
	_ = pods.AddTypedIndexers(store.TypedIndexers[*corev1.Pod]{
		"byNode": func(pod *corev1.Pod) ([]string, error) {
			return []string{pod.Spec.NodeName}, nil
		},
	})
	_ = pods.Add(newPod("ns", "a", "node-1"))
	onNode, err := pods.ByTypedIndex("byNode", "node-1")
	fmt.Println(onNode[0].Name, err)
	// Output: a <nil>
}

// Many changes under one lock: a change that has no key is reported, the others are made.
func ExampleTransactionStore() {
	pods := store.New(store.MetaNamespaceKeyFunc, store.Options{})
	err := pods.(store.TransactionStore).Transaction(
		store.Transaction{Object: newPod("ns", "a", ""), Type: store.TransactionTypeAdd},
		store.Transaction{Object: "not an object", Type: store.TransactionTypeAdd},
		store.Transaction{Object: newPod("ns", "b", ""), Type: store.TransactionTypeAdd},
	)
	fmt.Println(err.SuccessfulIndices, "of", err.TotalTransactions, "made")
	fmt.Println(names(pods.List()))
	// Output:
	// [0 2] of 3 made
	// a b
}

// A key is "namespace/name", or the name alone.
func ExampleSplitMetaNamespaceKey() {
	for _, key := range []string{"ns/a", "node-1", "a/b/c"} {
		namespace, name, err := store.SplitMetaNamespaceKey(key)
		fmt.Printf("%q %q %v\n", namespace, name, err)
	}
	// Output:
	// "ns" "a" <nil>
	// "" "node-1" <nil>
	// "" "" unexpected key format: "a/b/c"
}

// With -v, selected examples print their output.
func TestMain(m *testing.M) { os.Exit(narrate.Run(m)) }
