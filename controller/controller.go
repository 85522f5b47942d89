// SPDX-License-Identifier: Apache-2.0

// Package controller turns keys into calls of a reconcile function, and acts on the result of each
// call: the key is done, retried with backoff, called again after a delay, or given up.
//
//	informer -> handler -> workqueue -> [controller] -> writes to the API server
//
// To use it, make a [Controller] with [New], add its Handler to an informer, name the informer in
// Options.WaitFor, and call Run. Reconcile gets a key, reads the current object, and returns a
// [Result] and an error. A key with an error is tried again later. After a [TerminalError], or the
// last of Options.MaxAttempts, it is a dead letter.
//
// Read result.go (the results of reconcile), controller.go, shift.go (when a call may begin, and
// its context), enqueue.go, priority.go and worker.go (the path of one key), keytracker.go
// (failures and running calls), deadletters.go, writes.go, copies.go and noted.go, snapshot.go;
// then go test -v ./controller. Goroutines: Run starts Options.Workers of them and returns when the
// last has ended. Locking: the key tracker's mutex; no callback runs under it.
//
// Every controller writes this loop around util/workqueue. Results have the meanings of
// controller-runtime.
//
// Source: util/workqueue/rate_limiting_queue.go TypedRateLimitingInterface
package controller

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"example.com/informerstack/workqueue"
)

// ErrStarted is the error of a second Run.
var ErrStarted = errors.New("controller already started")

// Controller calls a reconcile function for keys of objects that changed.
//
// A key says that something changed, not what: reconcile reads the current state. So a change is
// never too old to be handled, and one call may handle many changes of a key.
//
//	C1  No two calls of reconcile have the same key at the same time.
//	C2  After the last Enqueue of a key, reconcile is called at least once more for it, unless
//	    Run's context ends first.
//	C3  A failed call is retried, at the pace of the rate limiter, until a call succeeds, or
//	    Options.Exists returns false, or the key is given up and becomes a dead letter. With
//	    Options.MaxAttempts, a dead letter is not reconciled.
//	C4  The rate limiter holds no entry for a key that succeeded or is gone, nor for a dead letter
//	    that is not Terminal.
//	C5  When Run returns, everything that it started has ended.
//	C6  Under a lease, no call begins after the term is over, and the context of each call is done
//	    before another process may lead: see shift.
//
// All methods are safe for concurrent use.
type Controller[K comparable] struct {
	name      string
	reconcile ReconcileFunc[K]
	opts      Options[K]
	misuse    error // the mistakes in the arguments of New; Run returns it

	queue    workqueue.TypedRateLimitingInterface[K]
	extended workqueue.ExtendedInterface[K] // the same, or nil with fewer methods
	keys     *keyTracker[K]
	// priorities is the queue with Options.LowPriority, or nil
	priorities workqueue.PriorityInterface[K]
	phase      atomic.Value // a Phase

	logger    atomic.Pointer[klog.Logger] // of Run's context, for handlers
	keyErrors atomic.Uint64               // failures of the key function
}

// Phase is the state of a controller. It only moves forward, except that a leader that has lost its
// term is on standby again.
type Phase string

// The phases, in order.
const (
	PhaseNew      Phase = "new"                // Run was not called; keys can already be enqueued
	PhaseWaiting  Phase = "waiting for caches" // Run waits for Options.WaitFor
	PhaseStandby  Phase = "standing by"        // the caches are synced; Options.Lead waits
	PhaseRunning  Phase = "running"            // workers take keys
	PhaseStopping Phase = "stopping"           // Run's context has ended; reconciles may still run
	PhaseStopped  Phase = "stopped"            // Run has returned; keys are ignored
)

// New returns a controller that calls reconcile. The name appears in logs, errors and metrics and
// must not be empty.
//
// New never fails: Run reports mistakes in the arguments. A controller that will not be Run is
// released with Queue().ShutDown().
func New[K comparable](name string, reconcile ReconcileFunc[K], opts Options[K]) *Controller[K] {
	misuse := opts.check()
	if name == "" {
		misuse = append(misuse, errors.New("the name is empty"))
	}
	if reconcile == nil {
		misuse = append(misuse, errors.New("reconcile is nil"))
	}
	opts.setDefaults()
	c := &Controller[K]{name: name, reconcile: reconcile, opts: opts}
	logger := klog.Background().WithValues("controller", name)
	c.logger.Store(&logger)
	c.phase.Store(PhaseNew)
	c.keys = newKeyTracker[K](opts.MaxAttempts, opts.DeadLetterCapacity)
	if c.queue = opts.NewQueue(name, opts.RateLimiter); c.queue == nil {
		misuse = append(misuse, errors.New("NewQueue returned nil"))
		c.queue = defaultQueue(name, opts.RateLimiter)
	}
	c.extended, _ = c.queue.(workqueue.ExtendedInterface[K])
	if opts.LowPriority != 0 {
		c.priorities, _ = c.queue.(workqueue.PriorityInterface[K])
	}
	if opts.Lead != nil && c.extended == nil {
		misuse = append(misuse, errors.New(
			"option Lead needs a queue with GetWithContext: a workqueue.ExtendedInterface"))
	}
	if err := errors.Join(misuse...); err != nil {
		c.misuse = fmt.Errorf("run controller %q: %w", name, err)
	}
	return c
}

// Name returns the name given to New.
func (c *Controller[K]) Name() string { return c.name }

// DeadLetters returns the keys that were given up.
func (c *Controller[K]) DeadLetters() *DeadLetters[K] {
	return &DeadLetters[K]{keys: c.keys, queue: c.queue}
}

// Run waits for the caches, then reconciles until ctx ends and the running reconciles have
// returned. It blocks.
//
// Run returns nil after a stop, even if it was still waiting for the caches. It returns a
// *CacheSyncError if a cache did not sync in time, ErrStarted if it was called before, or an error
// that lists every mistake in the arguments of New.
func (c *Controller[K]) Run(ctx context.Context) error {
	if !c.phase.CompareAndSwap(PhaseNew, PhaseWaiting) {
		return fmt.Errorf("run controller %q: %w", c.name, ErrStarted)
	}
	defer c.phase.Store(PhaseStopped)
	defer c.endQueue()
	if c.misuse != nil {
		return c.misuse
	}
	logger := klog.FromContext(ctx).WithValues("controller", c.name)
	c.logger.Store(&logger)
	ctx = klog.NewContext(ctx, logger)

	logger.V(1).Info("Waiting for caches", "caches", len(c.opts.WaitFor))
	if err := c.waitForCaches(ctx); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return nil
	}
	if c.opts.Lead == nil {
		c.work(ctx, ctx)
		return nil
	}
	c.phase.Store(PhaseStandby)
	if err := c.lead(ctx); err != nil {
		return fmt.Errorf("run controller %q: lead: %w", c.name, err)
	}
	return nil
}

// lead runs one shift at a time, each when Options.Lead asks for it. When Options.Lead has
// returned, the shift that it may have left behind ends, and no other begins: C5.
func (c *Controller[K]) lead(ctx context.Context) error {
	leading, stop := context.WithCancel(ctx)
	turn := make(chan struct{}, 1) // full while there is a shift, and after the last
	defer func() {
		stop()
		turn <- struct{}{}
	}()
	return c.opts.Lead(leading, func(led context.Context) {
		select {
		case turn <- struct{}{}:
			defer func() { <-turn }()
		case <-leading.Done():
		}
		if leading.Err() != nil {
			return
		}
		led, end := context.WithCancel(led)
		defer end()
		defer context.AfterFunc(leading, end)()
		c.work(ctx, led)
	})
}

// work runs the workers until led ends: the context of Run, or of a term under Options.Lead.
//
// If Run was stopped, the queue still serves what it holds before it reports its shutdown, so that
// workers can drain it. If only the term has ended, the queue stays open and keeps its keys for the
// next term.
func (c *Controller[K]) work(run, led context.Context) {
	s := c.newShift(run, led)
	defer s.endGrace()
	if c.opts.Metrics.Workers != nil {
		c.opts.Metrics.Workers(c.opts.Workers)
	}

	logger := klog.FromContext(led)
	logger.Info("Starting workers", "workers", c.opts.Workers)
	c.phase.Store(PhaseRunning)
	for range c.opts.Workers {
		s.workers.Go(func() { c.runWorker(s) })
	}
	select {
	case <-led.Done():
	case <-s.term.Done():
	}
	if c.opts.Lead == nil || run.Err() != nil {
		c.phase.Store(PhaseStopping)
		c.queue.ShutDown()
		timer := time.AfterFunc(c.opts.GracePeriod, s.endGrace)
		defer timer.Stop()
	} else {
		c.phase.Store(PhaseStandby)
		s.endGrace()
	}
	s.workers.Wait()
	logger.Info("Workers ended", "deadLetters", c.DeadLetters().Len())
}

// endQueue shuts the queue down and drops its keys: no worker will take them, and a caller may wait
// in ShutDownWithDrain.
func (c *Controller[K]) endQueue() {
	c.queue.ShutDown()
	for key, shutdown := c.queue.Get(); !shutdown; key, shutdown = c.queue.Get() {
		c.queue.Done(key)
	}
}
