// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/informerstack/observe/journal"
	"example.com/informerstack/workqueue"
)

// priorities is how many priorities the keys of a tenancy have.
const priorities = 3

// lowPriority is that of keys in a fair queue for which nothing has changed.
const lowPriority = -10

func namespaceOf(key string) string {
	namespace, _, _ := strings.Cut(key, "/")
	return namespace
}

// newFairQueue is a controller's Options.NewQueue. Namespaces take turns, and each has one of the
// two workers at most.
func (p *process) newFairQueue(
	name string, limiter workqueue.TypedRateLimiter[string],
) workqueue.TypedRateLimitingInterface[string] {
	p.cover("fair queue")
	queue := workqueue.NewTypedRateLimitingQueue(limiter, workqueue.Config[string]{
		Queue: workqueue.NewFair(workqueue.FairConfig[string]{
			Group: namespaceOf, Workers: func(string) int { return 1 }, Patience: 2,
		}, workqueue.Config[string]{}),
	})
	if p.devtools == nil {
		return queue
	}
	return journal.NewRateLimitingQueue(p.devtools.journal, name, queue)
}

// tenancy is a Fair that the first of some tenants floods, and what must hold.
//
//	F1  a worker gets a key that was added since its last Get, and no other worker has
//	F2  it gets the key with the highest priority of these adds
//	F3  workers have no more keys of a tenant than its limit
//	F4  between two turns of a tenant that waits, the others of its priority get no more than the
//	    sum of their weights
//	F5  between two keys of a priority that waits, the others get no more than patience keys, and
//	    one for each of them
type tenancy struct {
	w        *world
	q        *workqueue.Fair[string]
	r        *rand.Rand
	weights  map[string]int
	limits   map[string]int
	patience int

	added   map[string]int      // the priority of keys that were added since their last Get
	working map[string]bool     // keys that workers have
	turns   map[tenantLevel]int // keys of others of its priority since its last turn
	levels  map[int]int         // keys of others since its last key
}

// tenantLevel are the queued keys of a tenant with one priority.
type tenantLevel struct {
	tenant   string
	priority int
}

// The step keeps invariant 11 with each of its numbers.
func TestTenants(t *testing.T) {
	for n := range 64 {
		synctest.Test(t, func(t *testing.T) {
			w := &world{ctx: t.Context(), report: report{coverage: map[string]int{}}}
			w.tenants(n)
			require.Empty(t, w.report.violations, n)
		})
	}
}

// tenants lets tenants share a Fair, and then drains it.
func (w *world) tenants(n int) {
	r := rand.New(rand.NewPCG(uint64(n), 6))
	t := &tenancy{w: w, r: r, patience: 1 + r.IntN(3),
		weights: map[string]int{}, limits: map[string]int{}, added: map[string]int{},
		working: map[string]bool{}, turns: map[tenantLevel]int{}, levels: map[int]int{}}
	for i := range 2 + r.IntN(4) {
		tenant := fmt.Sprint("t", i)
		t.weights[tenant], t.limits[tenant] = 1+r.IntN(2), max(0, r.IntN(4)-1)
	}
	t.q = workqueue.NewFair(workqueue.FairConfig[string]{
		Group:    namespaceOf,
		Weight:   func(tenant string) int { return t.weights[tenant] },
		Workers:  func(tenant string) int { return t.limits[tenant] },
		Patience: t.patience,
	}, workqueue.Config[string]{})
	for range 250 {
		switch op := r.IntN(10); {
		case op < 3:
			t.add("t0")
		case op < 5:
			t.add(fmt.Sprint("t", r.IntN(len(t.weights))))
		case op < 8:
			t.get()
		default:
			t.finish()
		}
	}
	t.drain()
}

func (t *tenancy) add(tenant string) {
	key, priority := fmt.Sprintf("%s/%d", tenant, t.r.IntN(20)), -t.r.IntN(priorities)
	t.q.AddWithPriority(key, priority)
	if old, is := t.added[key]; !is || priority > old {
		t.added[key] = priority
	}
	t.note()
}

// note counts from now for what begins to wait.
func (t *tenancy) note() {
	waits, levels := map[tenantLevel]int{}, map[int]int{}
	for key, priority := range t.added {
		if l := (tenantLevel{namespaceOf(key), priority}); !t.working[key] && !t.full(l.tenant) {
			waits[l], levels[priority] = t.turns[l], t.levels[priority]
		}
	}
	t.turns, t.levels = waits, levels
}

func (t *tenancy) full(tenant string) bool {
	return t.limits[tenant] > 0 && t.running(tenant) >= t.limits[tenant]
}

func (t *tenancy) running(tenant string) (n int) {
	for key := range t.working {
		if namespaceOf(key) == tenant {
			n++
		}
	}
	return n
}

// get gets a key, unless a Get would wait.
func (t *tenancy) get() {
	if len(t.turns) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(t.w.ctx, time.Second)
	defer cancel()
	key, shutdown := t.q.GetWithContext(ctx)
	if shutdown {
		t.w.violate(11, "a worker gets no key of a fair queue, and %d tenants wait", len(t.turns))
		return
	}
	l := tenantLevel{namespaceOf(key), t.q.TakenPriority(key)}
	t.check(key, l)
	delete(t.added, key)
	t.working[key] = true
	for other := range t.turns {
		if other.priority == l.priority && other != l {
			t.turns[other]++
		}
	}
	for priority := range t.levels {
		t.levels[priority]++
	}
	t.turns[l], t.levels[l.priority] = 0, 0
	for other, n := range t.turns {
		if most := t.sumOfWeights(other); n > most {
			t.w.violate(11, "F4: %d keys of others since a turn of %v, want %d", n, other, most)
		}
	}
	for priority, n := range t.levels {
		if most := t.patience + priorities - 1; n > most {
			t.w.violate(11, "F5: %d keys of others since one of %d, want %d", n, priority, most)
		}
	}
	t.note()
}

// check checks that a worker may get a key.
func (t *tenancy) check(key string, l tenantLevel) {
	want, added := t.added[key]
	if !added || t.working[key] {
		t.w.violate(11, "F1: a worker gets %s, added: %v, with a worker: %v", key, added,
			t.working[key])
	}
	if want != l.priority {
		t.w.violate(11, "F2: %s has the priority %d, want %d", key, l.priority, want)
	}
	if t.full(l.tenant) {
		t.w.violate(11, "F3: a worker gets %s, and others have %d", key, t.running(l.tenant))
	}
}

func (t *tenancy) sumOfWeights(l tenantLevel) (sum int) {
	for tenant, weight := range t.weights {
		if tenant != l.tenant {
			sum += weight
		}
	}
	return sum
}

// finish ends the work on a key.
func (t *tenancy) finish() {
	keys := slices.Sorted(maps.Keys(t.working))
	if len(keys) == 0 {
		return
	}
	key := keys[t.r.IntN(len(keys))]
	t.q.Done(key)
	delete(t.working, key)
	t.note()
}

// drain checks that workers get all keys of a queue that is shut down. The worker that has keys
// ends its work when the others have got all that no limit keeps back.
func (t *tenancy) drain() {
	var mu sync.Mutex
	ended := 0
	work := func() {
		for {
			key, _, shutdown := t.q.GetWithPriority()
			mu.Lock()
			if shutdown {
				ended++
				mu.Unlock()
				return
			}
			delete(t.added, key)
			mu.Unlock()
			time.Sleep(time.Millisecond)
			t.q.Done(key)
		}
	}
	var workers sync.WaitGroup
	for range 3 {
		workers.Go(work)
	}
	drained := drain(t.q)
	time.Sleep(time.Second)
	if n := t.q.Len(); n > 0 && ended > 0 {
		t.w.violate(11, "%d workers end, and a limit keeps %d keys back", ended, n)
	}
	for key := range t.working {
		t.q.Done(key)
	}
	work()
	select {
	case <-drained:
	case <-time.After(time.Minute):
		t.w.violate(11, "a fair queue does not drain")
		t.q.ShutDown()
	}
	workers.Wait()
	if len(t.added) > 0 {
		t.w.violate(11, "a fair queue that drains loses %d keys", len(t.added))
	}
}
