// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"example.com/informerstack/controller"
)

// office is a process that runs a controller under a lease. Its reconciles hold their key until
// they are released or, unless it is stubborn, until their context is done.
type office struct {
	*candidate
	ctrl     *controller.Controller[string]
	waits    bool // its Run returns after all reconciles, even with AbandonWork
	stubborn bool
	// if set, what a reconcile does instead of holding its key
	does controller.ReconcileFunc[string]

	mu      sync.Mutex
	running map[string]reconcile // by key
	started []string             // keys, in order
}

// reconcile is one call that has not returned.
type reconcile struct {
	ctx     context.Context
	release chan struct{}
}

// office adds a process with a controller that takes the elector's Lead.
func (w *world) office(
	name string, opts controller.Options[string], change ...func(*LeaderElectionConfig),
) *office {
	o := w.newOffice(name, change...)
	o.waits = true
	opts.Lead = func(ctx context.Context, work func(context.Context)) error {
		return o.Lead(ctx, o.counted(work))
	}
	o.ctrl = controller.New(name, o.reconcile, opts)
	o.run = func(ctx context.Context) { _ = o.ctrl.Run(ctx) }
	return o
}

// plainOffice adds a process that runs its controller in OnStartedLeading.
func (w *world) plainOffice(
	name string, opts controller.Options[string], change ...func(*LeaderElectionConfig),
) *office {
	var o *office
	o = w.newOffice(name, append(change, func(c *LeaderElectionConfig) {
		c.Callbacks.OnStartedLeading = func(ctx context.Context) { _ = o.ctrl.Run(ctx) }
	})...)
	o.ctrl = controller.New(name, o.reconcile, opts)
	return o
}

func (w *world) newOffice(name string, change ...func(*LeaderElectionConfig)) *office {
	o := &office{running: map[string]reconcile{}}
	o.candidate = w.candidate(name, change...)
	return o
}

func (o *office) reconcile(ctx context.Context, key string) (controller.Result, error) {
	o.clocks() // a paused process does nothing
	r := reconcile{ctx: ctx, release: make(chan struct{})}
	o.mu.Lock()
	o.running[key] = r
	o.started = append(o.started, key)
	o.mu.Unlock()
	o.w.mayAct(o, "begins "+key)
	o.w.narrate.Event("worker", "%s reconciles %s", o.name, key)
	defer func() {
		o.w.narrate.Event("worker", "%s is done with %s", o.name, key)
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.running, key)
	}()
	if o.does != nil {
		return o.does(ctx, key)
	}
	ended := ctx.Done()
	if o.stubborn {
		ended = nil
	}
	select {
	case <-r.release:
	case <-o.release: // the world ends
	case <-ended:
		return controller.Result{}, ctx.Err()
	}
	return controller.Result{}, nil
}

// mayAct checks that no other process may lead while o does something: the record names o, and is
// younger than a lease.
func (w *world) mayAct(o *office, does string) {
	w.shelf.mu.Lock()
	defer w.shelf.mu.Unlock()
	holder, age := w.shelf.record.HolderIdentity, time.Since(w.shelf.written)
	if holder != o.name || age >= usual().LeaseDuration {
		w.t.Errorf("%v: %s %s under a lease of %q, written %v ago",
			time.Since(w.start), o.name, does, holder, age)
	}
}

// free lets the reconcile of key return, and waits for what follows without asking any term.
func (o *office) free(key string) {
	o.mu.Lock()
	close(o.running[key].release)
	o.mu.Unlock()
	synctest.Wait()
}

// live returns the keys of the reconciles with a live context.
func (o *office) live() []string {
	var keys []string
	for key, r := range o.calls() {
		if r.ctx.Err() == nil {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// calls returns the reconciles that have not returned.
func (o *office) calls() map[string]reconcile {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.running)
}

// keys returns the keys of the reconciles that were started.
func (o *office) keys() []string {
	synctest.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.started)
}

func (w *world) enqueue(o *office, keys ...string) {
	for _, key := range keys {
		w.narrate.Event("handler", "Enqueue %s to %s", key, o.name)
		o.ctrl.Enqueue(key)
	}
	w.settle()
}

// busy starts a stubborn office, by w.office or w.plainOffice, which reconciles keys.
// After 5 s b is a candidate, and a has a lease that was renewed at 4 s.
func (w *world) busy(
	start func(string, controller.Options[string], ...func(*LeaderElectionConfig)) *office,
	opts controller.Options[string], keys ...string,
) *office {
	a := start("a", opts)
	a.stubborn = true
	a.runs()
	w.enqueue(a, keys...)
	w.after(500 * time.Millisecond)
	w.candidate("b").runs()
	w.after(4500 * time.Millisecond)
	return a
}

// The term is lost, and OnStoppedLeading stops the whole process, as most programs do. The grace
// period is for a stop within the term: the reconciles end with the term all the same, whichever of
// the two the controller sees first.
func TestStory_ALostTermHasNoGraceThoughTheProcessStops(t *testing.T) {
	for range 20 {
		story(t, func(w *world) {
			a := w.office("a", controller.Options[string]{GracePeriod: time.Hour})
			a.stubborn = true
			stopped := a.config.Callbacks.OnStoppedLeading
			a.config.Callbacks.OnStoppedLeading = func() {
				stopped()
				a.stop()
			}
			a.runs()
			w.enqueue(a, "x")
			assert.Equal(t, []string{"x"}, a.live())
			a.api("fails")
			w.after(12*time.Second - 1)
			assert.Equal(t, []string{"x"}, a.live())
			w.after(1)
			w.saw("12s a stopped")
			assert.Empty(t, a.live())
		})
	}
}

// The process is asked to stop, and while its reconciles finish within their grace period it loses
// the lease.
func TestStory_ALeaseLostDuringTheGracePeriodEndsIt(t *testing.T) {
	story(t, func(w *world) {
		a := w.busy(w.office, controller.Options[string]{GracePeriod: time.Hour}, "x")
		a.stop()
		a.api("fails")
		w.after(11 * time.Second)
		assert.Empty(t, a.live(), "the last renewal was sent at 4 s")
		w.after(time.Minute)
		w.holder("b")
		assert.Empty(t, a.live())
	})
}

// The same while it drains its queue: no key is begun any more.
func TestStory_ALeaseLostWhileDrainingEndsTheDrain(t *testing.T) {
	story(t, func(w *world) {
		a := w.busy(w.office, controller.Options[string]{GracePeriod: time.Hour, Drain: true},
			"x", "y", "z")
		a.stop()
		a.free("x")
		assert.Equal(t, []string{"x", "y"}, a.keys())
		a.api("fails")
		w.after(time.Minute)
		w.holder("b")
		a.free("y")
		assert.Equal(t, []string{"x", "y"}, a.keys())
		assert.True(t, a.returned())
	})
}

// Without Options.Lead: the controller runs in OnStartedLeading, under the context that it is
// given.
func TestStory_AControllerInOnStartedLeadingEndsWithTheTerm(t *testing.T) {
	story(t, func(w *world) {
		a := w.busy(w.plainOffice, controller.Options[string]{GracePeriod: time.Hour, Drain: true},
			"x", "y", "z")
		a.stop()
		a.free("x")
		w.after(time.Second)
		assert.Equal(t, []string{"y"}, a.live(), "within the term the grace period is granted")
		a.api("fails") // the last renewal is the one of 6 s
		w.after(12 * time.Second)
		assert.Empty(t, a.live())
		w.after(time.Minute)
		w.holder("b")
		a.free("y")
		assert.Equal(t, []string{"x", "y"}, a.keys())
		w.saw("18s a stopped", "21.5s b started")
	})
}

// The machine was suspended for longer than the term lasts, and no timer has fired since. The
// worker that becomes free does not begin the next key, and the context of the others is done.
func TestStory_NoKeyIsBegunAfterASuspend(t *testing.T) {
	for name, opts := range map[string]controller.Options[string]{
		"leading":        {Workers: 2},
		"with grace":     {Workers: 2, GracePeriod: time.Hour},
		"while draining": {Workers: 2, GracePeriod: time.Hour, Drain: true},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, func(w *world) {
				a := w.office("a", opts)
				a.stubborn = true
				a.runs()
				w.enqueue(a, "x", "y", "z")
				if opts.Drain {
					a.stop()
				}
				a.sleeps(12 * time.Second)
				a.free("x")
				assert.NotContains(t, a.keys(), "z")
				assert.Empty(t, a.live())
			})
		})
	}
}

// A reconcile that is cut short by a lost term is no attempt: its key is no dead letter, and the
// next term reconciles it.
func TestStory_ALostTermIsNoAttempt(t *testing.T) {
	story(t, func(w *world) {
		opts := controller.Options[string]{MaxAttempts: 1, GracePeriod: time.Hour}
		a := w.office("a", opts, rejoining)
		a.runs()
		w.enqueue(a, "x")
		a.api("fails")
		w.after(12 * time.Second)
		assert.Empty(t, a.calls())
		assert.Zero(t, a.ctrl.DeadLetters().Len())
		a.api("ok")
		w.after(5 * time.Second)
		assert.Equal(t, []string{"x", "x"}, a.keys())
		assert.Equal(t, []string{"x"}, a.live())
		w.take()
	})
}
