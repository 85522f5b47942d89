// SPDX-License-Identifier: Apache-2.0

package informer_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/informerstack/apitest"
	"example.com/informerstack/informer"
	"example.com/informerstack/reflector/outage"
)

// The informers of one client are current soon after an outage of their server, unless each has a
// Group of its own.
func TestNew_InformersOfAClientAreBackTogether(t *testing.T) {
	alone := slowestAfterOutage(t, func() *outage.Group { return &outage.Group{} })
	together := slowestAfterOutage(t, func() *outage.Group { return nil })
	t.Logf("the slowest of 20 informers: alone %v, together %v", alone, together)
	assert.Greater(t, alone, 10*time.Second, "otherwise the test shows nothing")
	assert.Less(t, together, 10*time.Second)
}

// slowestAfterOutage takes a server away for two minutes, and returns how long the slowest informer
// then needs to be current.
func slowestAfterOutage(t *testing.T, group func() *outage.Group) (slowest time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		server := apitest.NewServer(apitest.Options{})
		require.NoError(t, server.StartPipe())
		defer server.Close()
		client := kubernetes.NewForConfigOrDie(&rest.Config{
			Host: server.URL, Transport: server.Transport(), QPS: -1,
			ContentConfig: rest.ContentConfig{ContentType: "application/json"},
		})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		informers := make([]informer.SharedIndexInformer, 20)
		for i := range informers {
			var options informer.Options
			options.Reflector.Outage = group()
			informers[i] = informer.New[*corev1.ConfigMap](client.CoreV1().RESTClient(),
				"configmaps", options)
			running.Go(func() { informers[i].Run(ctx) })
			require.NoError(t, informer.WaitForSync(ctx, informers[i]))
		}
		time.Sleep(5 * time.Minute) // the waits start again

		allow := server.Faults().RefuseConnections()
		time.Sleep(2 * time.Minute)
		require.NoError(t, server.Create(configMap("ns", "new", nil)))
		require.NoError(t, allow())
		answered := time.Now()
		for _, i := range informers {
			for !holds(t, i, "ns/new") {
				time.Sleep(10 * time.Millisecond)
			}
		}
		slowest = time.Since(answered)
	})
	return slowest
}

func holds(t *testing.T, i informer.SharedIndexInformer, key string) bool {
	_, exists, err := i.GetStore().GetByKey(key)
	require.NoError(t, err)
	return exists
}
