// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	goruntime "runtime"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"example.com/informerstack/internal/tools/answers"
	"example.com/informerstack/internal/tools/measure"
	"example.com/informerstack/reflector/wire"
)

func benchList(t testing.TB, n int) []byte {
	list := v1.PodList{
		TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"},
		ListMeta: metav1.ListMeta{ResourceVersion: "99999"},
	}
	for i := range n {
		list.Items = append(list.Items, *measure.Pod(i))
	}
	body, err := json.Marshal(&list)
	require.NoError(t, err)
	return body
}

// strip is what most programs' transforms do.
func strip(obj any) (any, error) {
	m, err := meta.Accessor(obj)
	if err == nil {
		m.SetManagedFields(nil)
	}
	return obj, err
}

// BenchmarkFirstList is a LIST of 50,000 pods over HTTP, from the request to the objects that go to
// the store. peak-live-B is the most that any garbage collection found reachable meanwhile, beyond
// what was before: there is one at each tenth that the heap grows, in one more LIST, which is not
// timed. steady-live-B is what stays reachable.
func BenchmarkFirstList(b *testing.B) {
	const n = 50_000
	body := benchList(b, n)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body)
	}))
	defer server.Close()
	client := httpClient(b, server.URL)
	b.SetBytes(int64(len(body)))
	run := func(b *testing.B, list func(b *testing.B) []any) {
		b.ReportAllocs()
		for b.Loop() {
			require.Len(b, list(b), n)
		}
		before := measure.Live()
		var items []any
		peak := measure.Peak(func() { items = list(b) }) - before
		steady := measure.Live() - before
		goruntime.KeepAlive(items)
		b.ReportMetric(float64(peak), "peak-live-B")
		b.ReportMetric(float64(steady), "steady-live-B")
		b.ReportMetric(float64(peak)/float64(steady), "peak/steady")
	}
	b.Run("impl=ours", func(b *testing.B) {
		lw := wire.NewListWatch(client, "pods", "", newPod, wire.Options{})
		run(b, func(b *testing.B) []any { return listOurs(b, lw) })
	})
	b.Run("impl=client-go", func(b *testing.B) {
		lw := cache.NewListWatchFromClient(client, "pods", "", fields.Everything())
		run(b, func(b *testing.B) []any { return listClientGo(b, lw) })
	})
}

func listOurs(b testing.TB, lw ListerWatcher) []any {
	r := New(lw, &v1.Pod{}, nil, Options{Transform: strip})
	got, err := r.fetch(context.Background(), "0", 0)
	require.NoError(b, err)
	return got.items
}

// listClientGo does what client-go's reflector and queue do with a LIST.
func listClientGo(b testing.TB, lw *cache.ListWatch) []any {
	list, err := lw.ListWithContext(context.Background(), metav1.ListOptions{ResourceVersion: "0"})
	require.NoError(b, err)
	objs, err := meta.ExtractListWithAlloc(list)
	require.NoError(b, err)
	items := make([]any, 0, len(objs))
	for _, obj := range objs {
		item, err := strip(obj)
		require.NoError(b, err)
		items = append(items, item)
	}
	return items
}

func httpClient(b testing.TB, url string) *rest.RESTClient {
	transport := &http.Transport{}
	b.Cleanup(transport.CloseIdleConnections)
	return answers.Client(b, rewriteHost{url, transport})
}

// rewriteHost sends requests to another server.
type rewriteHost struct {
	url  string
	next http.RoundTripper
}

func (r rewriteHost) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.URL.Host = r.url[len("http://"):]
	return r.next.RoundTrip(req)
}
