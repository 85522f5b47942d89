// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/informerstack/workqueue"
)

func noop(context.Context, string) (Result, error) { return Result{}, nil }

func TestMisuseIsReportedByRun(t *testing.T) {
	check := func(want, name string, reconcile ReconcileFunc[string], opts Options[string]) {
		t.Run(want, func(t *testing.T) {
			c := New(name, reconcile, opts)
			c.Enqueue("a") // harmless
			assert.ErrorContains(t, c.Run(t.Context()), want)
			assert.True(t, c.Queue().ShuttingDown())
			assert.Equal(t, PhaseStopped, c.Snapshot().Phase)
		})
	}
	check("the name is empty", "", noop, Options[string]{})
	check("reconcile is nil", "c", nil, Options[string]{})
	check("the name is empty\nreconcile is nil", "", nil, Options[string]{})
	for want, opts := range map[string]Options[string]{
		"Workers is negative":              {Workers: -1},
		"CacheSyncTimeout is negative":     {CacheSyncTimeout: -1},
		"ReconcileTimeout is negative":     {ReconcileTimeout: -1},
		"MaxAttempts is negative":          {MaxAttempts: -1},
		"DeadLetterCapacity is negative":   {DeadLetterCapacity: -1},
		"GracePeriod is negative":          {GracePeriod: -1},
		"option Drain needs a GracePeriod": {Drain: true},
		"option LowPriority is positive":   {LowPriority: 1},
		"LowPriorityRetries needs a":       {LowPriorityRetries: true},
		"WaitFor[1] is nil":                {WaitFor: []Synced{newCache("a"), nil}},
		"there is no PanicPolicy 7":        {Panic: 7},
		"NewQueue returned nil":            {NewQueue: noQueue},
	} {
		check(want, "c", noop, opts)
	}
}

func noQueue(string, stringLimiter) stringQueue { return nil }

func TestDefaults(t *testing.T) {
	c := New("c", noop, Options[string]{})
	defer c.Queue().ShutDown()
	assert.Equal(t, 1, c.opts.Workers)
	assert.Equal(t, 2*time.Minute, c.opts.CacheSyncTimeout)
	assert.Equal(t, 1000, c.opts.DeadLetterCapacity)
	assert.NotNil(t, c.opts.RateLimiter)
	assert.Equal(t, "c", c.Name())
	assert.Equal(t, Snapshot[string]{
		Status: Status{Name: "c", Phase: PhaseNew}, Outcomes: map[Outcome]uint64{},
	}, c.Snapshot())
}

// The zero value of a key type is a key like any other.
func TestZeroKey(t *testing.T) {
	story(t, Options[string]{}, func(w *world) {
		w.run()
		w.answers("", "error")
		w.change("")
		w.after(time.Second)
		w.workerSaw(": error", ": ok")
	})
}

// A rate limiter may decide by the error: a conflict is tried again after one second, throttling
// after thirty.
func TestStory_LimiterDecidesByError(t *testing.T) {
	limiter := workqueue.NewTypedErrorTypeRateLimiter[string](workqueue.ErrorDelays{})
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "a", errBoom)
	story(t, Options[string]{RateLimiter: limiter}, func(w *world) {
		w.answers("a", "throttled", "conflict")
		w.errs["throttled"] = apierrors.NewTooManyRequestsError("slow down")
		w.errs["conflict"] = fmt.Errorf("update: %w", conflict)
		w.run()
		w.change("a")
		w.after(30*time.Second - 1)
		w.workerSaw("a: throttled")
		w.after(1)
		w.workerSaw("a: conflict")
		w.after(time.Second - 1)
		w.workerSaw()
		w.after(1)
		w.workerSaw("a: ok")
	})
}
