// SPDX-License-Identifier: Apache-2.0

package apitest_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/apitest"
)

func benchPod(i int) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: fmt.Sprintf("pod-%06d", i),
			Labels: map[string]string{"app": "bench", "shard": fmt.Sprint(i % 10)},
		},
		Spec: corev1.PodSpec{
			NodeName: fmt.Sprintf("node-%03d", i%100),
			Containers: []corev1.Container{{Name: "c", Image: "registry.example/app:v1"},
				{Name: "d", Image: "registry.example/side:v1"}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1"},
	}
}

func benchServer(b *testing.B, pods int) *apitest.Server {
	s := start(b, apitest.Options{})
	for i := range pods {
		require.NoError(b, s.Create(benchPod(i)))
	}
	return s
}

// Store an object without a request.
func BenchmarkCreate(b *testing.B) {
	s := apitest.NewServer(apitest.Options{})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		require.NoError(b, s.Create(benchPod(i)))
	}
}

// List 50,000 pods over loopback.
func BenchmarkList(b *testing.B) {
	s := benchServer(b, 50_000)
	client := s.Client()
	b.ReportAllocs()
	for b.Loop() {
		resp, err := client.Get(s.URL + "/api/v1/pods")
		require.NoError(b, err)
		n, err := io.Copy(io.Discard, resp.Body)
		require.NoError(b, err)
		require.NoError(b, resp.Body.Close())
		b.SetBytes(n)
	}
}

// Deliver one write to each of many watches over loopback.
func BenchmarkWatchFanOut(b *testing.B) {
	for _, watches := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("watches=%d", watches), func(b *testing.B) {
			s := benchServer(b, 1)
			events := make(chan struct{}, watches)
			for range watches {
				resp, err := s.Client().Get(s.URL + "/api/v1/pods?watch=true&resourceVersion=" +
					s.ResourceVersion())
				require.NoError(b, err)
				b.Cleanup(func() { _ = resp.Body.Close() })
				go countLines(resp, events)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				pod := benchPod(0)
				pod.Labels["i"] = fmt.Sprint(i)
				require.NoError(b, s.Update(pod))
				for range watches {
					<-events
				}
			}
		})
	}
}

func countLines(resp *http.Response, events chan<- struct{}) {
	lines := bufio.NewReaderSize(resp.Body, 64<<10)
	for {
		if _, err := lines.ReadSlice('\n'); err != nil {
			return
		}
		events <- struct{}{}
	}
}
