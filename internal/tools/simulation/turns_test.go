// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"sync"
	"time"

	"example.com/informerstack/reflector"
)

// The limits of a Limiter. A phase is seen checkEvery late, or earlier.
const (
	turnLimit     = 1
	turnPatience  = time.Minute
	countPatience = 5 * time.Second
)

// turn is what the phases of a process with the trait inTurn have shown.
type turn struct {
	mu    sync.Mutex
	asked time.Time // when it was first seen to wait; zero if it had its turn at once
	began time.Time // when it was first seen to fetch; zero if it does not
}

// ends notes the end of a phase.
func (t *turn) ends() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asked, t.began = time.Time{}, time.Time{}
}

// see notes a phase.
func (t *turn) see(now time.Time, phase reflector.Phase) (waits, fetches bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch phase {
	case reflector.AwaitingTurn:
		if t.asked.IsZero() {
			t.asked = now
		}
		return true, false
	case reflector.Streaming, reflector.Listing:
		if t.began.IsZero() {
			t.began = now
		}
		return false, true
	}
	return false, false
}

// checkTurns checks the laws of the Limiter that the processes with the trait inTurn share: those
// that fetch everything have turns, see starts.Limiter.
func (w *world) checkTurns() {
	now := time.Now()
	var waiting, fetching []*process
	for _, p := range slices.Concat(w.killed, w.processes) {
		if p.impl == clientGo || !p.has(inTurn) || isClosed(p.ended) {
			continue
		}
		switch waits, fetches := p.turn.see(now, p.informer.Health().Reflector.Phase); {
		case waits:
			w.cover("process waits for a turn")
			waiting = append(waiting, p)
		case fetches:
			fetching = append(fetching, p)
		}
	}
	inTime := 0 // turns that are not over for certain
	held := 0   // turns that are not over perhaps
	for _, p := range fetching {
		switch lasts := now.Sub(p.turn.began); {
		case lasts < turnPatience-checkEvery:
			inTime++
			held++
		case lasts <= turnPatience+checkEvery:
			held++
		}
		if p.turn.began.Equal(now) {
			p.checkPassed(waiting, now)
		}
	}
	if inTime > turnLimit { // T1
		w.violate(12, "%d processes have a turn at once", inTime)
	}
	for _, p := range waiting {
		waits := now.Sub(p.turn.asked)
		if waits > 2*countPatience+checkEvery && held < turnLimit { // T2, T4
			w.violate(12, "%s waits for a turn for %v, and %d processes have one", p.name, waits,
				held)
		}
	}
}

// checkPassed checks T3 for a process that has got a turn: no other that asked earlier has waited
// for long.
func (p *process) checkPassed(waiting []*process, now time.Time) {
	asked := p.turn.asked
	if asked.IsZero() {
		asked = now
	}
	for _, other := range waiting {
		waits := now.Sub(other.turn.asked)
		if waits > turnPatience+checkEvery && asked.Sub(other.turn.asked) > checkEvery {
			p.violate(12, "%s has got a turn, and %s has waited for %v", p.name, other.name, waits)
		}
	}
}
