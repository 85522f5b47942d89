// SPDX-License-Identifier: Apache-2.0

package swapped_test

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"example.com/informerstack/e2e/fixture"
	"example.com/informerstack/realserver/cluster"
)

var widgetCount = flag.Int("widgets", 30_000, "number of custom resources of the operator")

// The costs of an operator on custom resources, which a server sends in JSON alone: of its start,
// and of a minute of changes.
func BenchmarkSwapped_CustomResources(b *testing.B) {
	servers := cluster.New(b, cluster.Options{})
	w := newWidgets(b, servers)
	for _, on := range []string{"client-go", "informerstack"} {
		goWork := "off"
		if on == "informerstack" {
			goWork = swap(b, "controllerruntime")
		}
		program := compile(b, "controllerruntime", goWork, "./widgets")
		b.Run("on="+on, func(b *testing.B) {
			for range b.N {
				w.measure(b, servers, program, on)
			}
			b.ReportMetric(0, "ns/op") // it includes the cost of the servers
		})
	}
}

func (w *widgets) measure(b *testing.B, servers *cluster.Cluster, program, on string) {
	address := freeAddress(b)
	start := time.Now()
	process, err := servers.Run("widgets-"+on, program,
		"--kubeconfig", servers.Kubeconfig(), "--address", address)
	require.NoError(b, err)
	defer process.Kill()
	operator := newRunning(b, process, "http://"+address, "")
	require.Eventually(b, func() bool {
		n, _ := operator.metric(`controller_runtime_reconcile_total\{.*success.*\}`)
		return n >= float64(*widgetCount)
	}, patience, 50*time.Millisecond)
	b.ReportMetric(time.Since(start).Seconds(), "s-to-sync")
	b.ReportMetric(operator.cost("process_cpu_seconds_total"), "cpu-s-to-sync")
	reportPeak(b, process)
	before := operator.cost("process_cpu_seconds_total")
	changes := w.change(b)
	b.ReportMetric(operator.cost("process_cpu_seconds_total")-before, "cpu-s-under-load")
	b.ReportMetric(float64(changes)/loadFor.Seconds(), "changes/s")
}

// widgets are custom resources.
type widgets struct {
	client dynamic.NamespaceableResourceInterface
}

func newWidgets(b *testing.B, servers *cluster.Cluster) *widgets {
	config := servers.Config(cluster.AdminToken)
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	require.NoError(b, err)
	resource := schema.GroupVersionResource{
		Group: "wire.example.com", Version: "v1", Resource: "widgets",
	}
	w := &widgets{client.Resource(resource)}
	fixture.Define(b, config, fixture.Definition(resource, "Widget", "Cluster"))
	fixture.Each(b, *widgetCount, func(i int) error { return w.create(b.Context(), i) })
	return w
}

func widgetName(i int) string { return fmt.Sprintf("widget-%06d", i) }

// create creates a Widget of 1.7 kB of JSON.
func (w *widgets) create(ctx context.Context, i int) error {
	settings, parts := map[string]any{}, []any{}
	for n := range 10 {
		settings[fmt.Sprintf("setting-%d", n)] = fmt.Sprintf("value-%d-%d", i, n)
	}
	for n := range 4 {
		parts = append(parts, map[string]any{
			"name": fmt.Sprintf("part-%d", n), "image": "registry.example.com/team/app:v1.2.3",
			"args": []any{"--config=/etc/app/config.yaml", "--v=2"},
		})
	}
	_, err := w.client.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "wire.example.com/v1", "kind": "Widget",
		"metadata": map[string]any{
			"name": widgetName(i), "labels": map[string]any{"app": "widgets"},
			"annotations": map[string]any{"note": strings.Repeat("a", 100)},
		},
		"spec": map[string]any{
			"size": "large", "replicas": int64(3), "settings": settings, "parts": parts,
		},
		"status": map[string]any{"phase": "Ready", "conditions": []any{map[string]any{
			"type": "Ready", "status": "True", "reason": "Done", "message": "all is ready",
			"lastTransitionTime": "2026-01-02T03:04:05Z",
		}}},
	}}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// change changes Widgets for a while. It returns how often.
func (w *widgets) change(b *testing.B) int64 {
	ctx, stop := context.WithTimeout(b.Context(), *loadFor)
	defer stop()
	return load(ctx, b, func(n int, patch []byte) error {
		_, err := w.client.Patch(ctx, widgetName(n%*widgetCount), types.MergePatchType, patch,
			metav1.PatchOptions{})
		return err
	})
}
