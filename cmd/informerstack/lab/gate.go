// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"slices"
	"sync"
	"time"

	"example.com/informerstack/observe/trace"
)

// Mode is how fast events pass.
type Mode string

// The modes.
const (
	Run   Mode = "run"   // at once
	Slow  Mode = "slow"  // each after a delay
	Pause Mode = "pause" // one per step
)

// gate is the time control. Every event passes it in the goroutine of the piece that reports it, so
// a held event holds its piece, and no piece knows about it.
//
//	G1  held is in order of arrival, and empty unless mode is Pause and bypass is 0
//	G2  a step lets exactly the first held event pass
//	G3  while bypass is positive, every event passes at once: pieces that stop are never held
//	G4  steps is positive only if held is empty: it lets the events pass that arrive next
//	G5  a stop that has begun and not ended is stopped, and then mode is Pause
type gate struct {
	mu      sync.Mutex
	mode    Mode
	delay   time.Duration
	holds   func(trace.Event) bool // false lets the event pass; nil: all are held
	steps   int
	held    []*ticket
	bypass  int
	changed chan struct{} // closed and replaced when mode, delay or bypass changes
	armed   *stop         // waits for its event; nil: no event stops the gate
	stopped *stop
}

// ticket is a held event.
type ticket struct {
	event  trace.Event
	passed chan struct{}
}

func newGate() *gate { return &gate{mode: Run, changed: make(chan struct{})} }

// pass returns when the event may pass, and reports whether it had to wait. A stop at the event
// begins after the delay of slow motion, so that the event before it can be seen, too.
func (g *gate) pass(event trace.Event) (waited bool) {
	delayed := false
	for {
		g.mu.Lock()
		if heldBefore(event) && (delayed || g.mode != Slow) {
			g.springLocked(event)
		}
		if g.bypass > 0 || g.mode == Run || g.holds != nil && !g.holds(event) ||
			g.mode == Slow && delayed {
			g.mu.Unlock()
			return waited
		}
		waited = true
		if g.mode == Pause && g.steps > 0 {
			g.steps--
			g.mu.Unlock()
			return waited
		}
		if g.mode == Pause {
			t := &ticket{event, make(chan struct{})}
			g.held = append(g.held, t)
			g.mu.Unlock()
			<-t.passed
			return waited
		}
		delay, changed := g.delay, g.changed
		g.mu.Unlock()
		timer := time.NewTimer(delay)
		select {
		case <-timer.C:
			delayed = true
		case <-changed:
			timer.Stop()
		}
	}
}

// set changes the mode. delay is the delay of Slow. holds selects the events that are delayed or
// held, and is called under the gate's mutex; nil selects all.
func (g *gate) set(mode Mode, delay time.Duration, holds func(trace.Event) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mode, g.delay, g.holds, g.steps = mode, delay, holds, 0
	if mode != Pause {
		g.endLocked()
	}
	g.changedLocked()
}

// open lets every event pass until the returned function is called.
func (g *gate) open() (restore func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.bypass++
	g.changedLocked()
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.bypass--
	})
}

// changedLocked wakes the delayed events, and releases the held ones unless they must stay.
func (g *gate) changedLocked() {
	close(g.changed)
	g.changed = make(chan struct{})
	if g.mode == Pause && g.bypass == 0 {
		return
	}
	for _, t := range g.held {
		close(t.passed)
	}
	g.held = nil
}

// step lets the first held event pass. It reports whether there was one.
func (g *gate) step() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.stepLocked()
}

func (g *gate) stepLocked() bool {
	if len(g.held) == 0 {
		return false
	}
	g.endLocked()
	close(g.held[0].passed)
	g.held = slices.Delete(g.held, 0, 1)
	return true
}

// stepNext lets the first held event pass. If no event is held, the next one that arrives passes.
func (g *gate) stepNext() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mode == Pause && !g.stepLocked() {
		g.steps++
	}
}

// state returns the mode, its delay, and the first limit held events.
func (g *gate) state(limit int) (mode Mode, delay time.Duration, held []trace.Event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, t := range g.held[:min(limit, len(g.held))] {
		held = append(held, t.event)
	}
	return g.mode, g.delay, held
}
