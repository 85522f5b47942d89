// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"example.com/informerstack/deltafifo"
	"example.com/informerstack/reflector"
)

// foreignQueue is a queue that is not of package deltafifo, and knows of no Progress. While it is
// closed for consumers, it holds everything back.
type foreignQueue struct {
	mu     sync.Mutex
	cond   sync.Cond
	items  []deltafifo.Deltas
	shut   bool
	paused bool
	synced chan struct{}
}

func newForeignQueue() *foreignQueue {
	q := &foreignQueue{synced: make(chan struct{})}
	q.cond.L = &q.mu
	return q
}

func (q *foreignQueue) put(d deltafifo.DeltaType, obj any) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.items = append(q.items, deltafifo.Deltas{{Type: d, Object: obj}})
	q.cond.Signal()
	return nil
}

func (q *foreignQueue) Add(obj any) error    { return q.put(deltafifo.Added, obj) }
func (q *foreignQueue) Update(obj any) error { return q.put(deltafifo.Updated, obj) }
func (q *foreignQueue) Delete(obj any) error { return q.put(deltafifo.Deleted, obj) }
func (*foreignQueue) Resync() error          { return nil }

func (q *foreignQueue) Replace(list []any, rv string) error {
	return q.put(deltafifo.ReplacedAll,
		deltafifo.ReplacedAllInfo{ResourceVersion: rv, Objects: list})
}

func (q *foreignQueue) Pop(process deltafifo.PopProcessFunc) (any, error) {
	q.mu.Lock()
	for (len(q.items) == 0 || q.paused) && !q.shut {
		q.cond.Wait()
	}
	if q.shut {
		q.mu.Unlock()
		return nil, deltafifo.ErrFIFOClosed
	}
	item := q.items[0]
	q.items = q.items[1:]
	q.mu.Unlock()
	err := process(item, !q.HasSynced())
	if item[0].Type == deltafifo.ReplacedAll && !q.HasSynced() {
		close(q.synced)
	}
	return item, err
}

func (q *foreignQueue) HasSynced() bool {
	select {
	case <-q.synced:
		return true
	default:
		return false
	}
}

func (q *foreignQueue) HasSyncedChecker() deltafifo.DoneChecker { return q }
func (q *foreignQueue) Done() <-chan struct{}                   { return q.synced }
func (*foreignQueue) Name() string                              { return "foreign" }
func (q *foreignQueue) Close()                                  { q.set(&q.shut, true) }

func (q *foreignQueue) set(field *bool, to bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	*field = to
	q.cond.Broadcast()
}

// With a queue that reports nothing, the informer works, and claims nothing: not while the queue
// holds a list or a change back, and not later.
func TestStory_AForeignQueueClaimsNothing(t *testing.T) {
	var q *foreignQueue
	story(t, func(w *world) {
		claimsNothing := func() {
			t.Helper()
			health := w.health()
			assert.Empty(t, health.ResourceVersion)
			assert.Zero(t, health.CurrentAsOf)
			assert.Empty(t, w.version())
			ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
			defer cancel()
			err := w.waitFor(ctx, "1")
			_, isBehind := errors.AsType[*BehindError](err)
			assert.True(t, isBehind, "%v", err)
			assert.ErrorContains(t, err, "the queue does not report all that it holds")
		}
		w.create("a")
		w.start()
		assert.Empty(t, w.stored(), "the list is held back")
		assert.False(t, w.informer.HasSynced())
		claimsNothing()
		q.set(&q.paused, false)
		w.handlerSaw("initial a")
		w.settle()
		assert.True(t, w.informer.HasSynced())
		assert.True(t, w.handler.HasSynced())
		claimsNothing()
		q.set(&q.paused, true)
		w.update("a")
		w.server.bookmark()
		w.after(time.Minute)
		assert.Equal(t, []string{"a@1"}, w.stored())
		claimsNothing()
		assert.ErrorContains(t, w.fresh(time.Hour), "the queue does not report all that it holds")
		q.set(&q.paused, false)
		w.handlerSaw("update a")
		claimsNothing()
	}, only(ours), withOptions(func(o *Options) {
		q = newForeignQueue()
		q.paused = true
		o.NewQueue = func(deltafifo.Options) deltafifo.Queue { return q }
	}))
}

// deferring is a queue that passes its calls to put, which may make them later.
type deferring struct {
	deltafifo.Queue
	put   func(call func() error) error
	close func()
}

func (q *deferring) Add(obj any) error {
	return q.put(func() error { return q.Queue.Add(obj) })
}

func (q *deferring) Update(obj any) error {
	return q.put(func() error { return q.Queue.Update(obj) })
}

func (q *deferring) Delete(obj any) error {
	return q.put(func() error { return q.Queue.Delete(obj) })
}

func (q *deferring) Replace(list []any, rv string) error {
	return q.put(func() error { return q.Queue.Replace(list, rv) })
}

func (q *deferring) Close() {
	q.close()
	q.Queue.Close()
}

// newBufferedQueue holds every second call back until the next one.
func newBufferedQueue(q deltafifo.Queue) deltafifo.Queue {
	var later []func() error
	return &deferring{q, func(call func() error) (err error) {
		if later = append(later, call); len(later)%2 == 1 {
			return nil
		}
		for _, call := range later {
			err = errors.Join(err, call())
		}
		later = nil
		return err
	}, func() {}}
}

// newAsyncQueue passes calls on in a goroutine of its own.
func newAsyncQueue(q deltafifo.Queue) deltafifo.Queue {
	calls, ended := make(chan func() error, 1<<12), make(chan struct{})
	go func() {
		for {
			select {
			case call := <-calls:
				time.Sleep(time.Millisecond)
				_ = call()
			case <-ended:
				return
			}
		}
	}()
	return &deferring{q, func(call func() error) error {
		calls <- call
		return nil
	}, sync.OnceFunc(func() { close(ended) })}
}

// processQueue passes the process function through wrap.
type processQueue struct {
	deltafifo.Queue
	wrap func(deltafifo.PopProcessFunc) deltafifo.PopProcessFunc
}

func (q processQueue) Pop(process deltafifo.PopProcessFunc) (any, error) {
	return q.Queue.Pop(q.wrap(process))
}

// splitDeltas processes the deltas of an item one by one.
func splitDeltas(process deltafifo.PopProcessFunc) deltafifo.PopProcessFunc {
	return func(obj any, initial bool) (err error) {
		for _, d := range obj.(deltafifo.Deltas) {
			err = errors.Join(err, process(deltafifo.Deltas{d}, initial))
		}
		return err
	}
}

// dropSome does not process some items.
func dropSome(process deltafifo.PopProcessFunc) deltafifo.PopProcessFunc {
	return func(obj any, initial bool) error {
		if name, _ := describe(obj.(deltafifo.Deltas)[0].Object); name == "b" {
			return nil
		}
		return process(obj, initial)
	}
}

// panicSometimes panics before or after it processes an item.
func panicSometimes(process deltafifo.PopProcessFunc) deltafifo.PopProcessFunc {
	return func(obj any, initial bool) error {
		dice := rand.IntN(20)
		if dice == 0 {
			panic("before")
		}
		err := process(obj, initial)
		if dice == 1 {
			panic("after")
		}
		return err
	}
}

// history is what the server held after each of its versions.
type history struct {
	mu       sync.Mutex
	versions []map[string]int // versions[v][name] is the version of name's object
	at       []time.Time      // when the version came
}

// change changes the server and notes it.
func (h *history) change(w *world, f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	now := map[string]int{}
	for name, obj := range w.server.objects {
		now[name], _ = strconv.Atoi(obj.ResourceVersion)
	}
	for len(h.versions) <= w.server.rv {
		h.versions, h.at = append(h.versions, now), append(h.at, time.Now())
	}
}

// missing returns what a store with this content lacks of the changes up to version.
func (h *history) missing(held map[string]int, version int) string {
	wasGone := func(name string) bool {
		for _, content := range h.versions[version:] {
			if _, exists := content[name]; !exists {
				return true
			}
		}
		return false
	}
	for name, v := range h.versions[version] {
		switch has, exists := held[name]; {
		case exists && has < v:
			return fmt.Sprintf("%s@%d, has %d", name, v, has)
		case !exists && !wasGone(name):
			return fmt.Sprintf("%s@%d, has none", name, v)
		}
	}
	for name, has := range held {
		if _, exists := h.versions[version][name]; !exists && has <= version {
			return fmt.Sprintf("the delete of %s@%d", name, has)
		}
	}
	return ""
}

// check checks that the store holds what its informer claims.
func (h *history) check(w *world) {
	w.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	health, held := w.health(), map[string]int{} // in this order
	for _, obj := range w.ours().GetStore().List() {
		o := obj.(*corev1.ConfigMap)
		held[o.Name], _ = strconv.Atoi(o.ResourceVersion)
	}
	version, _ := strconv.Atoi(health.ResourceVersion)
	if version > 0 {
		require.Empty(w.t, h.missing(held, version), "at %d", version)
	}
	before := 0
	for v, at := range h.at {
		if at.Before(health.CurrentAsOf) {
			before = v
		}
	}
	if before > 0 {
		require.Empty(w.t, h.missing(held, before), "as of %v", health.CurrentAsOf)
	}
}

// step changes something at random.
func (h *history) step(w *world, random *rand.Rand) {
	name := string(rune('a' + random.IntN(4)))
	exists := w.server.has(name)
	h.change(w, func() { stepOn(w.server, name, exists, random.IntN(16)) })
	if random.IntN(3) == 0 {
		time.Sleep(time.Duration(random.IntN(1500)) * time.Millisecond)
	}
}

func stepOn(server *server, name string, exists bool, op int) {
	switch {
	case op == 0:
		server.expire()
	case op == 1:
		server.cut()
	case op == 2:
		server.elsewhere()
	case op == 3:
		server.bookmark()
	case op == 4:
		server.fail(errors.New("down"))
	case op == 5:
		server.fail(nil)
	case op == 6 && exists:
		server.delete(name, true)
		server.expire() // nothing else shows it
	case op == 7 && exists:
		server.delete(name, false)
	case exists:
		server.update(name)
	default:
		server.create(name)
	}
}

// queues are wrappers of queues, and whether the informer knows what its store holds nevertheless.
var queues = map[string]struct {
	knows   bool
	options func(o *Options)
}{
	"ours": {true, func(*Options) {}},
	"hidden": {true, wrapQueue(func(q deltafifo.Queue) deltafifo.Queue {
		return struct{ deltafifo.Queue }{q}
	})},
	"split":           {true, wrapProcess(splitDeltas)},
	"panics":          {true, wrapProcess(panicSometimes)},
	"drops":           {false, wrapProcess(dropSome)},
	"buffers":         {false, wrapQueue(newBufferedQueue)},
	"passes on later": {false, wrapQueue(newAsyncQueue)},
	"takes bookmarks": {true, wrapQueue(func(q deltafifo.Queue) deltafifo.Queue {
		return noBookmarks{q}
	})},
	"repeats": {false, wrapProcess(repeatDeltas)},
	"counts":  {false, func(o *Options) { o.NewQueue = newCountingQueue }},
	"foreign": {false, func(o *Options) {
		o.NewQueue = func(deltafifo.Options) deltafifo.Queue { return newForeignQueue() }
	}},
	"wrapped for the reflector": {false, func(o *Options) {
		o.NewReflector = func(
			lw reflector.ListerWatcher, example any, s reflector.Store, o reflector.Options,
		) *reflector.Reflector {
			return reflector.New(lw, example, struct{ reflector.Store }{s}, o)
		}
	}},
}

func wrapQueue(wrap func(deltafifo.Queue) deltafifo.Queue) func(*Options) {
	return func(o *Options) { o.WrapQueue = wrap }
}

func wrapProcess(
	wrap func(deltafifo.PopProcessFunc) deltafifo.PopProcessFunc,
) func(*Options) {
	return wrapQueue(func(q deltafifo.Queue) deltafifo.Queue { return processQueue{q, wrap} })
}

// Whatever a queue and a store do, an informer claims no version and no time that its store does
// not hold. In the end it is current, if its queue reports what it holds.
func TestModel_ClaimsOnlyWhatIsStored(t *testing.T) {
	utilruntime.ReallyCrash = false
	defer func() { utilruntime.ReallyCrash = true }()
	for name, tc := range queues {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(12) {
				random := rand.New(rand.NewPCG(seed, 5))
				var w *world
				var h *history
				var isFlaky atomic.Bool
				isFlaky.Store(seed%2 == 1)
				refuse := func() error {
					h.check(w) // while the store is behind
					switch dice := rand.IntN(12); {
					case isFlaky.Load() && dice == 0:
						return errors.New("refused")
					case isFlaky.Load() && dice == 1:
						panic("broken")
					}
					return nil
				}
				options := worldOptions{ours: func(o *Options) {
					beforeWrites(refuse)(o)
					tc.options(o)
				}}
				synctest.Test(t, func(t *testing.T) {
					w = newWorld(t, []string{ours, oursRealFIFO}[seed/2%2], options)
					defer w.stop()
					h = &history{}
					h.change(w, func() {})
					w.start()
					for range 60 {
						h.step(w, random)
						h.check(w)
					}
					isFlaky.Store(false)
					h.change(w, func() {
						w.server.fail(nil)
						w.server.expire()
						w.server.create("b")
					})
					for i := range 100 {
						time.Sleep(time.Second)
						if i >= 90 && i < 99 {
							h.change(w, func() { w.server.update("b") })
						}
						h.check(w)
					}
					w.server.mu.Lock()
					newest := strconv.Itoa(w.server.rv)
					w.server.mu.Unlock()
					if name == "panics" {
						return // also in the end
					}
					if name != "drops" && name != "buffers" {
						assert.Equal(t, w.onServer(), w.stored())
					}
					assert.True(t, w.informer.HasSynced())
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					err := w.waitFor(ctx, newest)
					assert.Equal(t, tc.knows, err == nil, "seed %d: %v", seed, err)
					fresh := w.health().CurrentAsOf
					assert.Equal(t, tc.knows, !fresh.IsZero(), "seed %d", seed)
				})
			}
		})
	}
}
