// SPDX-License-Identifier: Apache-2.0

package informer_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/informerstack/apitest"
	"example.com/informerstack/informer"
)

// The lower half of the hashes of uids.
const lowerHalf = "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')"

// Every request is of the shard: pages, watches and streaming lists. So the store has the objects
// of the shard, however they came.
func TestNew_ModifyEveryRequest(t *testing.T) {
	for _, streams := range []bool{false, true} {
		t.Run(fmt.Sprint("streams=", streams), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testModify(t, streams) })
		})
	}
}

func testModify(t *testing.T, streams bool) {
	server := apitest.NewServer(apitest.Options{})
	require.NoError(t, server.StartPipe())
	defer server.Close()
	for i := range 20 {
		require.NoError(t, server.Create(configMap("ns", fmt.Sprint("m-", i), nil)))
	}
	options := informer.Options{Modify: func(o *metav1.ListOptions) {
		assert.Equal(t, "metadata.name!=x", o.FieldSelector)
		o.ShardSelector = lowerHalf
	}, FieldSelector: "metadata.name!=x"}
	options.Reflector.UseWatchList, options.Reflector.WatchListPageSize = &streams, 3
	client := kubernetes.NewForConfigOrDie(&rest.Config{
		Host: server.URL, QPS: -1, Transport: server.Transport(),
	}).CoreV1().RESTClient()
	maps := informer.New[*corev1.ConfigMap](client, "configmaps", options)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { maps.Run(ctx) })
	require.NoError(t, informer.WaitForSync(ctx, maps))
	for i := range 20 {
		require.NoError(t, server.Create(configMap("ns", fmt.Sprint("n-", i), nil)))
		require.NoError(t, server.Delete(configMap("ns", fmt.Sprint("m-", i), nil)))
		time.Sleep(time.Second)
	}
	server.Faults().Break(apitest.Match{}, apitest.ErrorStream) // it lists again
	time.Sleep(time.Minute)
	cancel()
	running.Wait()

	listed, err := client.Get().Resource("configmaps").Param("shardSelector", lowerHalf).
		Do(t.Context()).Get()
	require.NoError(t, err)
	var want []string
	for _, m := range listed.(*corev1.ConfigMapList).Items {
		want = append(want, m.Namespace+"/"+m.Name)
	}
	require.NotEmpty(t, want)
	require.Less(t, len(want), 20)
	require.ElementsMatch(t, want, maps.GetStore().ListKeys())
	seen := map[string]int{}
	for _, r := range server.Requests(apitest.Match{Resource: "configmaps"}) {
		require.Equal(t, lowerHalf, r.Query.Get("shardSelector"), r.Query)
		seen[r.Verb+" "+r.Query.Get("limit")]++
	}
	require.Positive(t, seen["watch "], seen)
	if streams {
		require.Zero(t, seen["list 3"], seen)
	} else {
		require.Greater(t, seen["list 3"], 1, seen)
	}
}
