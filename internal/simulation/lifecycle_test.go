// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"context"
	"regexp"
	"runtime"
	"sync"
	"testing/synctest"
	"time"
	"weak"

	corev1 "k8s.io/api/core/v1"

	"example.com/informerstack/informer"
)

// stopWithin is the longest time in which a process must have stopped: a grace period, the longest
// call of a handler or a reconcile before and after it, and the last requests.
const stopWithin = gracePeriod + 2*40*time.Second + 2*renewDeadline

// processKinds are the steps in the life of a process, and the faults of its callbacks.
var processKinds = map[string]func(*world, *process, step){
	"addhandler": func(_ *world, p *process, s step) { p.addHandler(s.n, s.d/100) },
	"removehandler": func(_ *world, p *process, s step) {
		h := p.handlers[s.n%len(p.handlers)]
		h.remove()
	},
	"restart": func(w *world, p *process, _ step) {
		p.cut()
		w.stop(p)
		w.processes[p.index] = w.start(p.setup, p.index)
	},
	"kill": func(w *world, p *process, _ step) { w.kill(p) },
	"partition": func(w *world, p *process, s step) {
		mode := []gateMode{refused, hanging, losing, slow}[s.n%4]
		w.cover("met partition " + string(mode))
		p.late = p.late || mode == hanging || mode == slow
		p.gate.set(mode)
		w.during(3*s.d, func() { p.gate.set(open) }) // a lease ends within it
	},
	"pause": func(w *world, p *process, s step) {
		p.late = true
		p.gate.set(hanging)
		p.hangs.Store(int64(s.d))
		w.during(3*s.d, func() { p.gate.set(open); p.hangs.Store(0) })
	},
	"hang": func(w *world, p *process, s step) {
		p.hangs.Store(int64(s.d))
		w.during(s.d, func() { p.hangs.Store(0) })
	},
	"badtransform": func(_ *world, p *process, s step) { p.transformFails.Store(int64(1 + s.n%3)) },
	"badstore": func(_ *world, p *process, s step) {
		p.refused = true
		p.storeFails.Store(int64(1 + s.n%3))
	},
	"badhandler": func(_ *world, p *process, s step) {
		h := p.handlers[s.n%len(p.handlers)]
		h.mu.Lock()
		defer h.mu.Unlock()
		h.panics = 1 + s.n%3
	},
	"badreconcile": func(_ *world, p *process, s step) {
		p.work.mu.Lock()
		defer p.work.mu.Unlock()
		for range 1 + s.n%8 {
			p.work.faults = append(p.work.faults, fault(s.n/8)%faultCount)
		}
	},
	"await": func(_ *world, p *process, _ step) { p.awaitVersion() },
	"drain": func(w *world, _ *process, s step) { w.drainQueue(s.n) },
}

// stop stops a process, and checks that it has ended in time and leaves nothing.
func (w *world) stop(p *process) {
	p.cancel()
	for end := time.Now().Add(stopWithin); !isClosed(p.ended); {
		if w.violated() {
			time.Sleep(time.Second)
			synctest.Wait()
		} else {
			w.advance(time.Second)
		}
		if time.Now().After(end) {
			w.violate(8, "%s has not ended %v after its stop", p.name, stopWithin)
			<-p.ended
		}
	}
	synctest.Wait()
	w.truth.refresh()
	for _, h := range p.handlers {
		if !isClosed(h.handle.ShutdownChan()) {
			w.violate(8, "%s: Run has returned, and the ShutdownChan is open", h.name)
		}
		h.checkCalls()
	}
	if n := len(w.server.Watches(onlyOf(p, "watch"))); n > 0 {
		w.violate(8, "%s has ended, and %d of its watches are open", p.name, n)
	}
	if !p.informer.IsStopped() {
		w.violate(8, "%s: Run has returned, and IsStopped is false", p.name)
	}
}

// kill takes a process from the network for ever, and starts another in its place.
func (w *world) kill(p *process) {
	p.cut()
	p.gate.set(dead)
	p.cancel()
	w.killed = append(w.killed, p)
	w.processes[p.index] = w.start(p.setup, p.index)
}

// cut notes that the handlers may miss the last changes.
func (p *process) cut() {
	for _, h := range p.handlers {
		h.history.cut = true
	}
}

// waiter waits until a process reports that its store holds everything up to a version.
type waiter struct {
	p    *process
	rv   uint64
	done chan struct{}
	err  error
	have map[string]uint64 // the store when the wait ended
}

func (p *process) await(rv uint64, wait func() error) {
	v := &waiter{p: p, rv: rv, done: make(chan struct{})}
	p.waiters = append(p.waiters, v)
	go func() {
		defer close(v.done)
		v.err = wait()
		v.have = p.stored()
	}()
}

func (p *process) awaitVersion() {
	rv := p.server.ResourceVersion()
	p.await(number(rv), func() error {
		err := p.informer.WaitForResourceVersion(context.Background(), rv)
		if err == nil {
			p.cover("version reached")
		}
		return err
	})
}

// awaitSync waits for HasSynced, after which the store holds what the first list showed.
func (p *process) awaitSync() {
	p.await(p.started, func() error {
		select {
		case <-p.informer.HasSyncedChecker().Done():
			return nil
		case <-p.ended:
			return informer.ErrStopped
		}
	})
}

// checkDone checks that the wait ended, and not before the store held everything.
func (v *waiter) checkDone() {
	p := v.p
	switch {
	case !isClosed(v.done):
		p.violate(4, "%s waits for version %d for ever", p.name, v.rv)
		return
	case v.err != nil && !isClosed(p.ended):
		p.violate(4, "%s waited for version %d: %v", p.name, v.rv, v.err)
	case v.err != nil:
		return
	}
	for key := range p.seeing.byKey {
		have, exists := v.have[key]
		want := p.seeing.at(key, v.rv)
		if have < want && !(!exists && p.seeing.leftAfter(key, want)) ||
			want == 0 && exists && have < v.rv {
			p.violate(4, "%s waited for version %d, and its store had %s@%d, want %d", p.name, v.rv,
				key, have, want)
		}
	}
}

// drainQueue checks that a queue which drains hands out everything that was added.
func (w *world) drainQueue(n int) {
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
	drained := make(chan struct{})
	go func() { defer close(drained); q.ShutDownWithDrain() }()
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

// objects returns the objects in all stores, without keeping them in memory.
func (w *world) objects() (all []weak.Pointer[corev1.ConfigMap]) {
	for _, p := range w.processes {
		for _, obj := range p.informer.GetStore().List() {
			all = append(all, weak.Make(obj.(*corev1.ConfigMap)))
		}
	}
	return all
}

// checkCollected checks that nothing keeps the objects of processes that have ended.
func (w *world) checkCollected(objects []weak.Pointer[corev1.ConfigMap]) {
	runtime.GC()
	for _, object := range objects {
		if cm := object.Value(); cm != nil {
			w.violate(8, "%s@%s is still in memory", cm.Name, cm.ResourceVersion)
		}
	}
	w.cover("objects collected")
}

var bubble = regexp.MustCompile(`synctest bubble \d+`)

// bubbleGoroutines returns the stacks of the other goroutines of the caller's bubble.
func bubbleGoroutines() (stacks []string) {
	buf := make([]byte, 1<<20)
	n := runtime.Stack(buf, true)
	for n == len(buf) { // it is cut
		buf = make([]byte, 2*len(buf))
		n = runtime.Stack(buf, true)
	}
	all := bytes.Split(buf[:n], []byte("\n\n"))
	mine := string(bubble.Find(all[0]))
	for _, stack := range all[1:] {
		label := bubble.Find(stack)
		if label != nil && string(label) == mine &&
			!bytes.Contains(stack, []byte("testing/synctest")) {
			stacks = append(stacks, string(stack))
		}
	}
	return stacks
}
