// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/informerstack/workqueue"
)

// Defaults of Options.
const (
	DefaultWorkers            = 1
	DefaultCacheSyncTimeout   = 2 * time.Minute
	DefaultDeadLetterCapacity = 1000
)

// Options configures a controller. The zero value of each field is a sound choice; Run returns an
// error for a negative number.
type Options[K comparable] struct {
	// Workers is how many keys may be reconciled at the same time. 0 means DefaultWorkers.
	Workers int

	// WaitFor lists the caches that reconcile reads. No worker starts before all are synced.
	WaitFor []Synced
	// CacheSyncTimeout is how long Run waits for WaitFor. 0 means DefaultCacheSyncTimeout.
	CacheSyncTimeout time.Duration

	// Lead, if set, decides when the workers run. It is usually the method Lead of a
	// leaderelection.LeaderElector. Run calls it once the caches are synced, so that those of a new
	// leader are warm. Lead calls work whenever this process leads, with a context that must end
	// with the term or before; work returns when no reconcile runs any more. Keys are kept between
	// terms. When Lead returns, the right to act is over: Run waits until no reconcile runs any
	// more, and returns Lead's error.
	//
	// An elector's context says how long the term lasts after the process was asked to stop. For a
	// Lead of another kind, the right to act ends with the context that it gives to work: see
	// GracePeriod.
	Lead func(ctx context.Context, work func(ctx context.Context)) error

	// ReconcileTimeout ends the context of one call of reconcile. It cannot end the call itself: a
	// reconcile that ignores its context keeps its worker. 0 means no limit.
	ReconcileTimeout time.Duration
	// Panic decides what happens after a reconcile panics, or calls runtime.Goexit. The default
	// is controller-runtime's: one bad object must not stop the controller. (A panic of an event
	// handler ends the process unless informer.HandlerOptions.SkipPanics is set, as in client-go.)
	Panic PanicPolicy

	// RateLimiter paces the retries of failed keys. A workqueue.ErrorRateLimiter decides by the
	// error. Nil means workqueue.DefaultTypedControllerRateLimiter.
	RateLimiter workqueue.TypedRateLimiter[K]
	// NewQueue makes the queue, once, in New: for example a queue with metrics, or with the option
	// that a change supersedes a pending retry (AddSupersedesDelayed). Nil means
	// workqueue.NewTypedRateLimitingQueue with a zero Config.
	//
	// Any other queue should be a workqueue.ExtendedInterface. Otherwise Lead is refused, the rate
	// limiter does not see the errors, and Snapshots do not contain the queued keys.
	NewQueue func(
		name string, limiter workqueue.TypedRateLimiter[K],
	) workqueue.TypedRateLimitingInterface[K]

	// LowPriority, if negative, is the priority of keys for which nothing has changed: those of the
	// initial list, and of resyncs. Changes have priority 0. A key that returns with RequeueAfter
	// or after a failure keeps the priority with which the worker got it; with LowPriorityRetries,
	// a failed key has LowPriority at most. The highest of a key's priorities counts.
	//
	// It needs a NewQueue of a queue with priorities: a workqueue.PriorityInterface, such as a
	// workqueue.TypedRateLimitingQueue with a workqueue.Fair as Config.Queue. Other queues ignore
	// it. controller-runtime's value is -100.
	LowPriority        int
	LowPriorityRetries bool

	// MaxAttempts is how many calls in a row, with no change of the key in between, may fail before
	// the key becomes a dead letter. 0 means that failures are retried for ever, and that changes
	// are not noted: see DeadLetters.
	//
	// A reconcile that writes to its own object each time it fails changes the object each time,
	// and the count starts again: let the handler pass only changes of the generation.
	MaxAttempts int
	// DeadLetterCapacity bounds the number of dead letters; the oldest are evicted. 0 means
	// DefaultDeadLetterCapacity.
	DeadLetterCapacity int
	// Exists, if set, is called after a failure. If it returns false, the key is forgotten instead
	// of retried. Leave it nil if reconcile has to clean up after deleted objects. It runs on the
	// workers, with no lock held.
	Exists func(key K) bool

	// GracePeriod is how long the context of a running reconcile outlives the context of Run. 0
	// means that both end together. Run waits for running reconciles in any case.
	//
	// Under a lease the period is part of the term: it is over as soon as the lease is lost. That
	// holds for Options.Lead, and for a Run with the context of leaderelection's OnStartedLeading.
	// There is no grace period if Lead's function makes a context without a term, or if the elector
	// abandons OnStartedLeading.
	GracePeriod time.Duration
	// Drain makes the workers also handle, within the GracePeriod, the keys that are queued when
	// the context of Run ends. Delayed keys are not waited for.
	Drain bool

	// Metrics receives each reconcile's outcome.
	Metrics Metrics
}

// Metrics receives the events and numbers of a controller. A nil field is not measured. The
// functions are called by the workers, at the same time, with no lock held, and should return at
// once.
type Metrics struct {
	// Workers is called with the number of workers when they start.
	Workers func(count int)
	// Begin is called before each reconcile.
	Begin func()
	// End is called after each reconcile, when the controller has acted on its result.
	End func(report Report)
}

// Report describes one call of reconcile that has ended.
type Report struct {
	Outcome    Outcome
	Took       time.Duration
	Terminal   bool   // the error is a TerminalError
	Panicked   bool   // reconcile panicked or called runtime.Goexit
	TimedOut   bool   // Options.ReconcileTimeout passed, even if no error was returned
	DeadLetter Reason // the reason if the key became a dead letter, otherwise ""
	Evicted    bool   // the oldest dead letter was dropped for it
}

// PanicPolicy decides what happens after a reconcile panics.
type PanicPolicy int

const (
	// RetryOnPanic makes the panic an error like any other: a *PanicError.
	RetryOnPanic PanicPolicy = iota
	// DeadLetterOnPanic gives the key up at once, since the same input tends to panic again.
	DeadLetterOnPanic
	// CrashOnPanic lets the panic end the process. A Goexit is an error, as under RetryOnPanic.
	CrashOnPanic
)

// check returns the mistakes in the options.
func (o *Options[K]) check() []error {
	var wrong []error
	for _, number := range []struct {
		name  string
		value int64
	}{
		{"Workers", int64(o.Workers)},
		{"CacheSyncTimeout", int64(o.CacheSyncTimeout)},
		{"ReconcileTimeout", int64(o.ReconcileTimeout)},
		{"MaxAttempts", int64(o.MaxAttempts)},
		{"DeadLetterCapacity", int64(o.DeadLetterCapacity)},
		{"GracePeriod", int64(o.GracePeriod)},
	} {
		if number.value < 0 {
			wrong = append(wrong, fmt.Errorf("%s is negative", number.name))
		}
	}
	for i, cache := range o.WaitFor {
		if cache == nil {
			wrong = append(wrong, fmt.Errorf("WaitFor[%d] is nil", i))
		}
	}
	if o.LowPriority > 0 {
		wrong = append(wrong, errors.New("option LowPriority is positive"))
	}
	if o.LowPriorityRetries && o.LowPriority == 0 {
		wrong = append(wrong, errors.New("option LowPriorityRetries needs a LowPriority"))
	}
	if o.Panic < RetryOnPanic || o.Panic > CrashOnPanic {
		wrong = append(wrong, fmt.Errorf("there is no PanicPolicy %d", o.Panic))
	}
	if o.Drain && o.GracePeriod == 0 {
		wrong = append(wrong, errors.New("option Drain needs a GracePeriod"))
	}
	return wrong
}

func (o *Options[K]) setDefaults() {
	o.Workers = cmp.Or(o.Workers, DefaultWorkers)
	o.CacheSyncTimeout = cmp.Or(o.CacheSyncTimeout, DefaultCacheSyncTimeout)
	o.DeadLetterCapacity = cmp.Or(o.DeadLetterCapacity, DefaultDeadLetterCapacity)
	if o.RateLimiter == nil {
		o.RateLimiter = workqueue.DefaultTypedControllerRateLimiter[K]()
	}
	if o.NewQueue == nil {
		o.NewQueue = defaultQueue[K]
	}
}

func defaultQueue[K comparable](
	_ string, limiter workqueue.TypedRateLimiter[K],
) workqueue.TypedRateLimitingInterface[K] {
	return workqueue.NewTypedRateLimitingQueue(limiter, workqueue.Config[K]{})
}
