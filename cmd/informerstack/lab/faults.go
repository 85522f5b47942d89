// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/informerstack/controller"
	"example.com/informerstack/informer"
)

// Fault is how every reconcile fails.
type Fault string

// The faults.
const (
	NoFault  Fault = "none"
	Fail     Fault = "fail"     // an error
	Hang     Fault = "hang"     // no return before the fault ends
	Conflict Fault = "conflict" // the error of a write of an old version
)

var errFault = errors.New("the laboratory makes every reconcile fail")

// faults makes handlers slow, and reconciles slow or faulty.
type faults struct {
	mu       sync.Mutex
	work     time.Duration // of each reconcile
	fault    Fault
	changed  chan struct{} // closed and replaced when fault changes
	handlers map[string]*handlerFault
	hold     chan struct{} // closed when the consumer of the queue may pop again; nil if it may
	stopping bool          // the pipeline stops: no call of a handler waits
}

// handlerFault is what a handler does wrong.
type handlerFault struct {
	delay   time.Duration // before each call
	panic   bool          // in the next call
	changed chan struct{} // closed and replaced when delay or panic changes: a call waits no longer
}

// set changes the fault.
func (h *handlerFault) set(delay time.Duration, panics bool) {
	h.delay, h.panic = delay, panics
	h.wake()
}

func (h *handlerFault) wake() {
	close(h.changed)
	h.changed = make(chan struct{})
}

func newFaults(work time.Duration) *faults {
	return &faults{
		work: work, fault: NoFault, changed: make(chan struct{}),
		handlers: map[string]*handlerFault{},
	}
}

// setFault makes all reconciles fail in this way from now on. Those that hang return.
func (f *faults) setFault(fault Fault) error {
	if !slices.Contains([]Fault{NoFault, Fail, Hang, Conflict}, fault) {
		return fmt.Errorf("reconcile fault %q: want none, fail, hang or conflict", fault)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = fault
	f.wakeLocked()
	return nil
}

// begin makes slow handlers slow again, in a pipeline that starts.
func (f *faults) begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopping = false
}

// wake lets the reconciles that hang and the slow calls of handlers return, and the consumer of the
// queue pop: a pipeline that stops is not held. A handler that gets its backlog meanwhile is not
// slow.
func (f *faults) wake() {
	f.setHold(false)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopping = true
	f.wakeLocked()
	for _, h := range f.handlers {
		h.wake()
	}
}

// clear ends every fault, also the panic of a handler that has not been called since.
func (f *faults) clear() {
	_ = f.setFault(NoFault)
	f.setHold(false)
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.handlers {
		h.set(0, false)
	}
}

// setHold makes the consumer of the queue wait before it pops again, or ends that.
func (f *faults) setHold(hold bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case hold && f.hold == nil:
		f.hold = make(chan struct{})
	case !hold && f.hold != nil:
		close(f.hold)
		f.hold = nil
	}
}

func (f *faults) holds() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hold != nil
}

// pop returns when the consumer of the queue may pop.
func (f *faults) pop() {
	f.mu.Lock()
	hold := f.hold
	f.mu.Unlock()
	if hold != nil {
		<-hold
	}
}

func (f *faults) wakeLocked() {
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *faults) setWork(work time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.work = work
}

func (f *faults) state() (fault Fault, work time.Duration, changed <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fault, f.work, f.changed
}

// handler changes the fault of a handler. It returns an error if there is no such handler.
func (f *faults) handler(name string, change func(*handlerFault)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	h, ok := f.handlers[name]
	if !ok {
		return fmt.Errorf("no handler %q", name)
	}
	change(h)
	return nil
}

// delayOf returns the delay of a handler.
func (f *faults) delayOf(name string) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if h := f.handlers[name]; h != nil {
		return h.delay
	}
	return 0
}

// call does what the reader wants before a call of the handler.
func (f *faults) call(name string) {
	f.mu.Lock()
	h := f.handlers[name]
	delay, fails, changed := h.delay, h.panic, h.changed
	h.panic = false
	if f.stopping {
		delay = 0
	}
	f.mu.Unlock()
	if fails {
		panic("the laboratory makes handler " + name + " panic")
	}
	if delay > 0 {
		wait(context.Background(), delay, changed)
	}
}

// Handler returns a handler that the page can slow down and make panic. It needs the option
// SkipPanics.
func (l *Lab) Handler(
	name string, handler informer.ResourceEventHandler,
) informer.ResourceEventHandler {
	l.faults.mu.Lock()
	defer l.faults.mu.Unlock()
	if l.faults.handlers[name] == nil {
		l.faults.handlers[name] = &handlerFault{changed: make(chan struct{})}
	}
	return faultyHandler{handler, func() { l.faults.call(name) }}
}

// ControllerHandler returns the handler of the controller, which the page's code can slow down.
func (l *Lab) ControllerHandler(
	handler informer.ResourceEventHandler,
) informer.ResourceEventHandler {
	return faultyHandler{handler, func() { time.Sleep(l.code.handlerDelay()) }}
}

// faultyHandler calls before at the beginning of each call.
type faultyHandler struct {
	informer.ResourceEventHandler
	before func()
}

// Unwrap returns the handler inside, which messages name.
func (h faultyHandler) Unwrap() informer.ResourceEventHandler { return h.ResourceEventHandler }

// OnAdd calls the handler, after the faults.
func (h faultyHandler) OnAdd(obj any, isInInitialList bool) {
	h.before()
	h.ResourceEventHandler.OnAdd(obj, isInInitialList)
}

// OnUpdate calls the handler, after the faults.
func (h faultyHandler) OnUpdate(oldObj, newObj any) {
	h.before()
	h.ResourceEventHandler.OnUpdate(oldObj, newObj)
}

// OnDelete calls the handler, after the faults.
func (h faultyHandler) OnDelete(obj any) {
	h.before()
	h.ResourceEventHandler.OnDelete(obj)
}

// Reconcile returns a reconcile function that takes the time of the settings, and that the page can
// make fail.
func (l *Lab) Reconcile(next controller.ReconcileFunc[string]) controller.ReconcileFunc[string] {
	next = l.patient(next)
	return func(ctx context.Context, key string) (_ controller.Result, err error) {
		defer func() {
			if err != nil && l.code.has(addAtOnce) {
				wait(ctx, retryPace, nil)
			}
		}()
		fault, work, changed := l.faults.state()
		if work > 0 {
			wait(ctx, work, nil)
		}
		switch fault {
		case Fail:
			return controller.Result{}, errFault
		case Conflict:
			resource := schema.ParseGroupResource(l.resource())
			return controller.Result{}, apierrors.NewConflict(resource, key, errFault)
		case Hang:
			wait(ctx, 0, changed)
		}
		return next(ctx, key)
	}
}

// wait returns after d, or if d is 0 never, and earlier when ctx is done or wake is closed.
func wait(ctx context.Context, d time.Duration, wake <-chan struct{}) {
	var passed <-chan time.Time
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		passed = timer.C
	}
	select {
	case <-ctx.Done():
	case <-wake:
	case <-passed:
	}
}
