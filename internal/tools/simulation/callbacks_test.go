// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	goruntime "runtime"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"example.com/informerstack/deltafifo"
	"example.com/informerstack/reflector"
	"example.com/informerstack/store"
)

// maxTakes is the longest time that a step adds to a call of a transform or a Pop.
const maxTakes = 8 * time.Second

// callbacks are what the informer of a process calls: the transform, the index functions, the
// store, the handlers, and the loop that pops from its queue. Calls can fail, take time, or do
// something else besides.
//
// The store takes no time: it is called under mutexes, and no fake time passes while a goroutine
// waits for one. Instead, the loop pauses before it pops.
type callbacks struct {
	transformFails, storeFails atomic.Int64 // how many of the next calls fail
	transformTakes, popTakes   atomic.Int64 // how long each call takes
	hangs                      atomic.Int64 // of handlers and reconciles: how long each call takes

	inTransform, inStore, inHandler hook

	transforming atomic.Int64 // how many transforms run
	depth        atomic.Int64 // of the queue
}

// hook is what the next call of a callback does besides.
type hook struct{ do atomic.Pointer[func()] }

func (h *hook) set(do func()) { h.do.Store(&do) }

func (h *hook) run() {
	if do := h.do.Swap(nil); do != nil {
		(*do)()
	}
}

func (c *callbacks) heal() {
	for _, n := range []*atomic.Int64{
		&c.transformFails, &c.storeFails, &c.transformTakes, &c.popTakes, &c.hangs,
	} {
		n.Store(0)
	}
	for _, h := range []*hook{&c.inTransform, &c.inStore, &c.inHandler} {
		h.do.Store(nil)
	}
}

// transform marks each object.
func (p *process) transform(obj any) (any, error) {
	if p.transforming.Add(1) > 1 && !p.has(spaced) {
		p.violate(1, "%s runs two transforms at once", p.name)
	}
	defer p.transforming.Add(-1)
	p.duties.progress()
	p.inTransform.run()
	if takes := p.transformTakes.Load(); takes > 0 {
		time.Sleep(time.Duration(takes))
		p.duties.progress()
	}
	if p.transformFails.Add(-1) >= 0 {
		p.cover("met badtransform")
		return nil, errFault
	}
	if cm, ok := obj.(*corev1.ConfigMap); ok && cm.Annotations["transformed"] != "" {
		p.violate(1, "%s transforms %s twice", p.name, cm.Name)
	}
	return marked(obj), nil
}

func marked(obj any) any {
	if cm, ok := obj.(*corev1.ConfigMap); ok {
		if cm.Annotations == nil {
			cm.Annotations = map[string]string{}
		}
		cm.Annotations["transformed"] = "yes"
	}
	return obj
}

func byTeam(obj any) ([]string, error) {
	return []string{obj.(*corev1.ConfigMap).Labels["team"]}, nil
}

// byWrite has another value after each write.
func byWrite(obj any) ([]string, error) {
	return []string{obj.(*corev1.ConfigMap).Data["write"]}, nil
}

// byParts returns several values (one that all objects share, some that change, one twice, the
// empty one) or no value. It lets other goroutines run, as a slow index function does.
func byParts(obj any) ([]string, error) {
	write := obj.(*corev1.ConfigMap).Data["write"]
	last := write[max(0, len(write)-1):]
	goruntime.Gosched()
	switch last {
	case "3", "6":
		return nil, nil
	case "9":
		return []string{""}, nil
	}
	return []string{"all", last, "", last}, nil
}

// failingStore is a store that refuses writes.
type failingStore struct {
	store.Indexer
	p *process
}

// fails also lets other goroutines run: they may see what should not have happened before a write.
func (s *failingStore) fails() error {
	goruntime.Gosched()
	s.p.inStore.run()
	if s.p.storeFails.Add(-1) < 0 {
		return nil
	}
	s.p.cover("met badstore")
	s.p.duties.lose()
	return errFault
}

func (s *failingStore) write(write func(obj any) error, obj any) error {
	if err := s.fails(); err != nil {
		return err
	}
	return write(obj)
}

func (s *failingStore) Add(obj any) error    { return s.write(s.Indexer.Add, obj) }
func (s *failingStore) Update(obj any) error { return s.write(s.Indexer.Update, obj) }
func (s *failingStore) Delete(obj any) error { return s.write(s.Indexer.Delete, obj) }

func (s *failingStore) Replace(list []any, resourceVersion string) error {
	s.p.inStore.run()
	goruntime.Gosched()
	return s.Indexer.Replace(list, resourceVersion)
}

// Transaction leaves out the first change if it fails.
func (s *failingStore) Transaction(txns ...store.Transaction) *store.TransactionError {
	inner := s.Indexer.(store.TransactionStore)
	err := s.fails()
	if err == nil || len(txns) == 0 {
		return inner.Transaction(txns...)
	}
	if inner.Transaction(txns[1:]...) != nil {
		panic("the store refuses a transaction")
	}
	failed := &store.TransactionError{TotalTransactions: len(txns), Errors: []error{err}}
	for i := range txns[1:] {
		failed.SuccessfulIndices = append(failed.SuccessfulIndices, i+1)
	}
	return failed
}

// queue is the queue of an informer with a loop that can be slow. It covers how often the queue is
// behind.
type queue struct {
	deltafifo.Queue
	p *process
}

// batchQueue is a queue with batches and bookmarks.
type batchQueue struct{ queue }

func (p *process) wrapQueue(q deltafifo.Queue) deltafifo.Queue {
	if _, ok := q.(deltafifo.QueueWithBatch); ok {
		return batchQueue{queue{q, p}}
	}
	return queue{q, p}
}

func (q queue) Pop(process deltafifo.PopProcessFunc) (any, error) {
	time.Sleep(time.Duration(q.p.popTakes.Load()))
	return q.Queue.Pop(process)
}

func (q queue) Replace(list []any, resourceVersion string) error {
	q.meets("replace")
	if q.p.has(custom) {
		q.p.duties.lists() // that of a kind that is gone is not requested
	}
	q.p.duties.replaces()
	return q.Queue.Replace(list, resourceVersion)
}

func (q queue) Resync() error {
	q.meets("resync")
	q.p.duties.resyncs()
	return q.Queue.Resync()
}

func (q queue) meets(what string) {
	q.p.cover(what)
	if q.p.depth.Load() > 0 {
		q.p.cover(what + " meets queued items")
	}
}

func (q batchQueue) PopBatch(
	batch deltafifo.ProcessBatchFunc, single deltafifo.PopProcessFunc,
) error {
	time.Sleep(time.Duration(q.p.popTakes.Load()))
	return q.Queue.(deltafifo.QueueWithBatch).PopBatch(batch, single)
}

func (q batchQueue) Bookmark(resourceVersion string) error {
	return q.Queue.(reflector.BookmarkStore).Bookmark(resourceVersion)
}
