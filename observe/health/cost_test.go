// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/informerstack/observe/journal"
	"example.com/informerstack/workqueue"
)

// A question about a queue with many keys needs memory for what it shows and for the answer, not
// for the keys: a page, an answer about the last key, and one about a key that no queue has.
func TestCost_OfManyKeys(t *testing.T) {
	const keys = 200_000 // a copy has 3 MiB, and their texts 8 MiB
	h := New()
	j := journal.New()
	h.SetJournal(j)
	queue := journal.NewRateLimitingQueue(j, "large", workqueue.NewTypedRateLimitingQueue[string](
		nil, workqueue.Config[string]{}))
	defer queue.ShutDown()
	AddQueue(h, "large", queue)
	for i := range keys {
		queue.Add(fmt.Sprintf("namespace/name-%07d", i))
	}
	ask := func(query string) (text string, allocated uint64) {
		r := httptest.NewRequest(http.MethodGet, "http://localhost/debug/informers?"+query, http.NoBody)
		w := httptest.NewRecorder()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		h.ServeHTTP(w, r)
		runtime.ReadMemStats(&after)
		require.Equal(t, http.StatusOK, w.Code)
		return w.Body.String(), after.TotalAlloc - before.TotalAlloc
	}
	const mebibyte = 1 << 20
	text, bytes := ask("limit=20")
	require.Contains(t, text, "ready: 200000")
	require.Less(t, bytes, uint64(mebibyte))
	text, bytes = ask("why=namespace/name-0199999")
	require.Contains(t, text, "namespace/name-0199999 is number 200000 of 200000 in queue large")
	require.Less(t, bytes, uint64(mebibyte))
	text, bytes = ask("why=namespace/none")
	require.Contains(t, text, "nothing is known of namespace/none")
	require.Less(t, bytes, uint64(mebibyte))
	_, bytes = ask("limit=1000000000")
	require.Less(t, bytes, uint64(10*mebibyte), "no reader gets all keys")
}

// The time of a question about a key that is the last one of a million.
func BenchmarkWhyOfAMillionKeys(b *testing.B) {
	h := New()
	queue := workqueue.NewTyped(workqueue.Config[string]{})
	defer queue.ShutDown()
	AddQueue(h, "large", queue)
	for i := range 1_000_000 {
		queue.Add(fmt.Sprintf("namespace/name-%07d", i))
	}
	for b.Loop() {
		h.Why("namespace/name-0999999")
	}
}
