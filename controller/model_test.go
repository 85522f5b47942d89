// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// modelKey is all that there is to know about a key.
type modelKey struct {
	version  int // counts the changes
	seen     int // the version that the last call of reconcile began with
	attempts int // failures in a row, with a maximum since the last change
	dead     Reason
	inside   bool // a call is under way
	changed  bool // and the key changed since it began
}

// model says what a controller must do. Its reconcile answers at random, and takes a random time.
type model struct {
	t           *testing.T
	rng         *rand.Rand
	maxAttempts int

	mu      sync.Mutex
	healthy bool // reconcile succeeds from now on
	keys    map[string]*modelKey
	calls   uint64
}

func (m *model) key(key string) *modelKey {
	if m.keys[key] == nil {
		m.keys[key] = &modelKey{}
	}
	return m.keys[key]
}

func (m *model) change(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.key(key)
	k.version++
	if m.maxAttempts > 0 {
		k.attempts, k.dead, k.changed = 0, "", k.inside
	}
}

func (m *model) forget(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.key(key).attempts, m.key(key).dead = 0, ""
}

// takeLetter is what Replay and Discard begin with.
func (m *model) takeLetter(key string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.key(key)
	dead := k.dead != ""
	k.dead = ""
	return dead
}

func (m *model) reconcile(_ context.Context, key string) (Result, error) {
	result, took, err := m.begin(key)
	time.Sleep(took)
	return result, m.end(key, err)
}

func (m *model) begin(key string) (result Result, took time.Duration, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.key(key)
	assert.False(m.t, k.inside, "C1: %s is reconciled twice at once", key)
	if m.maxAttempts > 0 {
		assert.Empty(m.t, k.dead, "C3: %s is a dead letter", key)
	}
	k.inside, k.changed, k.seen, k.dead = true, false, k.version, ""
	m.calls++
	if m.rng.IntN(3) == 0 {
		took = time.Duration(m.rng.IntN(5000)) * time.Millisecond
	}
	if m.healthy {
		return Result{}, took, nil
	}
	switch m.rng.IntN(10) {
	case 0:
		return Result{}, took, TerminalError(errBoom)
	case 1:
		return Result{RequeueAfter: time.Duration(m.rng.IntN(10_000)) * time.Millisecond}, took, nil
	case 2, 3, 4, 5, 6, 7:
		return Result{}, took, errBoom
	}
	return Result{}, took, nil
}

func (m *model) end(key string, err error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.key(key)
	k.inside = false
	switch {
	case err == nil:
		k.attempts = 0
		return nil
	case k.changed:
		return err
	}
	k.attempts++
	switch {
	case errors.Is(err, TerminalError(nil)):
		k.dead = Terminal
	case k.attempts == m.maxAttempts:
		k.dead = MaxAttempts
	}
	if k.dead != "" {
		k.attempts = 0
	}
	return err
}

// compare expects of c what the model says. Nothing may be happening at the moment.
func (m *model) compare(c *Controller[string]) {
	m.t.Helper()
	checkLaws(m.t, c)
	m.mu.Lock()
	defer m.mu.Unlock()
	dead, failing, running := map[string]Reason{}, map[string]int{}, map[string]bool{}
	for key, k := range m.keys {
		if k.dead != "" {
			dead[key] = k.dead
		}
		if k.attempts > 0 {
			failing[key] = k.attempts
		}
		if k.inside {
			running[key] = true
		}
	}
	snapshot := c.Snapshot()
	gotDead, gotFailing, gotRunning := map[string]Reason{}, map[string]int{}, map[string]bool{}
	for _, letter := range c.DeadLetters().List() {
		gotDead[letter.Key] = letter.Reason
	}
	for _, f := range snapshot.Failing {
		gotFailing[f.Key] = f.Attempts
	}
	for _, r := range snapshot.Running {
		gotRunning[r.Key] = true
	}
	require.Equal(m.t, dead, gotDead)
	require.Equal(m.t, failing, gotFailing)
	require.Equal(m.t, running, gotRunning)
	finished := uint64(len(running))
	for _, count := range snapshot.Outcomes {
		finished += count
	}
	require.Equal(m.t, m.calls, finished, "each call has one outcome")
}

// Random changes, resyncs, replays and time, against the model; over our queue and over
// client-go's.
func TestModel(t *testing.T) {
	for _, impl := range []string{"ours", "client-go"} {
		for seed := range uint64(40) {
			t.Run(fmt.Sprintf("queue=%s/seed=%d", impl, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { runModel(t, impl, seed) })
			})
		}
	}
}

func runModel(t *testing.T, impl string, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0))
	m := &model{
		t:           t,
		rng:         rand.New(rand.NewPCG(seed, 1)),
		keys:        map[string]*modelKey{},
		maxAttempts: rng.IntN(4),
	}
	opts := Options[string]{Workers: 1 + rng.IntN(4), MaxAttempts: m.maxAttempts}
	if impl != "ours" {
		opts.NewQueue = clientGoQueue
	}
	w := newWorld(t, opts)
	w.c.reconcile = m.reconcile
	w.run()
	for range 200 {
		key := string(rune('a' + rng.IntN(6)))
		step(t, w, m, key, rng)
		m.compare(w.c)
	}

	m.mu.Lock()
	m.healthy = true
	m.mu.Unlock()
	w.after(24 * time.Hour)
	for key, k := range m.keys {
		assert.Equal(t, k.version, k.seen, "C2: %s was reconciled after its last change", key)
		if k.dead == "" {
			w.limiterCounts(key, 0) // C4
		}
	}
	m.compare(w.c)
	w.stop()
}

func step(t *testing.T, w *world, m *model, key string, rng *rand.Rand) {
	letters := w.c.DeadLetters()
	switch rng.IntN(12) {
	case 0, 1, 2, 3:
		m.change(key)
		w.c.Enqueue(key)
	case 4:
		w.c.Resync(key)
	case 5:
		m.change(key)
		w.c.Queue().AddAfter(key, time.Duration(rng.IntN(3000))*time.Millisecond)
	case 6:
		m.forget(key)
		w.c.Forget(key)
	case 7:
		require.Equal(t, m.takeLetter(key), letters.Replay(key))
	case 8:
		require.Equal(t, m.takeLetter(key), letters.Discard(key))
	default:
		time.Sleep(time.Duration(rng.IntN(4000)) * time.Millisecond)
	}
	w.settle()
}

// All operations run at once. C1 and C2 hold, and at the end the controller holds no key.
func TestConcurrentUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &model{
			t:           t,
			rng:         rand.New(rand.NewPCG(1, 1)),
			keys:        map[string]*modelKey{},
			maxAttempts: 2,
		}
		c := New("concurrent", m.concurrentReconcile, Options[string]{
			Workers: 4, MaxAttempts: m.maxAttempts, DeadLetterCapacity: 3,
			RateLimiter: exponential(time.Nanosecond, time.Microsecond),
		})
		ctx, cancel := context.WithCancel(quiet(t.Context()))
		var all sync.WaitGroup
		all.Go(func() { assert.NoError(t, c.Run(ctx)) })
		var users sync.WaitGroup
		for user := range uint64(6) {
			users.Go(func() { m.useAtRandom(c, rand.New(rand.NewPCG(user, 2))) })
		}
		users.Wait()
		time.Sleep(time.Second)
		synctest.Wait()
		for key, k := range m.keys {
			assert.Equal(t, k.version, k.seen, "C2: %s was reconciled after its last change", key)
		}
		checkLaws(t, c)
		cancel()
		all.Wait()
	})
}

// concurrentReconcile fails at random. It keeps no count of attempts, for others change the key at
// any moment.
func (m *model) concurrentReconcile(_ context.Context, key string) (Result, error) {
	m.mu.Lock()
	k := m.key(key)
	assert.False(m.t, k.inside, "C1: %s is reconciled twice at once", key)
	k.inside, k.seen = true, k.version
	answer := m.rng.IntN(4)
	m.mu.Unlock()
	runtime.Gosched()

	m.mu.Lock()
	defer m.mu.Unlock()
	k.inside = false
	return Result{}, []error{nil, errBoom, errBoom, TerminalError(errBoom)}[answer]
}

func (m *model) useAtRandom(c *Controller[string], rng *rand.Rand) {
	letters := c.DeadLetters()
	for range 500 {
		key := string(rune('a' + rng.IntN(8)))
		switch rng.IntN(10) {
		case 0:
			c.Resync(key)
		case 1:
			c.Forget(key)
		case 2:
			letters.Replay(key)
		case 3:
			letters.ReplayAll()
		case 4:
			letters.Discard(key)
		case 5:
			c.Snapshot()
		default:
			m.mu.Lock()
			m.key(key).version++
			m.mu.Unlock()
			c.Enqueue(key)
		}
	}
}
