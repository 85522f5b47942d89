// SPDX-License-Identifier: Apache-2.0

package swapped_test

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"example.com/informerstack/e2e/fixture"
	"example.com/informerstack/realserver/cluster"
)

// A cluster of ReplicaSets with 100 pods each. The pods change 500 times a second.
const (
	podsPerSet    = 100
	changesPerSec = 500
	writers       = 16
	probeEvery    = 200 * time.Millisecond
)

var (
	replicaSets = flag.Int("sets", 200, "number of ReplicaSets of the large cluster")
	loadFor     = flag.Duration("load", time.Minute, "how long pods change; 0 is not at all")
)

// The costs of a manager that starts on a large cluster, and that follows its changes. A probe
// makes a pod ready; its latency is the time until the manager has written that into the status of
// the ReplicaSet.
func BenchmarkSwapped_LargeCluster(b *testing.B) {
	for _, on := range []string{"client-go", "informerstack"} {
		b.Run("on="+on, func(b *testing.B) {
			program := buildManager(b, on)
			for range b.N {
				servers := cluster.New(b, cluster.Options{})
				l := newLargeCluster(b, servers)
				start := time.Now()
				m := startManager(b, servers, program, on)
				require.Eventually(b, l.isAdopted, patience, 100*time.Millisecond)
				b.ReportMetric(time.Since(start).Seconds(), "s-to-sync")
				b.ReportMetric(m.cost("process_cpu_seconds_total"), "cpu-s-to-sync")
				b.ReportMetric(m.cost("go_memstats_alloc_bytes_total")/1e6, "allocated-MB-to-sync")
				reportPeak(b, m.process)
				if *loadFor == 0 {
					m.process.Kill()
					continue
				}

				before := m.cost("process_cpu_seconds_total")
				changes, latencies := l.load()
				b.ReportMetric(m.cost("process_cpu_seconds_total")-before, "cpu-s-under-load")
				b.ReportMetric(m.cost("process_resident_memory_bytes")/1e6, "rss-MB")
				b.ReportMetric(float64(changes)/loadFor.Seconds(), "changes/s")
				require.NotEmpty(b, latencies)
				slices.Sort(latencies)
				for _, percent := range []int{50, 99} {
					b.ReportMetric(float64(latencies[len(latencies)*percent/100].Milliseconds()),
						fmt.Sprintf("p%d-ms", percent))
				}
				_, err := m.get("/debug/pprof/heap?gc=1")
				require.NoError(b, err)
				b.ReportMetric(m.cost("go_memstats_heap_alloc_bytes")/1e6, "live-heap-MB")
				m.process.Kill()
			}
			b.ReportMetric(0, "ns/op") // it includes the cost of the servers
		})
	}
}

// reportPeak reports the most memory that a program has had so far.
func reportPeak(b *testing.B, process *cluster.Process) {
	peak, err := process.PeakBytes()
	require.NoError(b, err)
	b.ReportMetric(float64(peak)/1e6, "peak-MB-to-sync")
}

// largeCluster has the pods that kubelets and a scheduler would have left.
type largeCluster struct {
	b         *testing.B
	client    kubernetes.Interface
	namespace string
}

func newLargeCluster(b *testing.B, servers *cluster.Cluster) *largeCluster {
	config := servers.Config(cluster.AdminToken)
	config.ContentType, config.QPS = "application/vnd.kubernetes.protobuf", -1
	client, err := kubernetes.NewForConfig(config)
	require.NoError(b, err)
	l := &largeCluster{b, client, "large"}
	_, err = client.CoreV1().Namespaces().Create(b.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: l.namespace}}, metav1.CreateOptions{})
	require.NoError(b, err)
	_, err = client.CoreV1().ServiceAccounts(l.namespace).Create(b.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}},
		metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(b, err)
	}
	fixture.Each(b, *replicaSets, func(i int) error { return l.create(b.Context(), i) })
	return l
}

func setName(i int) string    { return fmt.Sprintf("set-%d", i) }
func podName(i, j int) string { return fmt.Sprintf("set-%d-%d", i, j) }

// create creates a ReplicaSet and its pods.
func (l *largeCluster) create(ctx context.Context, i int) error {
	labels := map[string]string{"app": setName(i)}
	spec := corev1.PodSpec{
		Containers: []corev1.Container{{Name: "app", Image: "registry.example/app:v1"}},
	}
	set, err := l.client.AppsV1().ReplicaSets(l.namespace).Create(ctx, &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: setName(i), Labels: labels},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: new(int32(podsPerSet)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec,
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	owner := *metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))
	for j := range podsPerSet {
		_, err := l.client.CoreV1().Pods(l.namespace).Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: podName(i, j), Labels: labels,
				OwnerReferences: []metav1.OwnerReference{owner}},
			Spec: spec,
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
	}
	return nil
}

// isAdopted reports whether the manager has counted the pods of each ReplicaSet.
func (l *largeCluster) isAdopted() bool {
	sets, err := l.client.AppsV1().ReplicaSets(l.namespace).List(l.b.Context(),
		metav1.ListOptions{ResourceVersion: "0"})
	return err == nil && len(sets.Items) == *replicaSets && !slices.ContainsFunc(sets.Items,
		func(set appsv1.ReplicaSet) bool { return set.Status.Replicas != podsPerSet })
}

// load changes pods for a while. It returns how often, and the latencies of the probes.
func (l *largeCluster) load() (changes int64, latencies []time.Duration) {
	ctx, stop := context.WithTimeout(l.b.Context(), *loadFor)
	defer stop()
	var changing sync.WaitGroup
	changing.Go(func() {
		changes = load(ctx, l.b, func(n int, patch []byte) error {
			sets := *replicaSets
			_, err := l.client.CoreV1().Pods(l.namespace).Patch(ctx,
				podName(n%sets, 1+n/sets%(podsPerSet-1)), // the first is probed
				types.MergePatchType, patch, metav1.PatchOptions{})
			return err
		})
	})
	latencies = l.probe(ctx)
	changing.Wait()
	return changes, latencies
}

// load calls change with growing numbers, and a patch that is another one each time, changesPerSec
// times a second until ctx ends. It returns how often.
func load(ctx context.Context, b *testing.B, change func(n int, patch []byte) error) int64 {
	var group sync.WaitGroup
	var next atomic.Int64
	limiter := rate.NewLimiter(changesPerSec, 1)
	for range writers {
		group.Go(func() {
			for limiter.Wait(ctx) == nil {
				n := int(next.Add(1))
				patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"change":"%s"}}}`,
					time.Now().Format(time.RFC3339Nano))
				if err := change(n, patch); err != nil && ctx.Err() == nil {
					b.Errorf("change number %d: %v", n, err)
					return
				}
			}
		})
	}
	group.Wait()
	return next.Load()
}

// probe makes the first pod of each ReplicaSet ready, one after the other, until ctx ends.
func (l *largeCluster) probe(ctx context.Context) (latencies []time.Duration) {
	w, err := l.client.AppsV1().ReplicaSets(l.namespace).Watch(l.b.Context(), metav1.ListOptions{})
	require.NoError(l.b, err)
	defer w.Stop()
	ticker := time.NewTicker(probeEvery)
	defer ticker.Stop()
	began := map[string]time.Time{}
	for i := 0; ; {
		select {
		case <-ctx.Done():
			require.Less(l.b, len(began), 10, "probes without an answer: %v", began)
			return latencies
		case <-ticker.C:
			if i == *replicaSets {
				continue
			}
			began[setName(i)] = time.Now()
			require.NoError(l.b, l.makeReady(podName(i, 0)))
			i++
		case event, ok := <-w.ResultChan():
			require.True(l.b, ok, "the watch has ended")
			set, isSet := event.Object.(*appsv1.ReplicaSet)
			require.True(l.b, isSet, "%v", event)
			if start, waits := began[set.Name]; waits && set.Status.ReadyReplicas == 1 {
				latencies = append(latencies, time.Since(start))
				delete(began, set.Name)
			}
		}
	}
}

func (l *largeCluster) makeReady(pod string) error {
	const ready = `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`
	_, err := l.client.CoreV1().Pods(l.namespace).Patch(l.b.Context(), pod,
		types.StrategicMergePatchType, []byte(ready), metav1.PatchOptions{}, "status")
	return err
}
