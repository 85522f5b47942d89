// SPDX-License-Identifier: Apache-2.0

package firstsync

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// Every subject asks for the pods in its way, and ends with all of them in its store.
func TestSubjects_StoreTheSamePods(t *testing.T) {
	const n = 120
	var streams atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("sendInitialEvents") != "" {
			streams.Add(1)
		}
		podServer(n).ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	want := map[string]*corev1.Pod{}
	numbers := newNumbering(marshalProtobuf(podTemplate(false)))
	for i := range n {
		pod := &corev1.Pod{}
		require.NoError(t, pod.Unmarshal(numbers.of(i)))
		want[pod.Name] = pod
	}
	for _, c := range configs(server.URL) {
		t.Run(c.name(), func(t *testing.T) {
			subject, err := newSubject(c, nil)
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			added := 0
			streams.Store(0)
			require.NoError(t, subject.start(ctx, func() { added++ }))
			assert.Equal(t, n, added)
			assert.Equal(t, c.Way == "watchlist", streams.Load() == 1)
			got := map[string]*corev1.Pod{}
			for _, obj := range subject.list() {
				pod := obj.(*corev1.Pod).DeepCopy()
				pod.Kind, pod.APIVersion = "", "" // a watch event has both, an item of a list not
				got[pod.Name] = pod
			}
			assert.Equal(t, want, got)
		})
	}
}
