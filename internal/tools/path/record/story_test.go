// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"example.com/informerstack/controller"
	"example.com/informerstack/informer"
	"example.com/informerstack/internal/tools/path/record"
	"example.com/informerstack/store"
)

// start starts an informer and a controller, which call reconciled for each reconcile.
type start func(t *testing.T, w *world, client rest.Interface, reconciled func())

// scenarios are the ways of a change. The names are those of the table in docs/reports/path.md.
var scenarios = map[string]struct {
	mediaType string
	start     start
}{
	"socket protobuf DeltaFIFO": {"application/vnd.kubernetes.protobuf", fromSocket(false)},
	"socket protobuf RealFIFO":  {"application/vnd.kubernetes.protobuf", fromSocket(true)},
	"socket JSON DeltaFIFO":     {"application/json", fromSocket(false)},
	"socket JSON RealFIFO":      {"application/json", fromSocket(true)},
	"watch DeltaFIFO":           {"application/json", fromListWatch(false)},
	"watch RealFIFO":            {"application/json", fromListWatch(true)},
	"client-go DeltaFIFO":       {"application/json", clientGo(false)},
	"client-go RealFIFO":        {"application/json", clientGo(true)},
}

// One change of an object goes from the API server to the worker: one informer, one handler, one
// worker, everything synced and idle. It is repeated, because the garbage collector may join in.
func TestStory_OneChangeReachesTheWorker(t *testing.T) {
	all := map[string][]record.Change{}
	for _, name := range slices.Sorted(maps.Keys(scenarios)) {
		scenario := scenarios[name]
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all[name] = changes(t, scenario.mediaType, scenario.start)
			})
		})
	}
	if file := os.Getenv(record.FileVariable); file != "" {
		text, err := json.Marshal(all)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, text, 0o600))
	}
}

// Each change has ten seconds. Client-go's delaying queue runs at the begin of each ten seconds,
// with or without a change: this is in no trace.
func changes(t *testing.T, mediaType string, start start) (traces []record.Change) {
	w := newWorld(t, mediaType)
	defer w.stop()
	reconciled := 0
	start(t, w, w.client(), func() { reconciled++ })
	after(time.Second)
	require.Equal(t, 1, reconciled)
	for i := range 15 {
		var c record.Change
		w.pod.Labels = map[string]string{"change": strconv.Itoa(i)}
		record.Start()
		w.send(watch.Modified)
		synctest.Wait() // every goroutine waits, for the next change or for a timer
		c.AtOnce = record.Stop()
		record.Start()
		after(5 * time.Second)
		c.Later = record.Stop()
		record.Start()
		after(3 * time.Second)
		require.Empty(t, record.Stop(), "no timer is left")
		after(2 * time.Second)
		require.Equal(t, 2+i, reconciled)
		traces = append(traces, c)
	}
	return traces
}

// after lets time pass.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func fromSocket(inOrder bool) start {
	return func(t *testing.T, w *world, client rest.Interface, reconciled func()) {
		pods := informer.New[*corev1.Pod](client, "pods", informer.Options{InOrder: inOrder})
		control(t, w, pods, reconciled)
	}
}

func fromListWatch(inOrder bool) start {
	return func(t *testing.T, w *world, client rest.Interface, reconciled func()) {
		lw := cache.NewListWatchFromClient(client, "pods", metav1.NamespaceAll, fields.Everything())
		pods := informer.NewSharedIndexInformer(lw, &corev1.Pod{}, informer.Options{
			InOrder:  inOrder,
			Indexers: store.Indexers{store.NamespaceIndex: store.MetaNamespaceIndexFunc},
		})
		control(t, w, pods, reconciled)
	}
}

// control runs an informer and a controller of this module.
func control(t *testing.T, w *world, pods informer.SharedIndexInformer, reconciled func()) {
	c := controller.New("pods", func(context.Context, string) (controller.Result, error) {
		reconciled()
		return controller.Result{}, nil
	}, controller.Options[string]{})
	_, err := pods.AddEventHandler(c.Handler(store.DeletionHandlingMetaNamespaceKeyFunc))
	require.NoError(t, err)
	w.run(func(ctx context.Context) { pods.Run(ctx) })
	w.run(func(ctx context.Context) { assert.NoError(t, c.Run(ctx)) })
}
