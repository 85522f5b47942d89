// SPDX-License-Identifier: Apache-2.0

package firstsync

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// All subjects end with the same pods in their stores.
func TestSubjects_StoreTheSamePods(t *testing.T) {
	const n = 120
	var asked atomic.Value // the query of the newest request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if initial := r.URL.Query().Get("sendInitialEvents"); initial != "" {
			asked.Store("watchlist")
		} else if r.URL.Query().Get("watch") == "" {
			asked.Store("list")
		}
		podServer(n).ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	want := map[string]*corev1.Pod{}
	for i := range n {
		pod := &corev1.Pod{}
		require.NoError(t, pod.Unmarshal(numbered(marshalProtobuf(podTemplate(false)), i)))
		want[pod.Name] = pod
	}
	for _, way := range []string{"list", "streamed", "watchlist"} {
		for _, content := range []string{"json", "protobuf"} {
			for _, impl := range []string{"ours", "compat", "client-go"} {
				t.Run(fmt.Sprint(way, content, impl), func(t *testing.T) {
					subject, err := newSubject(config{server.URL, way, content, impl})
					require.NoError(t, err)
					added := 0
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					require.NoError(t, subject.start(ctx, func() { added++ }))
					assert.Equal(t, n, added)
					assert.Equal(t, way == "watchlist", asked.Load() == "watchlist")
					got := map[string]*corev1.Pod{}
					for _, obj := range subject.list() {
						pod := obj.(*corev1.Pod).DeepCopy()
						pod.Kind, pod.APIVersion = "", ""
						got[pod.Name] = pod
					}
					assert.Equal(t, want, got)
				})
			}
		}
	}
	text := len(marshal(podTemplate(false)))
	fmt.Fprintln(os.Stderr, text, len(marshalProtobuf(podTemplate(false))))
}
