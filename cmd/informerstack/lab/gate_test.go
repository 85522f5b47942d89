// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"example.com/informerstack/observe/trace"
)

// passing sends n events through g, each in its own goroutine, and counts those that have passed.
func passing(g *gate, n int) (passed *atomic.Int64, wait func()) {
	passed = &atomic.Int64{}
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() {
			g.pass(trace.Event{Hop: trace.Store, What: "Add", Key: string(rune('a' + i))})
			passed.Add(1)
		})
	}
	return passed, running.Wait
}

// gated runs a test of a gate in a bubble.
func gated(t *testing.T, mode Mode, delay time.Duration, body func(t *testing.T, g *gate)) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		g.set(mode, delay, nil)
		body(t, g)
	})
}

func TestGate_StepLetsOneHopPass(t *testing.T) {
	gated(t, Pause, 0, func(t *testing.T, g *gate) {
		passed, wait := passing(g, 5)
		for want := range int64(5) {
			synctest.Wait()
			assert.Equal(t, want, passed.Load())
			_, _, held := g.state(maxHeld)
			assert.Len(t, held, 5-int(want), "G1")
			assert.True(t, g.step(), "G2")
		}
		wait()
		assert.False(t, g.step(), "there is no held event")
	})
}

func TestGate_StepsInOrderOfArrival(t *testing.T) {
	gated(t, Pause, 0, func(t *testing.T, g *gate) {
		order := make(chan string, 3)
		for _, key := range []string{"a", "b", "c"} {
			go func() {
				g.pass(trace.Event{Key: key})
				order <- key
			}()
			synctest.Wait()
		}
		for _, key := range []string{"a", "b", "c"} {
			_, _, held := g.state(1)
			assert.Equal(t, key, held[0].Key)
			g.step()
			assert.Equal(t, key, <-order)
		}
	})
}

func TestGate_RunReleasesAll(t *testing.T) {
	gated(t, Pause, 0, func(t *testing.T, g *gate) {
		passed, wait := passing(g, 5)
		synctest.Wait()
		assert.Zero(t, passed.Load())
		g.set(Run, 0, nil)
		wait()
		assert.False(t, g.pass(trace.Event{}), "no event waits any more")
	})
}

func TestGate_SlowDelaysEachHop(t *testing.T) {
	gated(t, Slow, time.Second, func(t *testing.T, g *gate) {
		start := time.Now()
		assert.True(t, g.pass(trace.Event{}))
		assert.Equal(t, time.Second, time.Since(start))
	})
}

// A change of the mode also concerns the events that are delayed already.
func TestGate_DelayedHopsFollowTheMode(t *testing.T) {
	gated(t, Slow, time.Hour, func(t *testing.T, g *gate) {
		passed, wait := passing(g, 2)
		synctest.Wait()
		g.set(Pause, 0, nil)
		synctest.Wait()
		_, _, held := g.state(maxHeld)
		assert.Len(t, held, 2)
		assert.Zero(t, passed.Load())
		g.set(Slow, time.Second, nil)
		wait()
	})
}

// Pieces that stop are not held, and the pause continues afterwards.
func TestGate_OpenReleasesAndRestores(t *testing.T) {
	gated(t, Pause, 0, func(t *testing.T, g *gate) {
		_, wait := passing(g, 3)
		synctest.Wait()
		restore := g.open()
		wait()
		assert.False(t, g.pass(trace.Event{}), "G3")
		restore()
		restore() // a second call is a no-op
		passed, wait := passing(g, 1)
		synctest.Wait()
		assert.Zero(t, passed.Load())
		g.open()
		wait()
	})
}

// Only the events that are selected wait. The others pass, and are not counted as steps.
func TestGate_HoldsSelectedHops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		g.set(Pause, 0, func(event trace.Event) bool { return event.Key == "a" })
		assert.False(t, g.pass(trace.Event{Key: "b"}))
		_, wait := passing(g, 1) // a
		synctest.Wait()
		_, _, held := g.state(maxHeld)
		assert.Len(t, held, 1)
		g.stepNext()
		wait()
		g.set(Pause, 0, nil)
		_, wait = passing(g, 2)
		synctest.Wait()
		_, _, held = g.state(maxHeld)
		assert.Len(t, held, 2, "a new mode selects all")
		g.open()
		wait()
	})
}

// A step that finds no held event lets the next one pass. A change of the mode forgets it.
func TestGate_StepsAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		g.stepNext() // there is nothing to step
		g.set(Pause, 0, nil)
		g.stepNext()
		assert.True(t, g.pass(trace.Event{}), "G4")
		g.stepNext()
		g.set(Pause, 0, nil)
		passed, wait := passing(g, 1)
		synctest.Wait()
		assert.Zero(t, passed.Load())
		g.stepNext()
		wait()
	})
}
