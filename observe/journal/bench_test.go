// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/internal/tools/measure"
	"example.com/informerstack/workqueue"
)

// pod returns a pod of three containers, with the owners of its fields.
func pod(i, version int) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: fmt.Sprint("web-", i), ResourceVersion: fmt.Sprint(version),
		Labels: map[string]string{"app": "web", "version": fmt.Sprint(version)},
	}}
	for c := range 3 {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{
			Name: fmt.Sprint(c), Image: "nginx", Env: []corev1.EnvVar{{Name: "A", Value: "b"}}})
	}
	for c := range 5 {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodConditionType(fmt.Sprint(c)), Status: corev1.ConditionTrue})
		p.ManagedFields = append(p.ManagedFields, metav1.ManagedFieldsEntry{
			Manager:  fmt.Sprint("manager-", c),
			FieldsV1: metav1.NewFieldsV1(`{"f:a":{}}`)})
	}
	return p
}

// One change of 10,000 pods, from its handler to Done. At 1,000 changes in a second, 10 µs are one
// percent of a processor.
func BenchmarkChange(b *testing.B) {
	const pods = 10_000
	before, after := make([]*corev1.Pod, pods), make([]*corev1.Pod, pods)
	for i := range pods {
		before[i], after[i] = pod(i, 1), pod(i, 2)
	}
	for _, mode := range []string{"without", "off", "recording"} {
		b.Run("journal="+mode, func(b *testing.B) {
			j := New()
			var queue workqueue.ExtendedInterface[string] = workqueue.NewTypedRateLimitingQueue(
				workqueue.DefaultTypedControllerRateLimiter[string](), workqueue.Config[string]{})
			defer queue.ShutDown()
			if mode != "without" {
				queue = NewRateLimitingQueue(j, "pods", queue)
			}
			w := &world{journal: j, queue: queue, handle: queue.Add}
			var handler EventHandler = w
			if mode != "without" {
				handler = NewHandler[EventHandler](j, "pods", w)
			}
			if mode == "recording" {
				j.Record(24 * time.Hour)
			}
			b.ReportAllocs()
			began := measure.ProcessorTime()
			for i := 0; b.Loop(); i++ {
				handler.OnUpdate(before[i%pods], after[i%pods])
				key, _ := queue.Get()
				queue.Forget(key)
				queue.Done(key)
			}
			b.ReportMetric(float64(measure.ProcessorTime()-began)/float64(b.N), "cpu-ns/op")
		})
	}
}

// The facts of 10,000 keys, which a page asks for every two seconds, and the memory of what is
// remembered of them.
func BenchmarkFacts(b *testing.B) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	w := &world{journal: New()}
	w.journal.Record(24 * time.Hour)
	w.queue = NewRateLimitingQueue(w.journal, "pods", workqueue.NewTypedRateLimitingQueue(
		workqueue.DefaultTypedControllerRateLimiter[string](), workqueue.Config[string]{}))
	defer w.queue.ShutDown()
	w.handle = w.queue.Add
	handler := NewHandler[EventHandler](w.journal, "pods", w)
	for i := range 2 * maxLast * maxKeys {
		handler.OnUpdate(pod(i%maxKeys, 1), pod(i%maxKeys, 2))
		key, _ := w.queue.Get()
		w.queue.Done(key)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportAllocs()
	for b.Loop() {
		w.journal.Facts(100)
	}
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MiB")
}

// The fields of an update that changes the status of a pod.
func BenchmarkDifferences(b *testing.B) {
	before := measure.Pod(1)
	after := before.DeepCopy()
	after.ResourceVersion, after.Status.PodIP = "2", "10.0.0.1"
	for _, row := range []struct {
		name        string
		differences func(before, after any) []string
	}{{"apart", differences}, {"whole", allDifferences}} {
		b.Run("objects="+row.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				row.differences(before, after)
			}
		})
	}
}
