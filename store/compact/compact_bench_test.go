// SPDX-License-Identifier: Apache-2.0

package compact_test

import (
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	clientgo "k8s.io/client-go/tools/cache"

	"example.com/informerstack/internal/tools/measure"
	"example.com/informerstack/store"
	"example.com/informerstack/store/compact"
)

// podSummary is a Summary of five fields.
type podSummary struct {
	compact.Meta
	Node, IP, App string
	Phase         corev1.PodPhase
	QoS           corev1.PodQOSClass
}

func summarize(pod *corev1.Pod) *podSummary {
	return &podSummary{
		Node: pod.Spec.NodeName, IP: pod.Status.PodIP, Phase: pod.Status.Phase,
		QoS: pod.Status.QOSClass, App: pod.Labels["app.kubernetes.io/name"],
	}
}

func fiveFields() compact.Form {
	return compact.FieldsOf[*corev1.Pod]("spec.nodeName", "status.podIP", "status.phase",
		"status.qosClass", "metadata.labels['app.kubernetes.io/name']")
}

// storage has the methods of either Indexer that the benchmarks use.
type storage interface {
	Update(obj any) error
	Replace(list []any, resourceVersion string) error
	List() []any
	GetByKey(key string) (any, bool, error)
	ByIndex(indexName, indexedValue string) ([]any, error)
}

var benchImpls = []struct {
	name string
	make func() storage
}{
	{"form=compressed/impl=ours", func() storage { return ofForm(compact.Compressed()) }},
	{"form=fields/impl=ours", func() storage { return ofForm(fiveFields()) }},
	{"form=summary/impl=ours", func() storage { return ofForm(compact.Summary(summarize)) }},
	{"form=stripped/impl=client-go", func() storage {
		return clientgo.NewIndexer(clientgo.MetaNamespaceKeyFunc, clientgo.Indexers{
			clientgo.NamespaceIndex: clientgo.MetaNamespaceIndexFunc, "node": byNode})
	}},
}

func ofForm(form compact.Form) storage {
	return compact.New(form, store.Options{Indexers: store.Indexers{
		store.NamespaceIndex: store.MetaNamespaceIndexFunc, "node": byNode}})
}

func byNode(obj any) ([]string, error) { return []string{obj.(*corev1.Pod).Spec.NodeName}, nil }

// decoded returns pod i as an informer receives it: it shares no memory with others.
func decoded(b *testing.B, encoded []byte) *corev1.Pod {
	pod := &corev1.Pod{}
	if err := pod.Unmarshal(encoded); err != nil {
		b.Fatal(err)
	}
	return pod
}

const benchPods = 100_000

func encodedPods(b *testing.B, n int) [][]byte {
	encoded := make([][]byte, n)
	for i := range encoded {
		var err error
		if encoded[i], err = measure.ClusterPod(i).Marshal(); err != nil {
			b.Fatal(err)
		}
	}
	return encoded
}

func BenchmarkMemory(b *testing.B) {
	encoded := encodedPods(b, benchPods)
	for _, impl := range benchImpls {
		b.Run(impl.name, func(b *testing.B) {
			for b.Loop() {
				before := measure.Live()
				s := impl.make()
				for _, e := range encoded {
					pod := decoded(b, e)
					pod.ManagedFields = nil
					if err := s.Update(pod); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(measure.Live()-before)/float64(len(encoded)), "B/object")
				runtime.KeepAlive(s)
			}
		})
	}
}

// warm fills a store with n pods.
func warm(b *testing.B, s storage, n int) (encoded [][]byte, keys []string) {
	encoded = encodedPods(b, n)
	for _, e := range encoded {
		pod := decoded(b, e)
		pod.ManagedFields = nil
		if err := s.Update(pod); err != nil {
			b.Fatal(err)
		}
		keys = append(keys, pod.Namespace+"/"+pod.Name)
	}
	return encoded, keys
}

const warmPods = 5000

// BenchmarkUpdate is what a sync or an event costs beside its transport: the object is decoded from
// protobuf, transformed and stored.
func BenchmarkUpdate(b *testing.B) {
	for _, impl := range benchImpls {
		b.Run(impl.name, func(b *testing.B) {
			s := impl.make()
			encoded, _ := warm(b, s, warmPods)
			i := 0
			for b.Loop() {
				pod := decoded(b, encoded[i%warmPods])
				pod.ManagedFields = nil
				if err := s.Update(pod); err != nil {
					b.Fatal(err)
				}
				i++
			}
		})
	}
}

func BenchmarkGetByKey(b *testing.B) {
	for _, impl := range benchImpls {
		b.Run(impl.name, func(b *testing.B) {
			s := impl.make()
			_, keys := warm(b, s, warmPods)
			i := 0
			for b.Loop() {
				if _, exists, err := s.GetByKey(keys[i%warmPods]); err != nil || !exists {
					b.Fatal(exists, err)
				}
				i++
			}
		})
	}
}

// BenchmarkGetByKey_Same reads one object again and again: it stays decoded.
func BenchmarkGetByKey_Same(b *testing.B) {
	for _, impl := range benchImpls {
		b.Run(impl.name, func(b *testing.B) {
			s := impl.make()
			_, keys := warm(b, s, 100)
			for b.Loop() {
				if _, exists, err := s.GetByKey(keys[0]); err != nil || !exists {
					b.Fatal(exists, err)
				}
			}
		})
	}
}

func BenchmarkList(b *testing.B) {
	for _, impl := range benchImpls {
		b.Run(impl.name, func(b *testing.B) {
			s := impl.make()
			warm(b, s, warmPods)
			for b.Loop() {
				if len(s.List()) != warmPods {
					b.Fatal("pods are missing")
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/warmPods, "ns/object")
		})
	}
}

// BenchmarkEvent is BenchmarkUpdate with a handler that reads a field of the old and of the new
// object.
func BenchmarkEvent(b *testing.B) {
	nodeOf := func(obj any) (node string) {
		switch o := obj.(type) {
		case *corev1.Pod:
			node = o.Spec.NodeName
		case *podSummary:
			node = o.Node
		case *compact.Fields:
			node, _ = compact.Get[string](o, "spec.nodeName")
		}
		return node
	}
	for _, impl := range benchImpls {
		b.Run(impl.name, func(b *testing.B) {
			s := impl.make()
			encoded, keys := warm(b, s, warmPods)
			i := 0
			for b.Loop() {
				pod := decoded(b, encoded[i%warmPods])
				pod.ManagedFields = nil
				oldObj, _, _ := s.GetByKey(keys[i%warmPods])
				if err := s.Update(pod); err != nil {
					b.Fatal(err)
				}
				newObj, _, _ := s.GetByKey(keys[i%warmPods])
				if nodeOf(oldObj) == "" || nodeOf(newObj) == "" {
					b.Fatal("no node")
				}
				i++
			}
		})
	}
}
