// SPDX-License-Identifier: Apache-2.0

package swapped_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/e2e/fixture"
	"example.com/informerstack/realserver/cluster"
)

// The costs of a manager that starts with 5,000 ConfigMaps and a new Deployment of 1,000 pods.
func BenchmarkSwapped_KubeControllerManager(b *testing.B) {
	const configMaps, pods = 5000, 1000
	for _, on := range []string{"client-go", "informerstack"} {
		b.Run("on="+on, func(b *testing.B) {
			program := buildManager(b, on)
			for range b.N {
				servers := cluster.New(b, cluster.Options{})
				w := newWorkload(b, servers)
				w.createConfigMaps(configMaps)
				w.deploy("v1", pods)

				start := time.Now()
				m := startManager(b, servers, program, on)
				w.hasReplicaSet("v1")
				b.ReportMetric(time.Since(start).Seconds(), "s-to-first-write")
				b.ReportMetric(m.cost("process_cpu_seconds_total"), "cpu-s-to-first-write")
				w.runs(pods, "v1")
				b.ReportMetric(time.Since(start).Seconds(), "s-to-all-pods")
				b.ReportMetric(m.cost("process_cpu_seconds_total"), "cpu-s-to-all-pods")
				b.ReportMetric(m.cost("process_resident_memory_bytes")/1e6, "rss-MB")
				_, err := m.get("/debug/pprof/heap?gc=1")
				require.NoError(b, err)
				b.ReportMetric(m.cost("go_memstats_heap_alloc_bytes")/1e6, "live-heap-MB")
				b.ReportMetric(m.cost("go_goroutines"), "goroutines")
				m.process.Kill()
			}
			b.ReportMetric(0, "ns/op") // it includes the cost of the servers
		})
	}
}

// createConfigMaps creates many ConfigMaps of 1 kB.
func (w *workload) createConfigMaps(count int) {
	fixture.Each(w.t, count, func(i int) error {
		_, err := w.client.CoreV1().ConfigMaps(w.namespace).Create(w.t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("c-%d", i)},
			Data:       map[string]string{"k": strings.Repeat("x", 1000)},
		}, metav1.CreateOptions{})
		return err
	})
}

// hasReplicaSet waits for a ReplicaSet with the image.
func (w *workload) hasReplicaSet(image string) {
	w.t.Helper()
	require.Eventually(w.t, func() bool { return w.replicaSets(w.t)[image] != nil }, patience,
		20*time.Millisecond)
}
