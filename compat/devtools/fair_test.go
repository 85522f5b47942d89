// SPDX-License-Identifier: Apache-2.0

package devtools

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"example.com/informerstack/compat/adapt"
	compat "example.com/informerstack/compat/workqueue"
	"example.com/informerstack/workqueue"
)

func requestOf(namespace, name string) request {
	return request{types.NamespacedName{Namespace: namespace, Name: name}}
}

// A queue with priorities and groups is on the page with both, in the form of controller-runtime's
// as well: which worker has a key, why another waits, and after which error it is due.
func TestHandler_ShowsAFairQueue(t *testing.T) {
	requireNothingIsShown(t)
	Handler().Page() // records from now on
	type opts struct {
		Priority    int
		RateLimited bool
	}
	queue := adapt.NewPriorityQueue("volumes",
		compat.NewTypedItemExponentialFailureRateLimiter[request](time.Hour, time.Hour),
		workqueue.FairConfig[request]{
			Group:   func(r request) string { return r.Namespace },
			Workers: func(string) int { return 1 },
		}, func(o opts) workqueue.AddOpts {
			return workqueue.AddOpts{Priority: o.Priority, RateLimited: o.RateLimited}
		})
	queue.AddWithOpts(opts{Priority: -100}, requestOf("ns", "listed"))
	queue.Add(requestOf("ns", "changed"))
	queue.Add(requestOf("other", "a"))
	item, _, _ := queue.GetWithPriority()
	require.Equal(t, requestOf("ns", "changed"), item)

	assert.Regexp(t, `^ns/listed is one of 2 in queue volumes, at priority -100; its group ns has `+
		`1 of 1 worker; its workers have 1 other key, the longest for `,
		Handler().Why("ns/listed").Sentence)
	assert.Regexp(t, `^a worker of queue volumes has had ns/changed for .*, and has not called `+
		`Done`, Handler().Why("ns/changed").Sentence)
	text := Handler().Page().String()
	assert.Contains(t, text, "    ns/listed (priority -100) (its group ns has 1 of 1 worker)\n")
	assert.Contains(t, text, "    ns: 1 queued, 1 of 1 worker\n")

	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet,
		"http://localhost/debug/informers?queue=volumes&from=2&limit=1", http.NoBody))
	assert.Contains(t, w.Body.String(), "  ready: 2, from number 2\n"+
		"    ns/listed (priority -100) (its group ns has 1 of 1 worker)\n")

	_, err := adapt.ShowErrors(reconciler{}).Reconcile(context.Background(), item)
	require.Error(t, err)
	queue.AddWithOpts(opts{RateLimited: true, Priority: -100}, item)
	queue.Done(item)
	assert.Regexp(t, `^ns/changed joins queue volumes in .*, after 1 call of AddRateLimited, the `+
		`last error .* ago: no such volume$`, Handler().Why("ns/changed").Sentence)
	assert.Contains(t, Handler().Page().String(), " (priority -100)\n")
	queue.ShutDown()
	queue = nil
	requireNothingIsShown(t)
}
