// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/informer"
	"example.com/informerstack/observe/health"
	"example.com/informerstack/observe/journal"
	"example.com/informerstack/workqueue"
)

// projection is a key that the program may change, as it alone knows the lock.
type projection struct{ namespace string }

// A key that is a pointer is not read. The answer about the object that it was added for leads to
// it, and the answer about the key has that object: while it waits, and once a worker has had it.
func TestWhy_OfAKeyThatIsAPointer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		q := journal.NewRateLimitingQueue(r.journal, "projections",
			workqueue.NewTypedRateLimitingQueue[*projection](nil, workqueue.Config[*projection]{}))
		t.Cleanup(q.ShutDown)
		health.AddQueue(r.Handler, "projections", q)
		handler := r.newHandler("main.addPod", informer.ResourceEventHandlerFuncs{
			AddFunc: func(any) { q.Add(&projection{"secret"}) }})
		handler.OnAdd(object("a", "1"), false)
		time.Sleep(time.Second)

		key := r.Page().Queues[0].Ready.Items[0]
		require.Regexp(t, `^\*health_test\.projection\(0x[0-9a-f]+\)$`, key)
		assert.Contains(t, r.Why("ns/a").Sentence, key+" is number 1 of 1 in queue projections")
		cause := "1s ago: add of ns/a at resourceVersion 1, informer configmaps, handler " +
			"main.addPod\n"
		answer := r.Why(key).String()
		assert.Contains(t, answer, "  added to queue projections, and not taken since:\n    "+cause)
		item, _ := q.Get()
		q.Done(item)
		answer = r.Why(key).String()
		assert.NotContains(t, answer, "not taken since")
		assert.Contains(t, answer, "because of: "+strings.TrimPrefix(cause, "1s ago: "))
	})
}

// The answer about a key that waits for long has the time until when, and since when if the Add was
// recorded. The longest wait of a queue is on the page, even if its key is not.
func TestWhy_OfALongWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const day = 24 * time.Hour
		r := record(t)
		q := r.newQueue("certificates")
		handler := r.newHandler("main.add", informer.ResourceEventHandlerFuncs{
			AddFunc: func(any) { q.AddAfter("ns/a", 60*day) }})
		handler.OnAdd(object("a", "1"), false)
		q.AddAfter("ns/first", day)
		time.Sleep(5 * time.Minute)
		answer := r.Why("ns/a").String()
		assert.Regexp(t, "^ns/a joins queue certificates in 1439h55m0s, at 2000-03-01T00:00:00Z, "+
			"after AddAfter", answer)
		assert.Contains(t, answer, "  added to queue certificates, and not taken since:\n    5m0s "+
			"ago: add of ns/a at resourceVersion 1, informer configmaps, handler main.add, with "+
			"AddAfter of 1440h0m0s\n")
		assert.Contains(t, get(r, "/debug/informers?limit=1", "").Body.String(), "  waiting: 2\n"+
			"    ns/first due in 23h55m0s\n    and 1 more\n"+
			"    the last is due in 1439h55m0s, at 2000-03-01T00:00:00Z\n")
		assert.Empty(t, r.Page().Findings, "a key that waits for long is no fault")
	})
}
