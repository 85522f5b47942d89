// SPDX-License-Identifier: Apache-2.0

package controller

import (
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

// Options adjusts a controller. The zero value of each field is a sound choice; a negative number is an error that Run
// returns.
type Options[K comparable] struct {
	// Workers is how many keys may be reconciled at the same time. 0 means DefaultWorkers.
	Workers int

	// WaitFor names the caches that reconcile reads. No worker starts before all are synced.
	WaitFor []Synced
	// CacheSyncTimeout is how long Run waits for WaitFor. 0 means DefaultCacheSyncTimeout.
	CacheSyncTimeout time.Duration

	// Lead, if set, decides when the workers run, usually by leader election: leaderelection.Lead returns one. It is called
	// once the caches are synced, so that those of a new leader are warm, and calls work whenever this process leads. work's
	// context must end with the term; work returns when no reconcile runs any more. Keys are kept while nobody works. Run
	// ends when Lead returns, and returns its error.
	Lead func(ctx context.Context, work func(ctx context.Context)) error

	// ReconcileTimeout ends the context of one call of reconcile. It cannot end the call itself: a reconcile that ignores its
	// context keeps its worker. 0 means no limit.
	ReconcileTimeout time.Duration
	// Panic says what becomes of a reconcile that panics.
	Panic PanicPolicy

	// RateLimiter paces the repetition of failed keys. A workqueue.ErrorRateLimiter decides by the error. Nil means
	// workqueue.DefaultTypedControllerRateLimiter.
	RateLimiter workqueue.TypedRateLimiter[K]
	// NewQueue makes the queue, once, in New: one with metrics, say, or one in which a change supersedes a retry that waits
	// (AddSupersedesDelayed). If the queue has the method AddFailed(key, err), failed keys go there, and to AddRateLimited
	// otherwise. Nil means workqueue.NewTypedRateLimitingQueueWithConfig with the name alone.
	NewQueue func(name string, limiter workqueue.TypedRateLimiter[K]) workqueue.TypedRateLimitingInterface[K]

	// MaxAttempts is how many calls in a row, with no change of the key in between, may fail before the key becomes a dead
	// letter. 0 means that failures are repeated for ever.
	//
	// A reconcile that writes to its own object each time it fails changes it each time: let the handler pass only changes of
	// the generation, or the count never gets anywhere.
	MaxAttempts int
	// DeadLetterCapacity bounds how many dead letters are kept; the oldest make room. 0 means DefaultDeadLetterCapacity.
	DeadLetterCapacity int
	// Exists, if set, is asked after a failure. If it denies, the key is forgotten rather than tried again. Leave it nil when
	// reconcile still has to clean up behind things that are gone. It runs on the workers, with no lock held.
	Exists func(key K) bool

	// GracePeriod is how long the context of a running reconcile outlives the context of Run. 0 means that both end together.
	// Run waits for what runs in any case. The end of a leader's term grants no grace.
	GracePeriod time.Duration
	// Drain lets the workers also handle, within the GracePeriod, what is still queued when the context of Run ends. Delayed
	// keys are not waited for.
	Drain bool

	// Metrics hears of each reconcile. Nil costs nothing.
	Metrics Metrics
}

// PanicPolicy says what becomes of a reconcile that panics.
type PanicPolicy int

const (
	// RetryPanic makes it an error like any other: a *PanicError.
	RetryPanic PanicPolicy = iota
	// BuryPanic makes the key a dead letter at once, since the same input tends to panic again.
	BuryPanic
	// CrashOnPanic lets the panic end the process.
	CrashOnPanic
)

// check lists what is wrong.
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
	if o.Panic < RetryPanic || o.Panic > CrashOnPanic {
		wrong = append(wrong, fmt.Errorf("there is no PanicPolicy %d", o.Panic))
	}
	if o.Drain && o.GracePeriod == 0 {
		wrong = append(wrong, errors.New("option Drain needs a GracePeriod"))
	}
	return wrong
}

func (o *Options[K]) setDefaults() {
	if o.Workers == 0 {
		o.Workers = DefaultWorkers
	}
	if o.CacheSyncTimeout == 0 {
		o.CacheSyncTimeout = DefaultCacheSyncTimeout
	}
	if o.RateLimiter == nil {
		o.RateLimiter = workqueue.DefaultTypedControllerRateLimiter[K]()
	}
	if o.NewQueue == nil {
		o.NewQueue = defaultQueue[K]
	}
	if o.DeadLetterCapacity == 0 {
		o.DeadLetterCapacity = DefaultDeadLetterCapacity
	}
}

func defaultQueue[K comparable](name string, limiter workqueue.TypedRateLimiter[K]) workqueue.TypedRateLimitingInterface[K] {
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[K]{Name: name})
}
