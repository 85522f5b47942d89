// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"
)

// A StreamingListWatch sends what client-go's ListWatch sends, except that it asks for a LIST in
// JSON.
func TestStreamingListWatch_RequestsAreClientGos(t *testing.T) {
	list := podList("5", "", "a@1")
	list.Kind, list.APIVersion = "PodList", "v1"
	body, err := json.Marshal(list)
	require.NoError(t, err)
	w := &wire{answer: answerWith(http.StatusOK, body)}
	client := restClient(t, w)
	selector := fields.OneTermEqualSelector("spec.nodeName", "n")
	selectFields := func(options *metav1.ListOptions) { options.FieldSelector = selector.String() }
	options := metav1.ListOptions{ResourceVersion: "0", Limit: 500}

	send := func(lw ListerWatcher) {
		got, err := lw.ListWithContext(context.Background(), options)
		require.NoError(t, err)
		require.Len(t, got.(*v1.PodList).Items, 1)
		watching, err := lw.WatchWithContext(context.Background(), options)
		require.NoError(t, err)
		watching.Stop()
	}
	for _, namespace := range []string{"", "ns"} {
		w.requests = nil
		send(NewStreamingListWatch(client, "pods", namespace, newPod, selectFields))
		send(cache.NewListWatchFromClient(client, "pods", namespace, selector))
		require.Len(t, w.requests, 4)
		for i := range 2 {
			require.Equal(t, w.requests[i+2].URL.String(), w.requests[i].URL.String())
			want := w.requests[i+2].Header
			if i == 0 {
				want.Set("Accept", "application/json")
			}
			require.Equal(t, want, w.requests[i].Header)
		}
	}
	send(NewStreamingListWatch(client, "pods", "", newPod, nil))
}
