// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"example.com/informerstack/controller"
)

// office is a process that runs a controller under a lease. Its reconciles hold their key until they are released or, unless
// they are stubborn, until their context is done.
type office struct {
	*candidate
	ctrl *controller.Controller[string]

	mu       sync.Mutex
	stubborn bool
	running  map[string]reconcile // by key
	started  []string             // keys, in order
}

// reconcile is one call that has not returned.
type reconcile struct {
	ctx     context.Context
	release chan struct{}
}

// office adds a process whose controller takes the elector's Lead.
func (w *world) office(name string, opts controller.Options[string], change ...func(*LeaderElectionConfig)) *office {
	o := w.newOffice(name, change...)
	opts.Lead = func(ctx context.Context, work func(context.Context)) error { return o.Lead(ctx, o.counted(work)) }
	o.ctrl = controller.New(name, o.reconcile, opts)
	o.run = func(ctx context.Context) { _ = o.ctrl.Run(ctx) }
	return o
}

// plainOffice adds a process that runs its controller in OnStartedLeading.
func (w *world) plainOffice(name string, opts controller.Options[string], change ...func(*LeaderElectionConfig)) *office {
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
	o.wall() // a paused process does nothing
	r := reconcile{ctx: ctx, release: make(chan struct{})}
	o.mu.Lock()
	o.running[key] = r
	o.started = append(o.started, key)
	stubborn := o.stubborn
	o.mu.Unlock()
	o.w.reconcileStarts(o, key)
	defer func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.running, key)
	}()
	if stubborn {
		<-r.release
		return controller.Result{}, nil
	}
	select {
	case <-r.release:
		return controller.Result{}, nil
	case <-ctx.Done():
		return controller.Result{}, ctx.Err()
	}
}

// reconcileStarts checks decision 13 for a reconcile that starts: the lease is this process's by the record, and not so old
// that another may take it.
func (w *world) reconcileStarts(o *office, key string) {
	w.shelf.mu.Lock()
	defer w.shelf.mu.Unlock()
	holder, age := w.shelf.record.HolderIdentity, time.Since(w.shelf.written)
	if holder != o.name || age >= time.Duration(w.shelf.record.LeaseDurationSeconds)*time.Second {
		w.t.Errorf("%v: %s starts to reconcile %s under a lease of %q, written %v ago", time.Since(w.start), o.name, key, holder, age)
	}
}

// release lets the reconcile of key return.
func (o *office) release(key string) {
	o.mu.Lock()
	close(o.running[key].release)
	o.mu.Unlock()
	o.w.settled()
}

// stubbornly makes the coming reconciles ignore their context.
func (o *office) stubbornly() *office {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stubborn = true
	return o
}

// live returns the keys of the reconciles whose context is not done.
func (o *office) live() []string {
	o.mu.Lock()
	running := maps.Clone(o.running)
	o.mu.Unlock()
	var keys []string
	for key, r := range running {
		if r.ctx.Err() == nil {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// keys returns the keys whose reconcile was started.
func (o *office) keys() []string {
	synctest.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.started)
}

// close lets everything that still runs return.
func (o *office) close() {
	o.mu.Lock()
	o.stubborn = false
	for _, r := range o.running {
		select {
		case <-r.release:
		default:
			close(r.release)
		}
	}
	o.mu.Unlock()
}

func (w *world) enqueue(o *office, keys ...string) {
	for _, key := range keys {
		o.ctrl.Enqueue(key)
	}
	w.settled()
}

// The term is lost, and OnStoppedLeading stops the whole process, as most programs do. The grace period is for a stop within
// the term: the reconciles end with the term all the same, whichever of the two the controller sees first.
func TestStory_ALostTermHasNoGraceThoughTheProcessStops(t *testing.T) {
	for i := range 20 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			story(t, func(w *world) {
				var a *office
				a = w.office("a", controller.Options[string]{GracePeriod: time.Hour}, func(c *LeaderElectionConfig) {
					stopped := c.Callbacks.OnStoppedLeading
					c.Callbacks.OnStoppedLeading = func() {
						stopped()
						a.stop()
					}
				})
				a.runs()
				w.enqueue(a.stubbornly(), "x")
				defer a.close()
				assert.Equal(t, []string{"x"}, a.live())
				a.api("fails")
				w.after(12*time.Second - 1)
				assert.Equal(t, []string{"x"}, a.live())
				w.after(1)
				w.saw("12s a stopped")
				assert.Empty(t, a.live())
			})
		})
	}
}

// The process is asked to stop, and while its reconciles finish within their grace period it loses the lease.
func TestStory_ALeaseLostDuringTheGracePeriodEndsIt(t *testing.T) {
	story(t, func(w *world) {
		a := w.office("a", controller.Options[string]{GracePeriod: time.Hour}).stubbornly()
		a.runs()
		w.enqueue(a, "x")
		defer a.close()
		w.after(500 * time.Millisecond)
		b := w.candidate("b").runs()
		w.after(4500 * time.Millisecond)
		a.stop()
		a.api("fails")
		w.after(11 * time.Second)
		assert.Empty(t, a.live(), "the last renewal was sent at 4 s")
		w.after(time.Minute)
		assert.True(t, b.IsLeader())
		assert.Empty(t, a.live())
	})
}

// The same while it drains its queue: no key is begun any more.
func TestStory_ALeaseLostWhileDrainingEndsTheDrain(t *testing.T) {
	story(t, func(w *world) {
		a := w.office("a", controller.Options[string]{GracePeriod: time.Hour, Drain: true}).stubbornly()
		a.runs()
		w.enqueue(a, "x", "y", "z")
		defer a.close()
		w.after(500 * time.Millisecond)
		w.candidate("b").runs()
		w.after(4500 * time.Millisecond)
		a.stop()
		a.release("x")
		assert.Equal(t, []string{"x", "y"}, a.keys())
		a.api("fails")
		w.after(time.Minute)
		w.holder("b")
		a.release("y")
		assert.Equal(t, []string{"x", "y"}, a.keys())
		assert.True(t, a.returned())
	})
}

// Without Options.Lead: the controller runs in OnStartedLeading, under the context that it is given.
func TestStory_AControllerInOnStartedLeadingEndsWithTheTerm(t *testing.T) {
	story(t, func(w *world) {
		a := w.plainOffice("a", controller.Options[string]{GracePeriod: time.Hour, Drain: true}).stubbornly()
		a.runs()
		w.enqueue(a, "x", "y", "z")
		defer a.close()
		w.after(500 * time.Millisecond)
		w.candidate("b").runs()
		w.after(4500 * time.Millisecond)
		a.stop()
		a.release("x")
		w.after(time.Second)
		assert.Equal(t, []string{"y"}, a.live(), "within the term the grace period is granted")
		a.api("fails") // the last renewal is the one of 6 s
		w.after(12 * time.Second)
		assert.Empty(t, a.live())
		w.after(time.Minute)
		w.holder("b")
		a.release("y")
		assert.Equal(t, []string{"x", "y"}, a.keys())
		w.saw("18s a stopped", "22.5s b started")
	})
}
