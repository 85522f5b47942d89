// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"example.com/informerstack/internal/helpers/termcontext"
)

// office is an election with one candidate: a term lasts from elect to depose. Its context carries
// the term, as that of leaderelection does, unless it is plain.
type office struct {
	w       *world        // for its log
	elected chan struct{} // made in the bubble that uses it
	plain   bool
	depose  context.CancelFunc
	ended   chan struct{} // closed when the work of the term has returned
	fails   error         // what lead returns
}

// lead is Options.Lead.
func (o *office) lead(ctx context.Context, work func(context.Context)) error {
	for {
		select {
		case <-ctx.Done():
			return o.fails
		case <-o.elected:
		}
		term, endTerm := context.WithCancel(context.WithoutCancel(ctx))
		led, stop := context.WithCancel(ctx)
		o.depose = sync.OnceFunc(func() {
			o.w.narrate.Event("worker", "the term ends")
			endTerm()
			stop()
		})
		o.ended = make(chan struct{})
		if !o.plain {
			led = termcontext.With(led, term)
		}
		work(led)
		close(o.ended)
		o.depose()
		if o.fails != nil {
			return o.fails
		}
	}
}

func (o *office) elect() {
	o.w.narrate.Event("worker", "elected")
	o.elected <- struct{}{}
	o.w.settle()
}

// ledStory is a story of a controller with a Lead function.
func ledStory(t *testing.T, opts Options[string], play func(w *world, o *office)) {
	var o office
	opts.Lead = o.lead
	story(t, opts, func(w *world) {
		o.w, o.elected = w, make(chan struct{})
		play(w, &o)
	})
}

// A replica that does not lead fills its caches and its queue. When elected, it handles the queue.
func TestStory_NewLeaderWorksOffWhatCameBefore(t *testing.T) {
	ledStory(t, Options[string]{}, func(w *world, o *office) {
		w.run()
		w.change("a", "b", "a")
		w.after(time.Hour)
		w.workerSaw()
		assert.Equal(t, PhaseStandby, w.c.Snapshot().Phase)
		o.elect()
		w.workerSaw("a: ok", "b: ok")
		assert.Equal(t, PhaseRunning, w.c.Snapshot().Phase)
	})
}

// A lost term ends what runs, whatever the grace period, before the workers are gone; the key is
// the next term's, and is no failure of this one.
func TestStory_LostTermLeavesItsKeysToTheNext(t *testing.T) {
	opts := Options[string]{GracePeriod: time.Hour, MaxAttempts: 1}
	ledStory(t, opts, func(w *world, o *office) {
		w.answers("a", "hold")
		w.run()
		o.elect()
		w.change("a", "b", "c")
		o.depose()
		w.settle()
		<-o.ended
		w.workerSaw("a: hold")
		assert.Equal(t, PhaseStandby, w.c.Snapshot().Phase)
		w.change("b", "d")
		w.workerSaw()
		w.deadLetters()
		o.elect()
		saw, _ := w.takeSaw()
		assert.ElementsMatch(t, []string{"a: ok", "b: ok", "c: ok", "d: ok"}, saw)
	})
}

// The work returns when no reconcile runs any more: until then, no other replica may begin.
func TestStory_TermEndsAfterItsWork(t *testing.T) {
	ledStory(t, Options[string]{}, func(w *world, o *office) {
		w.answers("a", "ignore")
		w.run()
		o.elect()
		w.change("a")
		o.depose()
		w.after(time.Hour)
		select {
		case <-o.ended:
			t.Error("the term has ended while a reconcile runs")
		default:
		}
		w.release("a")
		<-o.ended
	})
}

// A Lead function of another kind does not say how long it leads after it was stopped: there is no
// grace then. The term of an election around Run is not that of such a function, either.
func TestStory_ALeaderOfAnUnknownTermHasNoGrace(t *testing.T) {
	for _, around := range []bool{false, true} {
		opts := Options[string]{GracePeriod: time.Minute, Drain: true}
		ledStory(t, opts, func(w *world, o *office) {
			o.plain = true
			if around {
				w.ctx = termcontext.With(w.ctx, w.ctx)
			}
			w.answers("a", "hold")
			w.run()
			o.elect()
			w.change("a", "b")
			w.stop()
			w.workerSaw("a: hold")
			assert.Equal(t, w.start, time.Now())
		})
	}
}

// A Run that is the work of a term ends with the term, even if it looks at its context before that
// is done: of a context made from that of the work, each end is a step of its own.
func TestRun_EndsWithTheTermBeforeItsContext(t *testing.T) {
	for name, keys := range map[string][]string{"idle": nil, "busy": {"a", "b"}} {
		t.Run(name, func(t *testing.T) {
			story(t, Options[string]{GracePeriod: time.Minute}, func(w *world) {
				term, endTerm := context.WithCancel(w.ctx)
				w.ctx = termcontext.With(w.ctx, term)
				w.answers("a", "hold")
				w.change(keys...)
				w.run()
				endTerm()
				<-w.ended
				assert.Equal(t, w.start, time.Now())
				saw, _ := w.takeSaw()
				assert.Len(t, saw, min(len(keys), 1))
				assert.Equal(t, PhaseStopped, w.c.Snapshot().Phase)
			})
		})
	}
}

// An election that is given up ends the controller, which says why.
func TestLead_ErrorEndsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := errors.New("lost")
		lead := func(context.Context, func(context.Context)) error { return lost }
		c := New("c", noop, Options[string]{Lead: lead})
		err := c.Run(quiet(t.Context()))
		assert.ErrorIs(t, err, lost)
		assert.EqualError(t, err, `run controller "c": lead: lost`)
	})
}

// plainQueue is a queue that can wait for nothing but a shutdown.
type plainQueue struct{ stringQueue }

func TestLead_NeedsAQueueThatCanBeLeft(t *testing.T) {
	c := New("c", noop, Options[string]{
		Lead: new(office).lead,
		NewQueue: func(name string, limiter stringLimiter) stringQueue {
			return plainQueue{defaultQueue(name, limiter)}
		},
	})
	err := c.Run(quiet(t.Context()))
	assert.ErrorContains(t, err, "option Lead needs a queue with GetWithContext")
}

// Lead functions that return while the work runs, as the electors of client-go do, or that begin it
// when they have returned: C5.
func TestLead_AbandonedWork(t *testing.T) {
	lost := errors.New("lost")
	for _, late := range []bool{false, true} {
		for _, fails := range []error{nil, lost} {
			t.Run(fmt.Sprintf("late=%v %v", late, fails), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					run, stop := context.WithCancel(quiet(t.Context()))
					began, ended := 0, 0
					reconcile := func(context.Context, string) (Result, error) {
						began++
						time.Sleep(time.Minute) // it ignores its context
						ended++
						return Result{}, nil
					}
					lead := func(ctx context.Context, work func(context.Context)) error {
						led := context.WithoutCancel(ctx) // it never ends by itself
						go func() {
							if late {
								time.Sleep(time.Hour)
							}
							work(led)
						}()
						time.Sleep(time.Second)
						if fails == nil {
							stop()
						}
						return fails
					}
					c := New("c", reconcile, Options[string]{Lead: lead, GracePeriod: time.Hour})
					c.Enqueue("a")
					c.Enqueue("b")
					assert.ErrorIs(t, c.Run(run), fails)
					assert.Equal(t, began, ended, "C5")
					assert.Equal(t, PhaseStopped, c.Snapshot().Phase)
					time.Sleep(2 * time.Hour)
					assert.Equal(t, PhaseStopped, c.Snapshot().Phase)
					assert.Equal(t, began, ended)
					assert.Equal(t, late, began == 0)
					stop()
				})
			})
		}
	}
}

// A call that a lost term cuts short does not count, but the failures before it do.
func TestLead_ALostTermKeepsTheAttempts(t *testing.T) {
	ledStory(t, Options[string]{MaxAttempts: 4}, func(w *world, o *office) {
		w.answers("a", "error", "error", "hold", "error", "error")
		w.run()
		o.elect()
		w.change("a")
		w.after(time.Minute)
		o.depose()
		w.settle()
		o.elect()
		w.after(time.Hour)
		w.workerSaw("a: error", "a: error", "a: hold", "a: error", "a: error")
		w.deadLetters("a MaxAttempts 4")
	})
}
