// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"example.com/informerstack/controller"
	"example.com/informerstack/internal/helpers/done"
	"example.com/informerstack/internal/tools/transcript"
	"example.com/informerstack/workqueue"
)

// Two processes run a controller under one lease. They are disconnected, paused, suspended, and
// stopped; each time one has ended, another takes its place. The lease's server checks at every
// moment that a process which acts may act:
//
//	L-C  a reconcile begins, asks its context and is not stopped, or waits with a context that is
//	     not done, only while the lease's record names its process and is younger than a lease
//	L-D  once all is well, keys are reconciled again within a lease and a few tries
//	L-E  when a controller's Run with an elector's Lead has returned, no reconcile runs
func TestSimulation_Controllers(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &controllerSimulation{
					world:  newWorld(t, transcript.Ours),
					random: rand.New(rand.NewPCG(seed, 2)),
				}
				s.run()
				s.world.end()
				time.Sleep(time.Hour) // abandoned work returns
			})
		})
	}
}

type controllerSimulation struct {
	*world
	random  *rand.Rand
	lives   int
	offices [2]*office
	begun   atomic.Int64 // reconciles
}

func (s *controllerSimulation) run() {
	for range 150 {
		for i, o := range s.offices {
			if o != nil && (o.paused() || !o.returned()) {
				continue
			}
			if o != nil && o.waits {
				assert.Empty(s.t, o.calls(), "L-E")
			}
			s.offices[i] = s.enter()
		}
		s.passTime(time.Duration(s.random.IntN(6000)) * time.Millisecond)
		s.trouble(s.offices[s.random.IntN(2)])
	}

	for i, o := range s.offices {
		o.wake()
		o.api("ok")
		o.stop()
		o.gone()
		s.offices[i] = s.enter()
	}
	before := s.begun.Load()
	s.passTime(usual().LeaseDuration + 3*22*usual().RetryPeriod/10)
	assert.Greater(s.t, s.begun.Load(), before, "L-D")
}

// trouble makes something happen to a process.
func (s *controllerSimulation) trouble(o *office) {
	switch s.random.IntN(12) {
	case 0:
		o.pause()
	case 1:
		o.suspend()
	case 2, 3, 4:
		o.wake()
	case 5:
		o.step(time.Duration(s.random.IntN(200)-80) * time.Second)
	case 6, 7, 8:
		o.api(randomWeather(s.random))
	case 9:
		o.api("ok")
	case 10, 11:
		if !o.paused() {
			o.stop()
		}
	}
	s.check()
}

// enter starts a process with options of its own.
func (s *controllerSimulation) enter() *office {
	s.lives++
	random := rand.New(rand.NewPCG(s.random.Uint64(), 3))
	opts := controller.Options[string]{
		Workers:     3,
		GracePeriod: []time.Duration{0, 5 * time.Second, time.Hour, time.Hour}[random.IntN(4)],
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second,
			time.Minute),
	}
	opts.Drain = opts.GracePeriod > 0 && random.IntN(2) == 0
	plain, exits := random.IntN(2) == 0, random.IntN(2) == 0
	var o *office
	change := func(c *LeaderElectionConfig) {
		c.ReleaseOnCancel = random.IntN(2) == 0
		c.AbandonWork = random.IntN(4) == 0
		c.Rejoin = !plain && !c.AbandonWork && random.IntN(2) == 0 // a controller runs only once
		stopped := c.Callbacks.OnStoppedLeading
		c.Callbacks.OnStoppedLeading = func() {
			stopped()
			if exits {
				o.stop()
			}
		}
	}
	name := fmt.Sprintf("p%d", s.lives)
	if plain {
		o = s.plainOffice(name, opts, change)
	} else {
		o = s.office(name, opts, change)
	}
	o.does = func(ctx context.Context, key string) (controller.Result, error) {
		return s.reconcile(o, ctx, key)
	}
	for i := range 10 {
		o.ctrl.Enqueue(fmt.Sprintf("key%d", i))
	}
	o.runs()
	return o
}

// reconcile acts for a while as long as its context lets it. Some calls ignore that they should
// end, but do not act then.
func (s *controllerSimulation) reconcile(
	o *office, ctx context.Context, key string,
) (controller.Result, error) {
	s.begun.Add(1)
	stubborn := rand.IntN(4) == 0
	for range rand.IntN(20) {
		done.Sleep(context.Background(), time.Duration(rand.IntN(1500))*time.Millisecond)
		o.clocks() // a paused process does nothing
		if ctx.Err() == nil {
			s.mayAct(o, "acts on "+key)
			_, ok := FencingTokenFromContext(ctx)
			assert.True(s.t, ok || ctx.Err() != nil, "the term may end at this moment")
		} else if !stubborn {
			break
		}
	}
	switch {
	case ctx.Err() != nil:
		return controller.Result{}, ctx.Err()
	case rand.IntN(4) == 0:
		return controller.Result{}, errors.New("boom")
	}
	return controller.Result{RequeueAfter: time.Second}, nil
}

// passTime lets d pass, and checks the processes all the time.
func (s *controllerSimulation) passTime(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(min(300*time.Millisecond, time.Until(end)))
		s.check()
	}
}

// check looks at the contexts without asking them: they must be done by themselves.
func (s *controllerSimulation) check() {
	synctest.Wait()
	for _, o := range s.offices {
		if o == nil || o.paused() {
			continue
		}
		for key, r := range o.calls() {
			select {
			case <-r.ctx.Done():
			default:
				s.mayAct(o, "has a live context for "+key)
			}
		}
	}
}
