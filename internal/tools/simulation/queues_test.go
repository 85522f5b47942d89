// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing/synctest"
	"time"

	"example.com/informerstack/workqueue"
)

// drain calls ShutDownWithDrain. The channel is closed when that has returned.
func drain(q interface{ ShutDownWithDrain() }) <-chan struct{} {
	drained := make(chan struct{})
	go func() { defer close(drained); q.ShutDownWithDrain() }()
	return drained
}

// drainQueue checks that a queue which drains hands out everything that was added.
func (w *world) drainQueue(n int) {
	if w.impl == ours {
		w.endDrain()
	}
	q := newQueue(w.impl)
	var mu sync.Mutex
	worked := map[int]int{}
	var workers sync.WaitGroup
	for range 1 + n%3 {
		workers.Go(func() {
			for {
				i, shutdown := q.Get()
				if shutdown {
					return
				}
				time.Sleep(time.Duration(n) * time.Millisecond)
				mu.Lock()
				worked[i]++
				mu.Unlock()
				q.Done(i)
			}
		})
	}
	for i := range n {
		q.Add(i % 40)
	}
	drained := drain(q)
	select {
	case <-drained:
	case <-time.After(time.Minute):
		w.violate(5, "a queue does not drain")
		q.ShutDown()
	}
	mu.Lock()
	got := len(worked)
	mu.Unlock()
	workers.Wait()
	if want := min(n, 40); got != want {
		w.violate(5, "a queue that drains hands out %d keys, want %d", got, want)
	}
}

// takeFromQueue adds items just as callers of GetWithContext leave, and checks that a caller that
// stays gets what the others do not.
func (w *world) takeFromQueue(n int) {
	q := newQueue(w.impl).(workqueue.ContextInterface[int])
	var mu sync.Mutex
	taken, left := 0, 0
	var takers sync.WaitGroup
	take := func(ctx context.Context) {
		for {
			i, shutdown := q.GetWithContext(ctx)
			mu.Lock()
			if shutdown {
				left++
				mu.Unlock()
				return
			}
			taken++
			mu.Unlock()
			q.Done(i)
		}
	}
	takers.Go(func() { take(w.ctx) })
	var leave []context.CancelFunc
	for range 8 {
		ctx, cancel := context.WithCancel(w.ctx)
		takers.Go(func() { take(ctx) })
		leave = append(leave, cancel)
		if n%2 == 0 {
			synctest.Wait() // they wait in this order
		}
	}
	for i, cancel := range leave {
		synctest.Wait()
		if (n+i)%4 < 2 {
			q.Add(i)
			cancel()
		} else {
			cancel()
			q.Add(i)
		}
	}
	synctest.Wait()
	if taken != len(leave) || left != len(leave) {
		w.violate(5, "%d of %d items were taken, and %d of as many takers have left", taken,
			len(leave), left)
	}
	q.ShutDown()
	takers.Wait()
}

// endDrain checks that ShutDown ends a ShutDownWithDrain that waits for a worker.
func (w *world) endDrain() {
	q := newQueue(w.impl)
	q.Add(1)
	_, _ = q.Get()
	drained := drain(q)
	synctest.Wait()
	if isClosed(drained) {
		w.violate(5, "a queue has drained, and a worker has an item")
	}
	q.ShutDown()
	synctest.Wait()
	if !isClosed(drained) {
		w.violate(5, "ShutDown does not end a drain")
		q.Done(1)
	}
	<-drained
}

// A limiter remembers a failure for at least this time.
const remembered = 12 * time.Hour

// passHours lets many hours pass. Items of a limiter fail now and then.
func (w *world) passHours(n int) {
	r := rand.New(rand.NewPCG(uint64(n), 5))
	limiter := newDelays(w.impl)
	counts, last := map[string]int{}, map[string]time.Time{}
	for range 6 {
		for range 5 {
			key := fmt.Sprint(r.IntN(4))
			if r.IntN(3) == 0 {
				limiter.Forget(key)
				counts[key] = 0
			}
			if r.IntN(2) == 0 {
				continue
			}
			want := min(firstDelay<<min(counts[key], 10), longestDelay)
			got := limiter.When(key)
			if got == firstDelay && time.Since(last[key]) > remembered {
				counts[key] = 0 // it may be forgotten
			} else if got != want {
				w.violate(7, "a limiter delays %s for %v, want %v", key, got, want)
			}
			counts[key]++
			last[key] = time.Now()
		}
		time.Sleep(time.Duration(1+r.IntN(8)) * time.Hour)
		w.advance(0)
	}
}
