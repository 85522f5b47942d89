// SPDX-License-Identifier: Apache-2.0

package compact_test

import (
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	clientgo "k8s.io/client-go/tools/cache"

	"example.com/informerstack/internal/tools/measure"
	"example.com/informerstack/internal/tools/storemodel"
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

var benchImpls = []struct {
	name string
	make func() storemodel.Store
}{
	{"form=compressed/impl=ours", func() storemodel.Store { return ofForm(compact.Compressed()) }},
	{"form=fields/impl=ours", func() storemodel.Store { return ofForm(fiveFields()) }},
	{"form=summary/impl=ours", func() storemodel.Store {
		return ofForm(compact.Summary(summarize))
	}},
	{"form=stripped/impl=client-go", func() storemodel.Store {
		return clientgo.NewIndexer(clientgo.MetaNamespaceKeyFunc, clientgo.Indexers{
			clientgo.NamespaceIndex: clientgo.MetaNamespaceIndexFunc, "node": byNode})
	}},
}

func ofForm(form compact.Form) storemodel.Store {
	return compact.New(form, store.Options{Indexers: store.Indexers{
		store.NamespaceIndex: store.MetaNamespaceIndexFunc, "node": byNode}})
}

func byNode(obj any) ([]string, error) { return []string{obj.(*corev1.Pod).Spec.NodeName}, nil }

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
					update(b, s, e)
				}
				b.ReportMetric(float64(measure.Live()-before)/float64(len(encoded)), "B/object")
				runtime.KeepAlive(s)
			}
		})
	}
}

// onEach runs a benchmark with a store of n pods of each implementation.
func onEach(
	b *testing.B, n int,
	run func(b *testing.B, s storemodel.Store, encoded [][]byte, keys []string),
) {
	for _, impl := range benchImpls {
		b.Run(impl.name, func(b *testing.B) {
			s, encoded := impl.make(), encodedPods(b, n)
			var keys []string
			for _, e := range encoded {
				keys = append(keys, storemodel.Key(update(b, s, e)))
			}
			run(b, s, encoded, keys)
		})
	}
}

// update stores an object as an informer does: it is decoded and transformed, and shares no memory
// with others.
func update(b *testing.B, s storemodel.Store, encoded []byte) *corev1.Pod {
	pod := &corev1.Pod{}
	if err := pod.Unmarshal(encoded); err != nil {
		b.Fatal(err)
	}
	pod.ManagedFields = nil
	if err := s.Update(pod); err != nil {
		b.Fatal(err)
	}
	return pod
}

func get(b *testing.B, s storemodel.Store, key string) any {
	obj, exists, err := s.GetByKey(key)
	if err != nil || !exists {
		b.Fatal(exists, err)
	}
	return obj
}

const warmPods = 5000

// BenchmarkUpdate is what a sync or an event costs beside its transport: the object is decoded from
// protobuf, transformed and stored.
func BenchmarkUpdate(b *testing.B) {
	onEach(b, warmPods, func(b *testing.B, s storemodel.Store, encoded [][]byte, _ []string) {
		for i := 0; b.Loop(); i++ {
			update(b, s, encoded[i%warmPods])
		}
	})
}

func BenchmarkGetByKey(b *testing.B) {
	onEach(b, warmPods, func(b *testing.B, s storemodel.Store, _ [][]byte, keys []string) {
		for i := 0; b.Loop(); i++ {
			get(b, s, keys[i%warmPods])
		}
	})
}

// BenchmarkGetByKey_Same reads one object again and again: it stays decoded.
func BenchmarkGetByKey_Same(b *testing.B) {
	onEach(b, 100, func(b *testing.B, s storemodel.Store, _ [][]byte, keys []string) {
		for b.Loop() {
			get(b, s, keys[0])
		}
	})
}

func BenchmarkList(b *testing.B) {
	onEach(b, warmPods, func(b *testing.B, s storemodel.Store, _ [][]byte, _ []string) {
		for b.Loop() {
			if len(s.List()) != warmPods {
				b.Fatal("pods are missing")
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/warmPods, "ns/object")
	})
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
	onEach(b, warmPods, func(b *testing.B, s storemodel.Store, encoded [][]byte, keys []string) {
		for i := 0; b.Loop(); i++ {
			oldObj := get(b, s, keys[i%warmPods])
			update(b, s, encoded[i%warmPods])
			newObj := get(b, s, keys[i%warmPods])
			if nodeOf(oldObj) == "" || nodeOf(newObj) == "" {
				b.Fatal("no node")
			}
		}
	})
}
