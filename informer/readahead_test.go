// SPDX-License-Identifier: Apache-2.0

package informer_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"example.com/informerstack/apitest"
	"example.com/informerstack/informer"
	"example.com/informerstack/internal/tools/testserver"
	"example.com/informerstack/reflector"
	"example.com/informerstack/reflector/wire"
)

// impatient ends an answer that is not read for a time, as an API server does, and loses what it
// has not sent.
type impatient struct {
	http.RoundTripper
	patience time.Duration
	ended    atomic.Int64
}

func (i *impatient) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := i.RoundTripper.RoundTrip(r)
	if err == nil {
		response.Body = &impatientBody{response.Body, i, time.Now()}
	}
	return response, err
}

type impatientBody struct {
	io.ReadCloser
	of   *impatient
	last time.Time
}

func (b *impatientBody) Read(p []byte) (int, error) {
	if time.Since(b.last) > b.of.patience {
		b.of.ended.Add(1)
		return 0, io.EOF
	}
	n, err := b.ReadCloser.Read(p)
	b.last = time.Now()
	return n, err
}

// A transform that is far too slow for its watches loses nothing: the server ends them, and the
// informer resumes, or lists, which is read ahead whole.
func TestNew_SlowTransformLosesNothing(t *testing.T) {
	for _, streaming := range []bool{false, true} {
		t.Run(fmt.Sprint("streaming=", streaming), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testSlowTransform(t, streaming) })
		})
	}
}

func largeMap(i, version int) *corev1.ConfigMap {
	m := configMap("ns", fmt.Sprint("a", i), nil)
	m.Data = map[string]string{"large": strings.Repeat("x", 20_000), "v": fmt.Sprint(version)}
	return m
}

func testSlowTransform(t *testing.T, streaming bool) {
	const count = 24
	server := testserver.New(t, apitest.Options{CompactInterval: time.Hour})
	for i := range count {
		require.NoError(t, server.Create(largeMap(i, 0)))
	}
	transport := &impatient{RoundTripper: server.Transport(), patience: time.Second}
	config := server.Config()
	config.Transport = transport
	client := kubernetes.NewForConfigOrDie(config).CoreV1().RESTClient()
	var slowly atomic.Int64
	slowly.Store(int64(3 * time.Second))
	i := informer.New[*corev1.ConfigMap](client, "configmaps", informer.Options{
		ReadAhead: wire.NewBudget(0),
		Reflector: reflector.Options{
			UseWatchList: &streaming,
			Transform: func(obj any) (any, error) {
				time.Sleep(time.Duration(slowly.Load()))
				delete(obj.(*corev1.ConfigMap).Data, "large")
				return obj, nil
			},
		},
	})
	go i.Run(t.Context())
	for version := range 24 { // while it lists, and while it watches
		time.Sleep(12 * time.Second)
		for n := range count / 4 {
			require.NoError(t, server.Update(largeMap(n, version+1)))
		}
	}
	slowly.Store(int64(time.Millisecond))
	time.Sleep(time.Minute)
	synctest.Wait()
	require.True(t, i.HasSynced())
	require.Greater(t, transport.ended.Load(), int64(3))
	require.NoError(t, i.Err())
	objects, err := i.Lister().List(nil)
	require.NoError(t, err)
	require.Len(t, objects, count)
	want, err := server.List("configmaps", "ns")
	require.NoError(t, err)
	for _, obj := range want {
		got, ok, err := i.GetStore().GetByKey("ns/" + obj.GetName())
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, obj.GetResourceVersion(), got.(*corev1.ConfigMap).ResourceVersion)
	}
	lists := len(server.Requests(apitest.Match{Verb: "list", Resource: "configmaps"}))
	t.Log(lists, "lists,", transport.ended.Load(), "watches ended by the server")
	require.Less(t, lists, 5)
}
