// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	clientgo "k8s.io/client-go/tools/cache"

	"example.com/informerstack/internal/tools/storemodel"
)

// The benchmarks hold 100,000 pods in 100 namespaces on 5,000 nodes, with 3 indexes: by namespace
// (1,000 pods for each value), by node (20) and by UID (1).
const benchPods = 100_000

func benchPod(i int) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       fmt.Sprintf("namespace-%d", i%100),
			Name:            fmt.Sprintf("deployment-5f6d8c7b9d-%06d", i),
			UID:             types.UID(fmt.Sprintf("6ba7b810-9dad-11d1-80b4-%012d", i)),
			ResourceVersion: fmt.Sprint(1_000_000 + i),
		},
		Spec: corev1.PodSpec{NodeName: fmt.Sprintf("node-%d", i%5000)},
	}
}

func benchList(pods []*corev1.Pod) []any {
	list := make([]any, len(pods))
	for i, pod := range pods {
		list[i] = pod
	}
	return list
}

func podNodeIndexFunc(obj any) ([]string, error) {
	return []string{obj.(*corev1.Pod).Spec.NodeName}, nil
}

func podUIDIndexFunc(obj any) ([]string, error) {
	return []string{string(obj.(*corev1.Pod).UID)}, nil
}

type benchImpl struct {
	name       string
	newStorage func(indexed bool) storemodel.Store
	listAll    func(s storemodel.Store, namespace string, appendFn func(any)) error
}

// benchIndexers are the index functions, if there are any.
func benchIndexers[M ~map[string]F, F ~func(any) ([]string, error)](indexed bool) M {
	if !indexed {
		return M{}
	}
	return storemodel.Indexers[M](map[string]storemodel.IndexFunc{
		NamespaceIndex: MetaNamespaceIndexFunc, "node": podNodeIndexFunc, "uid": podUIDIndexFunc})
}

var benchImpls = []benchImpl{
	{"ours", func(indexed bool) storemodel.Store {
		return New(MetaNamespaceKeyFunc, Options{Indexers: benchIndexers[Indexers](indexed)})
	}, func(s storemodel.Store, namespace string, appendFn func(any)) error {
		return ListAllByNamespace(s.(Indexer), namespace, labels.Everything(), appendFn)
	}},
	{"client-go", func(indexed bool) storemodel.Store {
		return clientgo.NewIndexer(clientgo.MetaNamespaceKeyFunc,
			benchIndexers[clientgo.Indexers](indexed))
	}, func(s storemodel.Store, namespace string, appendFn func(any)) error {
		indexer := s.(clientgo.Indexer)
		return clientgo.ListAllByNamespace(indexer, namespace, labels.Everything(), appendFn)
	}},
}

func benchmark(
	b *testing.B, run func(b *testing.B, s storemodel.Store, pods []*corev1.Pod, impl benchImpl),
) {
	pods := make([]*corev1.Pod, benchPods)
	for i := range pods {
		pods[i] = benchPod(i)
	}
	for _, impl := range benchImpls {
		b.Run("impl="+impl.name, func(b *testing.B) {
			s := impl.newStorage(true)
			if err := s.Replace(benchList(pods), "1"); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			settle(b)
			run(b, s, pods, impl)
		})
	}
}

// settle ends the preparation: its garbage is collected now, before the time of the benchmark.
func settle(b *testing.B) {
	runtime.GC()
	b.ResetTimer()
}

// Status changes: every update is a new object with the same indexed values.
func BenchmarkUpdate(b *testing.B) {
	benchmark(b, func(b *testing.B, s storemodel.Store, pods []*corev1.Pod, _ benchImpl) {
		news := make([]*corev1.Pod, len(pods))
		for i, pod := range pods {
			other := *pod
			news[i] = &other
		}
		settle(b)
		for i := 0; b.Loop(); i++ {
			_ = s.Update(news[i*7919%benchPods])
		}
	})
}

// Every update moves the pod to another node.
func BenchmarkUpdateMoves(b *testing.B) {
	benchmark(b, func(b *testing.B, s storemodel.Store, pods []*corev1.Pod, _ benchImpl) {
		var news [2][]*corev1.Pod
		for j := range news {
			news[j] = make([]*corev1.Pod, len(pods))
			for i, pod := range pods {
				other := *pod
				other.Spec.NodeName = pods[(i+j+1)%len(pods)].Spec.NodeName
				news[j][i] = &other
			}
		}
		settle(b)
		for i := 0; b.Loop(); i++ {
			_ = s.Update(news[i/benchPods%2][i*7919%benchPods])
		}
	})
}

func BenchmarkByIndex(b *testing.B) {
	for _, index := range []struct {
		name  string
		value func(*corev1.Pod) string
	}{
		{NamespaceIndex, func(pod *corev1.Pod) string { return pod.Namespace }},
		{"node", func(pod *corev1.Pod) string { return pod.Spec.NodeName }},
		{"uid", func(pod *corev1.Pod) string { return string(pod.UID) }},
	} {
		b.Run("index="+index.name, func(b *testing.B) {
			benchmark(b, func(b *testing.B, s storemodel.Store, pods []*corev1.Pod, _ benchImpl) {
				for i := 0; b.Loop(); i++ {
					list, err := s.ByIndex(index.name, index.value(pods[i*7919%benchPods]))
					if err != nil || len(list) == 0 {
						b.Fatal(list, err)
					}
				}
			})
		})
	}
}

func BenchmarkIndex(b *testing.B) {
	benchmark(b, func(b *testing.B, s storemodel.Store, pods []*corev1.Pod, _ benchImpl) {
		for i := 0; b.Loop(); i++ {
			_, _ = s.Index("node", pods[i*7919%benchPods])
		}
	})
}

func BenchmarkListAllByNamespace(b *testing.B) {
	for _, found := range []int{1000, 1} {
		b.Run(fmt.Sprintf("found=%d", found), func(b *testing.B) {
			benchmark(b, func(
				b *testing.B, s storemodel.Store, pods []*corev1.Pod, impl benchImpl,
			) {
				if found == 1 {
					pod := benchPod(benchPods)
					pod.Namespace, pods = "small", []*corev1.Pod{pod}
					_ = s.Add(pod)
				}
				for i := 0; b.Loop(); i++ {
					count := 0
					_ = impl.listAll(s, pods[i%len(pods)].Namespace, func(any) { count++ })
					if count != found {
						b.Fatal(count)
					}
				}
			})
		})
	}
}

func BenchmarkList(b *testing.B) {
	benchmark(b, func(b *testing.B, s storemodel.Store, _ []*corev1.Pod, _ benchImpl) {
		for b.Loop() {
			_ = s.List()
		}
	})
}

func BenchmarkGetByKey(b *testing.B) {
	benchmark(b, func(b *testing.B, s storemodel.Store, pods []*corev1.Pod, _ benchImpl) {
		keys := make([]string, len(pods))
		for i, pod := range pods {
			keys[i], _ = MetaNamespaceKeyFunc(pod)
		}
		settle(b)
		for i := 0; b.Loop(); i++ {
			if _, exists, _ := s.GetByKey(keys[i*7919%benchPods]); !exists {
				b.Fatal(i)
			}
		}
	})
}

func BenchmarkReplace(b *testing.B) {
	benchmark(b, func(b *testing.B, s storemodel.Store, pods []*corev1.Pod, _ benchImpl) {
		list := benchList(pods)
		for b.Loop() {
			_ = s.Replace(list, "2")
		}
	})
}

// The memory of a store for each object, without the object: after a Replace, and after an update
// of every object.
func BenchmarkMemory(b *testing.B) {
	pods := make([]*corev1.Pod, benchPods)
	for i := range pods {
		pods[i] = benchPod(i)
	}
	list := benchList(pods)
	for _, indexed := range []bool{false, true} {
		for _, updated := range []bool{false, true} {
			for _, impl := range benchImpls {
				b.Run(
					fmt.Sprintf("indexed=%t/updated=%t/impl=%s", indexed, updated, impl.name),
					func(b *testing.B) {
						for b.Loop() {
							before := heapBytes()
							s := impl.newStorage(indexed)
							_ = s.Replace(list, "1")
							for i := 0; updated && i < len(pods); i++ {
								_ = s.Update(pods[i])
							}
							b.ReportMetric(float64(heapBytes()-before)/benchPods, "bytes/object")
							runtime.KeepAlive(s)
						}
					},
				)
			}
		}
	}
	runtime.KeepAlive(list)
}

func heapBytes() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
