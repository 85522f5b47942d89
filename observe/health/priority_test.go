// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"example.com/informerstack/informer"
	"example.com/informerstack/observe/health"
	"example.com/informerstack/observe/journal"
	"example.com/informerstack/workqueue"
)

// request has the shape of controller-runtime's.
type request struct{ types.NamespacedName }

func requestOf(name string) request {
	return request{types.NamespacedName{Namespace: "ns", Name: name}}
}

type addOpts struct {
	After       time.Duration
	RateLimited bool
	Priority    int
}

// scriptedQueue is a queue with priorities for one goroutine. An item is in it at most once, and
// not handed out while it is processing.
type scriptedQueue struct {
	journal.Prioritized[request, addOpts] // other methods are not called
	limiter                               workqueue.TypedRateLimiter[request]
	items                                 []queuedItem
	processing                            map[request]bool
}

type queuedItem struct {
	request
	priority int
	due      time.Time
}

func (q *scriptedQueue) ShuttingDown() bool { return false }

func (q *scriptedQueue) Add(item request) { q.AddWithOpts(addOpts{}, item) }
func (q *scriptedQueue) AddAfter(item request, after time.Duration) {
	q.AddWithOpts(addOpts{After: after}, item)
}
func (q *scriptedQueue) AddRateLimited(item request) {
	q.AddWithOpts(addOpts{RateLimited: true}, item)
}

func (q *scriptedQueue) AddWithOpts(o addOpts, items ...request) {
	for _, item := range items {
		added := queuedItem{item, o.Priority, time.Now().Add(o.After)}
		if o.RateLimited {
			added.due = time.Now().Add(q.limiter.When(item))
		}
		if at := slices.IndexFunc(q.items, func(i queuedItem) bool {
			return i.request == item
		}); at >= 0 {
			old := q.items[at]
			added.priority = max(added.priority, old.priority)
			if old.due.Before(added.due) {
				added.due = old.due
			}
			q.items = slices.Delete(q.items, at, at+1)
		}
		q.items = append(q.items, added)
	}
	slices.SortStableFunc(q.items, func(a, b queuedItem) int {
		return cmp.Compare(b.priority, a.priority)
	})
}

func (q *scriptedQueue) ready(i queuedItem) bool { return !i.due.After(time.Now()) }

func (q *scriptedQueue) GetWithPriority() (item request, priority int, shutdown bool) {
	at := slices.IndexFunc(q.items, func(i queuedItem) bool {
		return q.ready(i) && !q.processing[i.request]
	})
	if at < 0 {
		return request{}, 0, true
	}
	next := q.items[at]
	q.items = slices.Delete(q.items, at, at+1)
	q.processing[next.request] = true
	return next.request, next.priority, false
}

func (q *scriptedQueue) Done(item request)            { delete(q.processing, item) }
func (q *scriptedQueue) Forget(item request)          { q.limiter.Forget(item) }
func (q *scriptedQueue) NumRequeues(item request) int { return q.limiter.NumRequeues(item) }

func (q *scriptedQueue) look(
	processing []request, ready func(request, int) bool,
	waiting func(request, int, time.Time) bool,
) (again []request, readyTotal, waitingTotal int) {
	moreReady, moreWaiting := true, true
	for _, i := range q.items {
		switch {
		case q.ready(i):
			readyTotal++
			moreReady = moreReady && ready(i.request, i.priority)
			if slices.Contains(processing, i.request) {
				again = append(again, i.request)
			}
		default:
			waitingTotal++
			moreWaiting = moreWaiting && waiting(i.request, i.priority, i.due)
		}
	}
	return again, readyTotal, waitingTotal
}

// prioritized is a page with a queue with priorities.
type prioritized struct {
	*recording
	queue *journal.PriorityQueue[request, addOpts]
}

func withPriorities(t *testing.T, body func(p *prioritized)) {
	synctest.Test(t, func(t *testing.T) {
		p := &prioritized{recording: record(t)}
		inner := &scriptedQueue{processing: map[request]bool{},
			limiter: workqueue.NewTypedItemExponentialFailureRateLimiter[request](
				time.Minute, time.Hour)}
		p.queue = journal.NewPriorityQueue(p.journal, "configmap", inner,
			journal.Inside[request, addOpts]{
				Options: func(o addOpts) (time.Duration, bool) { return o.After, o.RateLimited },
				Look:    inner.look,
			})
		health.AddQueue(p.Handler, "configmap", p.queue)
		body(p)
	})
}

// takes takes the next item, which must have the name.
func (p *prioritized) takes(name string, priority int) (done func()) {
	item, got, shutdown := p.queue.GetWithPriority()
	require.Equal(p.t, requestOf(name), item)
	require.Equal(p.t, priority, got)
	require.False(p.t, shutdown)
	return func() { p.queue.Done(item) }
}

// normal returns a part in which empty lists are nil.
func normal(part workqueue.Part[request]) workqueue.Part[request] {
	for _, list := range []*[]request{&part.Ready, &part.Processing, &part.Again} {
		if len(*list) == 0 {
			*list = nil
		}
	}
	if len(part.Waiting) == 0 {
		part.Waiting = nil
	}
	return part
}

// answers requires the first lines of the answer about ns/name.
func (p *prioritized) answers(name string, lines ...string) {
	p.t.Helper()
	got := strings.Split(p.Why("ns/"+name).String(), "\n")
	assert.Equal(p.t, lines, got[:min(len(lines), len(got))])
}

// The keys of a queue with priorities are found as namespace/name in each place: in its order, with
// their priorities, and not counted twice while a worker has them.
func TestWhy_OfAQueueWithPriorities(t *testing.T) {
	withPriorities(t, func(p *prioritized) {
		p.queue.AddWithOpts(addOpts{Priority: -100}, requestOf("a"), requestOf("b"))
		p.queue.Add(requestOf("c"))
		p.answers("b", "ns/b is number 3 of 3 in queue configmap, at priority -100; no worker "+
			"has a key now: are the workers running?")
		found := p.queue.Find(func(item request) bool { return item == requestOf("b") })
		assert.Equal(t, workqueue.Part[request]{Snapshot: workqueue.Snapshot[request]{
			Ready: []request{requestOf("b")}, Priorities: map[request]int{requestOf("b"): -100},
		}, Total: workqueue.Totals{Ready: 3}, Numbers: []int{3}}, normal(found))
		first := p.queue.SnapshotOf(0, 2)
		assert.Equal(t, []request{requestOf("c"), requestOf("a")}, first.Ready)
		assert.Equal(t, 3, first.Total.Ready)
		second := p.queue.SnapshotOf(2, 2)
		assert.Equal(t, []request{requestOf("b")}, second.Ready)
		assert.Equal(t, []int{3}, second.Numbers)
		assert.Equal(t, map[request]int{requestOf("b"): -100}, second.Priorities)
		done := p.takes("c", 0)
		p.answers("a", "ns/a is number 1 of 2 in queue configmap, at priority -100; its workers "+
			"have 1 other key, the longest for 0s")
		p.queue.Add(requestOf("c"))
		time.Sleep(time.Minute)
		p.answers("c", "a worker of queue configmap has had ns/c for 1m0s, and has not called "+
			"Done; it was added again since, and follows when that worker calls Done")
		p.queue.AddAfter(requestOf("later"), time.Hour)
		p.queue.AddWithOpts(addOpts{After: time.Hour, Priority: 7}, requestOf("first"))
		page := p.queue.SnapshotOf(0, 1)
		assert.Equal(t, requestOf("first"), page.Waiting[0].Item)
		assert.Zero(t, page.LastDue, "of the items that were passed over it is not known")
		page = p.queue.SnapshotOf(1, 1)
		assert.Equal(t, []request{requestOf("b")}, page.Ready)
		assert.Empty(t, page.Processing)
		assert.Empty(t, page.Again)
		assert.Equal(t, requestOf("later"), page.Waiting[0].Item)
		assert.True(t, page.LastDue.Equal(time.Now().Add(time.Hour)))
		assert.Contains(t, p.Page().String(), `
queue configmap
  ready: 2
    ns/a (priority -100)
    ns/b (priority -100)
  processing: 1
    ns/c
  again: 1
    ns/c
  waiting: 2
    ns/first due in 1h0m0s (priority 7)
    ns/later due in 1h0m0s
`[1:])
		done()
		p.answers("c", "ns/c is number 1 of 3 in queue configmap; no worker has a key now: are "+
			"the workers running?")
		p.answers("later", "ns/later joins queue configmap in 1h0m0s, at "+
			time.Now().Add(time.Hour).Format(time.RFC3339)+
			", after AddAfter of 1h0m0s")
	})
}

// The error that reconcile returns is that of its key, whatever its goroutine reports otherwise.
func TestWhy_KnowsWhatReconcileReturned(t *testing.T) {
	withPriorities(t, func(p *prioritized) {
		handler := p.newHandler("main.add", informer.ResourceEventHandlerFuncs{
			AddFunc: func(any) { p.queue.AddWithOpts(addOpts{Priority: -100}, requestOf("a")) }})
		handler.OnAdd(object("a", "1"), false)
		done := p.takes("a", -100)
		p.journal.Failed(errors.New("not about the key"))
		p.journal.Returned(errors.New("no such volume"))
		p.journal.Returned(nil)
		p.queue.AddWithOpts(addOpts{RateLimited: true, Priority: -100}, requestOf("a"))
		done()
		time.Sleep(time.Second)
		p.answers("a", "ns/a joins queue configmap in 59s, at "+
			time.Now().Add(59*time.Second).Format(time.RFC3339)+
			", after 1 call of AddRateLimited, the last error 1s ago: no such volume")
		time.Sleep(time.Minute)

		done = p.takes("a", -100)
		p.journal.Returned(errors.New("no such zone")) // a terminal one
		done()
		p.answers("a", "queue configmap reconciled ns/a 3ms ago, and whether it has changed "+
			"since is not known: it ended without Forget and without a retry in 0s, because of: "+
			"retry after: no such volume; it returned the error: no such zone")
		p.queue.AddRateLimited(requestOf("b"))
		time.Sleep(time.Minute)
		done = p.takes("b", 0)
		p.queue.Forget(requestOf("b"))
		done()
		p.journal.Returned(errors.New("of no key"))
		_, reconciles := p.journal.About("ns/b")
		require.Len(t, reconciles, 1)
		assert.Equal(t, journal.Forgotten, reconciles[0].Last[0].Result)
		assert.Empty(t, reconciles[0].Last[0].Error)
	})
}
