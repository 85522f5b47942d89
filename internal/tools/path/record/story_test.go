// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"context"
	"encoding/json"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"example.com/informerstack/apitest"
	"example.com/informerstack/controller"
	"example.com/informerstack/informer"
	"example.com/informerstack/internal/tools/path/record"
	"example.com/informerstack/store"
)

// One change of an object goes from the API server to the worker: one informer, one handler, one
// worker, everything synced and idle. It is repeated, because the garbage collector may join in.
func TestStory_OneChangeReachesTheWorker(t *testing.T) {
	const changes = 15
	var traces []record.Trace
	synctest.Test(t, func(t *testing.T) {
		server := apitest.NewServer(apitest.Options{Scheme: scheme.Scheme})
		require.NoError(t, server.StartPipe())
		defer server.Close()
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
		require.NoError(t, server.Create(pod))

		reconciled := 0
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		pods := informer.New[*corev1.Pod](clientOf(t, server), "pods", informer.Options{})
		c := controller.New("pods", func(context.Context, string) (controller.Result, error) {
			reconciled++
			return controller.Result{}, nil
		}, controller.Options[string]{})
		handler := c.Handler(store.DeletionHandlingMetaNamespaceKeyFunc)
		_, err := pods.AddEventHandler(handler)
		require.NoError(t, err)
		running.Go(func() { pods.Run(ctx) })
		running.Go(func() { assert.NoError(t, c.Run(ctx)) })
		synctest.Wait()
		require.Equal(t, 1, reconciled)

		for i := range changes {
			pod.Labels = map[string]string{"change": strconv.Itoa(i)}
			record.Start()
			require.NoError(t, server.Update(pod))
			synctest.Wait() // every goroutine waits for the next change
			traces = append(traces, record.Stop())
			require.Equal(t, 2+i, reconciled)
		}
	})
	if file := os.Getenv(record.FileVariable); file != "" {
		text, err := json.Marshal(traces)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, text, 0o600))
	}
}

func clientOf(t *testing.T, server *apitest.Server) rest.Interface {
	client, err := rest.RESTClientFor(&rest.Config{
		Host: server.URL, Transport: server.Transport(), APIPath: "/api",
		ContentConfig: rest.ContentConfig{
			GroupVersion:         &corev1.SchemeGroupVersion,
			NegotiatedSerializer: scheme.Codecs.WithoutConversion(),
		},
	})
	require.NoError(t, err)
	return client
}
