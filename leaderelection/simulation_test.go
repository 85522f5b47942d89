// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/apitest"
	"example.com/informerstack/internal/helpers/done"
	"example.com/informerstack/internal/tools/transcript"
	"example.com/informerstack/leaderelection/resourcelock"
)

// ledger receives the leaders' writes. It notes the newest token and refuses no write, so that the
// test sees an old token.
type ledger struct {
	t      *testing.T
	mu     sync.Mutex
	newest FencingToken
	by     string
	writes int
}

// write is law L-A as the receiver of the writes sees it: after a leader's write, no write of an
// earlier leader arrives.
func (l *ledger) write(by string, token FencingToken) {
	l.mu.Lock()
	defer l.mu.Unlock()
	assert.False(l.t, token.Before(l.newest), "L-A: %s writes with %s after %s did with %s", by,
		token, l.by, l.newest)
	if token == l.newest && l.writes > 0 {
		assert.Equal(l.t, l.by, by, "L-A: two write with %s", token)
	}
	l.newest, l.by = token, by
	l.writes++
}

// In a simulation clocks run at different speeds: the fastest by a twentieth.
const (
	simLease    = 60 * time.Second
	simDeadline = 40 * time.Second
	simRetry    = 8 * time.Second
)

// simulated adds a candidate with a clock that runs so much faster than the server's that it takes
// a lease of 60 s to be over after the given seconds. It rejoins, and its work writes to the ledger
// four times a second as long as it believes to lead.
func (w *world) simulated(name string, seconds int, l *ledger, random *rand.Rand) *candidate {
	var c *candidate
	faster := float64(simLease/time.Second) / float64(seconds)
	c = w.candidate(name, rejoining, func(config *LeaderElectionConfig) {
		config.LeaseDuration = time.Duration(seconds) * time.Second
		config.RenewDeadline = time.Duration(float64(simDeadline) / faster)
		config.RetryPeriod = time.Duration(float64(simRetry) / faster)
		config.ReleaseOnCancel = random.IntN(2) == 0
		config.Lock.(*shelfLock).fast(seconds)
		windsUp := time.Duration(random.IntN(20)) * time.Second
		config.Callbacks.OnStartedLeading = func(ctx context.Context) {
			for ctx.Err() == nil {
				c.clocks() // a paused process does nothing
				if token, ok := FencingTokenFromContext(ctx); ok {
					l.write(name, token)
				}
				done.Sleep(ctx, 250*time.Millisecond)
			}
			time.Sleep(windsUp)
			c.clocks()
			if token, ok := FencingTokenFromContext(ctx); ok {
				l.write(name, token)
			}
		}
		config.Callbacks.OnStoppedLeading = func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.stopped++
		}
	})
	mine := rand.New(rand.NewPCG(random.Uint64(), 0))
	c.jitter = mine.Float64
	c.step(time.Duration(random.Int64N(int64(10 * 365 * 24 * time.Hour))))
	return c
}

// fast gives the candidate a fast clock: it sees the durations of records as its clock counts them.
func (l *shelfLock) fast(seconds int) {
	const all = int(simLease / time.Second)
	scale := func(from, to int) func(*resourcelock.LeaderElectionRecord) {
		return func(record *resourcelock.LeaderElectionRecord) {
			if record.LeaseDurationSeconds == from {
				record.LeaseDurationSeconds = to
			}
		}
	}
	l.reads, l.writes = scale(all, seconds), scale(seconds, all)
}

// Five candidates, and everything that can go wrong does: processes are paused, die and come back;
// clocks run at different speeds and are set; requests fail, hang, are slow on the way there or
// back, or lose their answers.
//
//	L-A  at no moment two hold the lease and act, by their own clocks
//	L-B  once all is well, a candidate leads within a lease and a few tries
func TestSimulation(t *testing.T) {
	seeds := uint64(20)
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { simulate(t, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

func simulate(t *testing.T, random *rand.Rand) {
	w := newWorld(t, transcript.Ours)
	w.shelf.early = 1.0 / 20
	defer w.end()
	l := &ledger{t: t}
	speeds := []int{60, 60, 58, 57}
	lives := 0
	enter := func() {
		lives++
		w.simulated(fmt.Sprintf("p%d", lives), speeds[random.IntN(len(speeds))], l, random).runs()
	}
	for range 5 {
		enter()
	}
	living := slices.Clone(w.candidates)
	for range 100 {
		w.stepBy(time.Duration(random.IntN(15000)) * time.Millisecond)
		i := random.IntN(len(living))
		if leader := slices.Index(living, w.leader()); leader >= 0 && random.IntN(2) == 0 {
			i = leader // trouble at the top is worth more
		}
		c := living[i]
		switch random.IntN(12) {
		case 0, 1:
			c.pause()
		case 2, 3, 4:
			c.resume()
		case 5:
			c.step(time.Duration(random.IntN(200)-80) * time.Second)
		case 6, 7, 8, 9:
			c.api(randomWeather(random))
		case 10:
			c.pause() // for ever
			enter()
			living[i] = w.candidates[len(w.candidates)-1]
		case 11:
			if c.resumed == nil { // it ends in order, and is started again
				c.stop()
				enter()
				living[i] = w.candidates[len(w.candidates)-1]
			}
		}
	}

	for _, c := range living {
		c.resume()
		c.api("ok")
	}
	w.stepBy(simDeadline) // the last request of the bad times is over
	for limit := time.Now().Add(simLease + 3*22*simRetry/10); w.leader() == nil; {
		w.stepBy(time.Second)
		require.True(t, time.Now().Before(limit), "L-B: no candidate leads")
	}
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	assert.Greater(t, l.writes, 100)
}

func randomWeather(random *rand.Rand) string {
	op := []string{"", "", "", "update:", "get:"}[random.IntN(5)]
	kind := []string{"ok", "ok", "fails", "hangs", "loses", "there=", "back="}[random.IntN(7)]
	if kind[len(kind)-1] == '=' {
		kind += fmt.Sprintf("%ds", random.IntN(50))
	}
	return op + kind
}

// stepBy lets time pass, and looks for two leaders all the time.
func (w *world) stepBy(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		w.after(min(700*time.Millisecond, time.Until(end)))
	}
}

// leader returns the candidate that leads, or nil.
func (w *world) leader() *candidate {
	for _, c := range w.candidates {
		if c.resumed == nil && c.IsLeader() {
			return c
		}
	}
	return nil
}

// The same over an API server that fails at random: 429, 500, 503, cut and delayed answers.
func TestSimulation_OverAnAPIServer(t *testing.T) {
	for _, kind := range []string{
		resourcelock.LeasesResourceLock, resourcelock.EndpointsLeasesResourceLock,
	} {
		for seed := range uint64(3) {
			t.Run(fmt.Sprintf("%s/seed=%d", kind, seed), func(t *testing.T) {
				onServer(t, func(p *program) { p.simulate(kind, seed) })
			})
		}
	}
}

func (p *program) simulate(kind string, seed uint64) {
	l := &ledger{t: p.t}
	ctx, cancel := context.WithCancel(quiet())
	var running sync.WaitGroup
	var electors []*LeaderElector
	for i := range 3 {
		name := fmt.Sprintf("p%d", i)
		config := idle()
		config.Lock, config.Rejoin, config.ReleaseOnCancel = p.lock(kind, name), true, i == 0
		config.Callbacks.OnStartedLeading = func(ctx context.Context) {
			for done.Sleep(ctx, 250*time.Millisecond) {
				if token, ok := FencingTokenFromContext(ctx); ok {
					l.write(name, token)
				}
			}
		}
		elector, err := NewLeaderElector(config)
		require.NoError(p.t, err)
		electors = append(electors, elector)
		running.Go(func() { elector.Run(ctx) })
	}
	leaders := func() (n int) {
		for _, e := range electors {
			if e.IsLeader() {
				n++
			}
		}
		return n
	}
	heal := p.s.Faults().Random(seed, apitest.Rates{
		ServerError: .3, Unavailable: .2, Drop: .2, TooManyRequests: .1, MaxDelay: 8 * time.Second,
	})
	for range 600 {
		time.Sleep(time.Second)
		synctest.Wait()
		assert.LessOrEqual(p.t, leaders(), 1, "L-A")
	}
	heal()
	time.Sleep(usual().RenewDeadline + usual().LeaseDuration + 3*22*usual().RetryPeriod/10)
	assert.Equal(p.t, 1, leaders(), "L-B")
	cancel()
	running.Wait()
}
