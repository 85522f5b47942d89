// SPDX-License-Identifier: Apache-2.0

package health

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/informerstack/controller"
	"example.com/informerstack/observe/journal"
	"example.com/informerstack/workqueue"
)

func question(t testing.TB, h *Handler, query string) (text string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "http://localhost/debug/informers?"+query, http.NoBody)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	require.Equal(t, http.StatusOK, w.Code)
	return w.Body.String()
}

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
	requireCheap(t, h, "queue large")
}

// The same of the keys of a controller.
func TestCost_OfManyKeysOfAController(t *testing.T) {
	h := New()
	c := controller.New("large", func(context.Context, string) (controller.Result, error) {
		return controller.Result{}, nil
	}, controller.Options[string]{})
	AddController(h, c)
	for i := range 200_000 {
		c.Enqueue(fmt.Sprintf("namespace/name-%07d", i))
	}
	requireCheap(t, h, "controller large")
}

// requireCheap checks the memory of questions about 200,000 keys that are ready.
func requireCheap(t *testing.T, h *Handler, name string) {
	ask := func(query string) (text string, allocated uint64) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		text = question(t, h, query)
		runtime.ReadMemStats(&after)
		return text, after.TotalAlloc - before.TotalAlloc
	}
	const mebibyte = 1 << 20
	text, bytes := ask("limit=20")
	require.Contains(t, text, "ready: 200000")
	require.Less(t, bytes, uint64(mebibyte))
	_, in, _ := strings.Cut(name, " ")
	text, bytes = ask("queue=" + in + "&from=100001")
	require.Contains(t, text, "ready: 200000, from number 100001\n    namespace/name-0100000\n")
	require.Contains(t, text, "    namespace/name-0100099\n    and 99900 more\n")
	require.Less(t, bytes, uint64(mebibyte))
	text, bytes = ask("why=namespace/name-0199999")
	require.Contains(t, text, "namespace/name-0199999 is number 200000 of 200000 in "+name)
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

// A question about a key that a worker has does not stop a program with very many goroutines: the
// answer says why the stack is missing, and a request that asks for it gets it.
func TestCost_OfManyGoroutines(t *testing.T) {
	h, j := New(), journal.New()
	h.SetJournal(j)
	queue := journal.NewRateLimitingQueue(j, "settings",
		workqueue.NewTypedRateLimitingQueue[string](nil, workqueue.Config[string]{}))
	defer queue.ShutDown()
	AddQueue(h, "settings", queue)
	queue.Add("a")
	_, _ = queue.Get()
	stop := make(chan struct{})
	defer close(stop)
	for n, _ := journal.TooMany(); n == 0; n, _ = journal.TooMany() {
		go func() { <-stop }()
	}
	text := question(t, h, "why=a")
	require.Contains(t, text, "a worker of queue settings has had a for")
	require.Contains(t, text, "the stack of its goroutine was not read: the program has 2001 "+
		"goroutines, and would stop for about 60ms. To read it all the same, ask with stacks=1")
	require.NotContains(t, text, "its goroutine: ")
	text = question(t, h, "why=a&stacks=1")
	require.Contains(t, text, "its goroutine: running")
	require.NotContains(t, text, "was not read")
}
