// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"context"
	"regexp"
	"runtime"
	"testing/synctest"
	"time"
	"weak"

	corev1 "k8s.io/api/core/v1"

	"example.com/informerstack/informer"
)

// stopWithin is the longest time until a process must have stopped: a grace period, the longest
// call of a handler or a reconcile before and after it, and the last requests.
const stopWithin = gracePeriod + 2*40*time.Second + 2*renewDeadline

// processKinds are the steps in the life of a process, and the faults of its callbacks.
var processKinds = map[string]func(*world, *process, step){
	"addhandler": func(_ *world, p *process, s step) { p.addHandler(s.n, s.d/100) },
	"removehandler": func(w *world, p *process, s step) {
		w.burst(s.n % 8)
		p.handlerAt(s.n).remove()
	},
	"addindex": func(_ *world, p *process, _ step) { p.addIndex() },
	"inside":   (*world).doInside,
	"restart": func(w *world, p *process, _ step) {
		p.cut()
		w.stop(p)
		w.processes[p.index] = w.start(p.setup, p.index)
	},
	"kill": func(w *world, p *process, _ step) { w.kill(p) },
	"partition": func(w *world, p *process, s step) {
		mode := []gateMode{refused, hanging, losing, slow, halting}[s.n%5]
		w.cover("met partition " + string(mode))
		p.late = p.late || mode == hanging || mode == slow || mode == halting
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
	"slowtransform": func(w *world, p *process, s step) {
		p.transformTakes.Store(int64(s.d / 5)) // longer than the first waits of a backoff
		w.during(3*s.d, func() { p.transformTakes.Store(0) })
	},
	"slowpop":      (*world).slowPop,
	"badtransform": func(_ *world, p *process, s step) { p.transformFails.Store(int64(1 + s.n%3)) },
	"badstore": func(w *world, p *process, s step) {
		p.refused = true
		p.storeFails.Store(int64(1 + s.n%3))
		w.create(s.n) // it may be refused, and what follows may not
		w.update(s.n, false)
	},
	"badhandler": func(_ *world, p *process, s step) {
		h := p.handlerAt(s.n)
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
	"await":  func(_ *world, p *process, _ step) { p.awaitVersion() },
	"drain":  func(w *world, _ *process, s step) { w.drainQueue(s.n) },
	"takers": func(w *world, _ *process, s step) { w.takeFromQueue(s.n) },
	"lease":  func(w *world, _ *process, s step) { w.leases.step(w, s.n) },
}

// stop stops a process, and checks that it has ended in time and leaves nothing.
func (w *world) stop(p *process) {
	p.met = true
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
	for _, h := range p.allHandlers() {
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
	for _, h := range p.allHandlers() {
		h.mu.Lock()
		h.history.cut = true
		h.mu.Unlock()
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

// awaitSync waits for HasSynced. Then the store holds the content of the first list.
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
	case p.isSick() && isClosed(v.done) && v.err == nil:
		p.violate(4, "%s has reached version %d, and never got a list", p.name, v.rv)
		return
	case p.isSick():
		return
	case !isClosed(v.done):
		p.violate(4, "%s waits for version %d for ever", p.name, v.rv)
		return
	case p.isNotServed(v.err):
		p.cover("wait ends without the kind")
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

// objects returns the objects in all stores, without keeping them in memory.
func (w *world) objects() (all []weak.Pointer[corev1.ConfigMap]) {
	for _, p := range w.processes {
		for _, obj := range p.informer.GetStore().List() {
			all = append(all, weak.Make(obj.(*corev1.ConfigMap)))
		}
	}
	return all
}

// mostKept is how many objects may be kept by variables of goroutines that wait.
const mostKept = 4

// checkReleased checks that the objects which were replaced are garbage, although the registrations
// of handlers that were removed are kept.
func (w *world) checkReleased() {
	runtime.GC()
	for _, p := range w.processes {
		if p.has(packed) { // it keeps some of those that were unpacked
			continue
		}
		stored := map[*corev1.ConfigMap]bool{}
		for _, obj := range p.informer.GetStore().List() {
			stored[obj.(*corev1.ConfigMap)] = true
		}
		kept := 0
		for _, object := range p.replaced {
			if cm := object.Value(); cm != nil && !stored[cm] {
				kept++
			}
		}
		w.cover("replaced objects released")
		if kept > mostKept {
			w.violate(8, "%s keeps %d of %d objects that were replaced", p.name, kept,
				len(p.replaced))
		}
	}
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
