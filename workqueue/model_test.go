// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/informerstack/internal/tools/transcript"
	"example.com/informerstack/workqueue"
)

// model is the queue as the posts explain it: two sets, a slice, and a time for each waiting item.
type model struct {
	queue             []string
	dirty, processing map[string]bool
	waiting           map[string]time.Time
	failures          map[string]int
	shuttingDown      bool
	keeps, supersedes bool
}

func newModel() *model {
	return &model{
		dirty: map[string]bool{}, processing: map[string]bool{},
		waiting: map[string]time.Time{}, failures: map[string]int{},
	}
}

func (m *model) add(item string) {
	if m.shuttingDown || m.dirty[item] {
		return
	}
	m.dirty[item] = true
	if !m.processing[item] {
		m.queue = append(m.queue, item)
	}
}

// addNow is an Add, and not the end of a wait.
func (m *model) addNow(item string) {
	if m.supersedes && !m.shuttingDown {
		delete(m.waiting, item)
	}
	m.add(item)
}

func (m *model) get() string {
	if len(m.queue) == 0 {
		if m.shuttingDown {
			return "shutdown"
		}
		return "nothing"
	}
	item := m.queue[0]
	m.queue = m.queue[1:]
	m.processing[item] = true
	delete(m.dirty, item)
	return item
}

func (m *model) done(item string) {
	if !m.processing[item] {
		return
	}
	delete(m.processing, item)
	if m.dirty[item] {
		m.queue = append(m.queue, item)
	}
}

func (m *model) addAfter(item string, d time.Duration) {
	if m.shuttingDown && !m.keeps {
		return
	}
	if d <= 0 {
		m.addNow(item)
		return
	}
	due := time.Now().Add(d)
	if old, ok := m.waiting[item]; !ok || due.Before(old) {
		m.waiting[item] = due
	}
}

func (m *model) addRateLimited(item string) {
	m.failures[item]++
	d := time.Second
	for range m.failures[item] - 1 {
		d = min(2*d, time.Minute)
	}
	m.addAfter(item, d)
}

// sleep lets what is due join, the first due first.
func (m *model) sleep() {
	for !m.shuttingDown {
		first := ""
		for item, due := range m.waiting {
			if !due.After(time.Now()) && (first == "" || due.Before(m.waiting[first])) {
				first = item
			}
		}
		if first == "" {
			return
		}
		delete(m.waiting, first)
		m.add(first)
	}
}

func (m *model) shutDown() {
	m.shuttingDown, m.keeps = true, false
	clear(m.waiting)
}

// step does one operation on q and on the model, and compares what they say. Delays are odd
// multiples of a step, so that no two items are due at once: their order is not promised.
func (m *model) step(t *testing.T, q queue, op, item byte, n uint16) {
	t.Helper()
	key := fmt.Sprint(item % 8)
	switch op % 10 {
	case 0, 1:
		q.Add(key)
		m.addNow(key)
	case 2, 3:
		require.Equal(t, m.get(), next(q), "Get")
	case 4, 5:
		if !m.processing[key] {
			return // client-go queues a duplicate
		}
		q.Done(key)
		m.done(key)
	case 6:
		d := time.Duration(n%5000)*time.Millisecond +
			time.Duration(time.Now().UnixNano()%1000+int64(item%8))
		q.AddAfter(key, d)
		m.addAfter(key, d)
		time.Sleep(time.Microsecond)
	case 7:
		q.AddRateLimited(key)
		m.addRateLimited(key)
		time.Sleep(time.Microsecond)
	case 8:
		q.Forget(key)
		delete(m.failures, key)
	case 9:
		after(time.Duration(n%3000) * time.Millisecond)
		m.sleep()
		if n == 0xffff {
			q.ShutDown()
			m.shutDown()
		}
	}
	synctest.Wait()
	m.sleep()
	require.Equal(t, len(m.queue), q.Len(), "Len")
	require.Equal(t, m.failures[key], q.NumRequeues(key), "NumRequeues")
	require.Equal(t, m.shuttingDown, q.ShuttingDown(), "ShuttingDown")
	checkLaws(t, q)
}

// Random operations do to our queue and to client-go's what they do to the model.
func TestModel(t *testing.T) {
	workqueue.SmallLimits(t)
	for seed := range uint64(20) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			onBoth(t, func(t *testing.T, impl string, q queue) {
				random, m := rand.New(rand.NewPCG(seed, 0)), newModel()
				for range 500 {
					bits := random.Uint32()
					m.step(t, q, byte(bits), byte(bits>>8), uint16(bits>>16))
				}
				q.ShutDown()
				m.shutDown()
				for item := range m.processing {
					q.Done(item)
				}
				for _, item := range slices.Sorted(keysOf(m.processing)) {
					m.done(item)
				}
				require.Equal(t, len(m.queue), q.Len())
			})
		})
	}
}

func keysOf(set map[string]bool) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for key := range set {
			if !yield(key) {
				return
			}
		}
	}
}

// lawful is a queue of this package.
type lawful interface {
	workqueue.ContextInterface[string]
	CheckLaws(t testing.TB)
}

// crew is a number of workers that call Get and are then busy until the test lets them call Done.
type crew struct {
	q       lawful
	waiting map[int]context.CancelFunc // by worker
	left    chan int                   // workers that have returned from Get
	has     chan string                // items that workers have got
	next    int
}

func (c *crew) start() {
	worker := c.next
	c.next++
	ctx, cancel := context.WithCancel(context.Background())
	c.waiting[worker] = cancel
	go func() {
		defer func() { c.left <- worker }()
		if item, shutdown := c.q.GetWithContext(ctx); !shutdown {
			c.has <- item
		}
	}()
}

// settle lets the workers run until all of them are blocked, and forgets those that have returned.
func (c *crew) settle() {
	for synctest.Wait(); len(c.left) > 0; synctest.Wait() {
		worker := <-c.left
		c.waiting[worker]()
		delete(c.waiting, worker)
	}
}

// Q3: whatever order items, workers and ends of contexts come in, no worker waits beside an item
// that it could have.
func TestModel_WaitingWorkers(t *testing.T) {
	waitingWorkers(t, func() lawful {
		return workqueue.NewTyped(workqueue.Config[string]{Order: &order[string]{lifo: true}})
	}, func(q lawful) bool { return q.Len() > 0 })
}

// waitingWorkers tests Q3. has reports whether the queue has an item for a worker.
func waitingWorkers(t *testing.T, newQueue func() lawful, has func(q lawful) bool) {
	workqueue.SmallLimits(t)
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			c := &crew{
				waiting: map[int]context.CancelFunc{},
				left:    make(chan int, 1000), has: make(chan string, 1000),
			}
			c.q = newQueue()
			for range 300 {
				for range 1 + random.IntN(3) { // at the same moment
					switch random.IntN(6) {
					case 0, 1:
						c.start()
					case 2, 3:
						go c.q.Add(fmt.Sprint(random.IntN(8)))
					case 4:
						for _, cancel := range c.waiting {
							go cancel()
							break
						}
					case 5:
						if len(c.has) > 0 {
							go c.q.Done(<-c.has)
						}
					}
				}
				c.settle()
				require.True(t, len(c.waiting) == 0 || !has(c.q), "workers wait beside items")
				c.q.CheckLaws(t)
			}
			c.q.ShutDown()
			for c.settle(); len(c.has) > 0; c.settle() {
				c.q.Done(<-c.has) // a limit may have kept items back
			}
			require.Empty(t, c.waiting)
		})
	}
}

// FuzzQueue plays the input as operations, four bytes each.
func FuzzQueue(f *testing.F) {
	workqueue.SmallLimits(f)
	f.Add([]byte("\x00a00\x02000\x00a00\x04a00\x02000"))
	f.Add([]byte("\x06a\x01\x02\x06a\x00\x01\x09a\x04\x00\x02000\x09a\xff\xff\x02000"))
	f.Fuzz(func(t *testing.T, ops []byte) {
		synctest.Test(t, func(t *testing.T) {
			require.Equal(t, transcript.Ours, impls[0].name)
			q, m := impls[0].make(), newModel()
			defer q.ShutDown()
			for ; len(ops) >= 4; ops = ops[4:] {
				m.step(t, q, ops[0], ops[1], uint16(ops[2])<<8|uint16(ops[3]))
			}
		})
	})
}
