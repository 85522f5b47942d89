// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"example.com/informerstack/controller"
	"example.com/informerstack/observe/health"
)

const maxAttempts = 4

// fault is how a reconcile fails.
type fault int

const (
	returnsError fault = iota
	panics
	isTerminal
	faultCount
)

// work is the controller of a process. Its reconcile copies data["write"] of an object to the
// annotation "done", and notes what it is called for.
type work struct {
	p          *process
	controller *controller.Controller[string]
	writes     *controller.Writes[string]
	do         controller.ReconcileFunc[string] // act, or that of a noted process

	mu     sync.Mutex
	keys   map[string]*keyState
	live   map[context.Context]string // the running calls, with their keys
	faults []fault                    // of the next calls
	seen   []seenWrite                // that were not checked yet
}

// keyState is what the calls of one key have shown.
type keyState struct {
	running   bool
	failed    bool // the last call
	changed   bool // since the running call began
	changedAt time.Time
	changing  bool        // a change is being added to the queue
	meanwhile int         // failures while it is
	queued    time.Time   // when it was last added to the queue, also by a resync
	added     time.Time   // when it was last added so that a call must follow
	begun     time.Time   // the last call
	version   uint64      // in the store, when the last call began
	due       time.Time   // when the first delay ends; zero without a delay
	tie       time.Time   // when a call began, for an Add, at the instant of the end of a delay
	maybe     []time.Time // when delays may end: one began as another ended
	failures  int         // since the last change
	uncertain int         // failures that may count: a change or an end came during the call
	delays    int         // of the rate limiter since the last success, or since it forgot the key
	wrote     uint64      // the newest version that a call wrote
}

// seenWrite is a write that Writes.Seen reported to be in the store, and what the store had.
type seenWrite struct {
	key         string
	wrote, have uint64
}

func newWork(p *process) *work {
	k := &work{p: p, keys: map[string]*keyState{}, live: map[context.Context]string{}}
	k.do, k.writes = k.act, &controller.Writes[string]{}
	if p.has(noted) {
		k.do, k.writes = controller.Patient(writePatience, k.act), &p.noted
	}
	options := controller.Options[string]{
		Workers: 2, MaxAttempts: maxAttempts, CacheSyncTimeout: 24 * time.Hour,
		WaitFor:     []controller.Synced{p.informer.HasSyncedChecker()},
		RateLimiter: newLimiter(k),
	}
	if p.impl == clientGo {
		options.NewQueue = newReferenceQueue
	}
	if p.elector != nil {
		options.Lead = p.elector.Lead
	}
	if p.election == "grace" || p.election == "drain" {
		options.GracePeriod, options.Drain = gracePeriod, p.election == "drain"
	}
	if p.devtools != nil {
		options.NewQueue = p.devtools.newQueue
	}
	if p.impl == ours && p.has(fair) {
		options.NewQueue = p.newFairQueue
		options.LowPriority, options.LowPriorityRetries = lowPriority, p.index%2 == 0
	}
	k.controller = controller.New(p.name, k.reconcile, options)
	if p.devtools != nil {
		health.AddController(p.devtools.page, k.controller)
	}
	handler := p.devtools.handler("enqueuer", enqueuer{k, k.controller.MapHandler(k.keysOf)})
	if _, err := p.informer.AddEventHandler(handler); err != nil {
		p.violate(5, "%s: add the controller's handler: %v", p.name, err)
	}
	return k
}

func (k *work) keyLocked(key string) *keyState {
	if k.keys[key] == nil {
		k.keys[key] = &keyState{}
	}
	return k.keys[key]
}

// reconcile notes the call, and that it ends.
func (k *work) reconcile(ctx context.Context, key string) (result controller.Result, err error) {
	k.p.mayBegin(key)
	k.begin(ctx, key)
	failed := true
	defer func() { k.end(ctx, key, failed) }()
	result, err = k.do(ctx, key)
	failed = err != nil
	if result.RequeueAfter > 0 && !failed {
		k.delayed(key, result.RequeueAfter)
	}
	return result, err
}

// begin checks invariant 5: the key may be worked on now.
func (k *work) begin(ctx context.Context, key string) {
	k.p.note("%s reconciles %s", k.p.name, key)
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.keyLocked(key)
	now := time.Now()
	if s.running {
		k.p.violate(5, "%s works on %s twice at once", k.p.name, key)
	}
	// A worker may have taken the key just as it was added again.
	queued := !s.queued.Before(s.begun)
	ended := func(due time.Time) bool { return !now.Before(due) }
	mayBeDue := slices.ContainsFunc(s.maybe, ended)
	if s.queued.Equal(now) && (s.due.Equal(now) || slices.ContainsFunc(s.maybe, now.Equal)) {
		s.tie = now
	}
	s.maybe = slices.DeleteFunc(s.maybe, ended)
	if !queued && !mayBeDue && (s.due.IsZero() || !ended(s.due)) {
		k.p.violate(5, "%s works on %s too early: its delay ends in %v", k.p.name, key,
			s.due.Sub(now))
	}
	if s.failures >= maxAttempts && !s.changing {
		k.p.violate(5, "%s works on %s again after %d failures", k.p.name, key, s.failures)
	}
	if _, dead := k.controller.DeadLetters().Get(key); dead && !queued {
		k.p.violate(5, "%s works on the dead letter %s", k.p.name, key)
	}
	if s.due.Equal(now) {
		s.queued = now // it may end after this call has begun
	}
	if ended(s.due) {
		s.due = time.Time{}
	}
	s.running, s.begun, s.version = true, now, k.stored(key)
	s.changed = s.changed && s.changedAt.Equal(now) // the worker may have taken the key before
	k.live[ctx] = key
}

func (k *work) end(ctx context.Context, key string, failed bool) {
	k.p.note("%s has reconciled %s, failed: %v", k.p.name, key, failed)
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.keyLocked(key)
	s.running, s.failed = false, failed
	ended := ctx.Err() != nil
	if failed && s.changing {
		s.meanwhile++
	}
	if failed && ended {
		s.queued = time.Now()
		s.added = s.queued // it is kept for the next term
	}
	switch {
	case !failed:
		s.failures, s.delays, s.uncertain = 0, 0, 0
	case ended: // a call that is cut short does not count; this one may have ended before
		s.uncertain++
	case !s.changed:
		s.failures++
	case s.changedAt.Equal(s.begun):
		s.uncertain++
	}
	delete(k.live, ctx)
}

func (k *work) running() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.live)
}

// act is the reconcile function proper.
func (k *work) act(ctx context.Context, key string) (controller.Result, error) {
	k.p.mayAct(ctx, "begins "+key)
	if err := k.nextFault(); err != nil {
		return controller.Result{}, err
	}
	cache := k.p.informer.GetStore()
	if strings.HasPrefix(key, teamPrefix) { // it has nothing to do
		return controller.Result{}, nil
	}
	if !k.writes.Seen(k.noteKey(key), cache.LastStoreSyncResourceVersion()) {
		k.p.cover("reconcile has not seen its write")
		return controller.Result{RequeueAfter: time.Second}, nil
	}
	obj, exists, _ := cache.GetByKey(key)
	k.noteSeen(key, obj, exists)
	time.Sleep(time.Duration(k.p.hangs.Load()))
	if !exists {
		return controller.Result{}, nil
	}
	cm := obj.(*corev1.ConfigMap).DeepCopy()
	if cm.Annotations["done"] == cm.Data["write"] {
		return controller.Result{}, nil
	}
	if err := k.takeTime(ctx, cm); err != nil {
		return controller.Result{}, err
	}
	k.p.mayAct(ctx, "writes "+key)
	delete(cm.Annotations, "transformed")
	cm.Annotations["done"] = cm.Data["write"]
	written, err := k.update(ctx, key, cm)
	if errors.Is(err, controller.ErrStale) {
		k.p.cover("reconcile waits for a newer copy")
	}
	if err != nil {
		return controller.Result{}, fmt.Errorf("update %s: %w", key, err)
	}
	k.p.cover("reconcile writes")
	k.mu.Lock()
	defer k.mu.Unlock()
	wrote := number(written.ResourceVersion)
	k.keyLocked(key).wrote = wrote
	if wrote%4 != 0 { // another call would hide that a key was lost
		return controller.Result{}, nil
	}
	return controller.Result{RequeueAfter: 30 * time.Second}, nil
}

// takeTime waits, so that users write between a read and a write. Some calls take half a minute and
// act all the time.
func (k *work) takeTime(ctx context.Context, cm *corev1.ConfigMap) error {
	time.Sleep(50 * time.Millisecond)
	if write := cm.Data["write"]; write[len(write)-1] == '0' {
		for range 30 {
			k.p.mayAct(ctx, "works on "+cm.Name)
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
		}
	}
	return ctx.Err()
}

// noteSeen notes that the key's writes should be in the store.
func (k *work) noteSeen(key string, obj any, exists bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := seenWrite{key: key, wrote: k.keyLocked(key).wrote}
	if exists {
		s.have = number(obj.(*corev1.ConfigMap).ResourceVersion)
	}
	k.seen = append(k.seen, s)
}

// nextFault makes a call fail if it is the turn of a fault.
func (k *work) nextFault() error {
	k.mu.Lock()
	if len(k.faults) == 0 {
		k.mu.Unlock()
		return nil
	}
	f := k.faults[0]
	k.faults = k.faults[1:]
	k.mu.Unlock()
	k.p.cover(fmt.Sprintf("met reconcile fault %d", f))
	switch f {
	case panics:
		panic(errFault)
	case isTerminal:
		return controller.TerminalError(errFault)
	}
	return errFault
}

func (k *work) heal() {
	k.mu.Lock()
	k.faults = nil
	for _, letter := range k.controller.DeadLetters().List() {
		s := k.keyLocked(letter.Key)
		s.queued, s.failures, s.uncertain = time.Now(), 0, 0
	}
	k.mu.Unlock()
	k.controller.DeadLetters().ReplayAll()
}

// checkAlways checks what the calls have noted.
func (k *work) checkAlways() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range k.seen {
		if s.have < s.wrote && !(s.have == 0 && k.p.seeing.leftAfter(s.key, s.wrote)) {
			k.p.violate(4, "%s: Writes.Seen reports %s@%d, and the store had %d", k.p.name, s.key,
				s.wrote, s.have)
		}
	}
	k.seen = nil
	for _, letter := range k.controller.DeadLetters().List() {
		k.p.cover("dead letter " + string(letter.Reason))
		s := k.keyLocked(letter.Key)
		isCounted := letter.Attempts >= s.failures && letter.Attempts <= s.failures+s.uncertain
		if !isCounted || letter.Reason == controller.MaxAttempts && letter.Attempts != maxAttempts {
			k.p.violate(5, "%s: %s is a dead letter after %d failures, and says %d", k.p.name,
				letter.Key, s.failures, letter.Attempts)
		}
	}
}

// checkQuiet checks that all work is done, if the process may work.
func (k *work) checkQuiet() {
	if k.p.elector != nil && !k.p.elector.IsLeader() {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for key, s := range k.keys {
		if s.begun.Before(s.added) {
			k.p.violate(5, "%s: %s was added and never worked on", k.p.name, key)
		}
		if late := time.Since(s.due); !s.due.IsZero() && late > time.Second {
			k.p.violate(5, "%s: the delay of %s ended %v ago", k.p.name, key, late)
		}
	}
	s := k.controller.Status()
	if s.Queued+s.Running+s.Failing+s.DeadLetters > 0 {
		k.p.violate(5, "%s is not idle: %+v", k.p.name, s)
	}
	for _, obj := range k.p.informer.GetStore().List() {
		if cm := obj.(*corev1.ConfigMap); cm.Annotations["done"] != cm.Data["write"] {
			k.p.violate(5, "%s has not handled %s@%s", k.p.name, cm.Name, cm.ResourceVersion)
		}
	}
}
