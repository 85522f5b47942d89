// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/informerstack/informer"
	"example.com/informerstack/reflector"
)

// The longest silence of a reflector between two requests.
const (
	longestStream = 130 * time.Second // twice WatchListDeadline, and some seconds
	longestWatch  = 635 * time.Second // twice MinWatchTimeout, WatchdogSlack, and some seconds
)

// duties are what a process must do in time, and what it has done.
type duties struct {
	mu         sync.Mutex
	progressAt time.Time   // the last transition or transform
	lostAt     time.Time   // since then the store is known to be old; zero if it is not
	listedAt   time.Time   // the last request for a list
	replaced   []time.Time // calls of the queue's Replace
	resynced   []time.Time // calls of the queue's Resync
	asOf       time.Time   // the last CurrentAsOf of the reflector, zero if it was
}

// progress notes that the reflector has received something.
func (d *duties) progress() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.progressAt = time.Now()
}

// note notes a transition of the reflector.
func (d *duties) note(t reflector.Transition) {
	d.progress()
	refused := t.From == reflector.Opening || t.From == reflector.Watching
	isTooOld := apierrors.IsResourceExpired(t.Err) || apierrors.IsGone(t.Err)
	if lost := new(reflector.ApplyError); refused && isTooOld || errors.As(t.Err, &lost) {
		d.lose()
	}
}

// lose notes that the store is known to be old from now on.
func (d *duties) lose() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lostAt = time.Now()
}

// lists notes a request for a list.
func (d *duties) lists() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.listedAt = time.Now()
}

// replaces notes that a list arrives. It ends a loss that is older than its request.
func (d *duties) replaces() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.replaced = append(d.replaced, time.Now())
	if !d.listedAt.Before(d.lostAt) {
		d.lostAt = time.Time{}
	}
}

func (d *duties) resyncs() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.resynced = append(d.resynced, time.Now())
}

// nextResync returns when the next resync is due, or the zero time.
func (d *duties) nextResync() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.resynced) == 0 {
		return time.Time{}
	}
	return d.resynced[len(d.resynced)-1].Add(resyncPeriod)
}

// since returns how many of some times are not before another.
func since(all []time.Time, begin time.Time) (n int) {
	for _, at := range all {
		if !at.Before(begin) {
			n++
		}
	}
	return n
}

// checkDuties checks that the reflector does not wait for ever, and that its store is not called
// current while it is known to be old.
func (p *process) checkDuties(health informer.Health) {
	d := p.duties
	d.mu.Lock()
	defer d.mu.Unlock()
	r := health.Reflector
	if r.Phase == reflector.AwaitingTurn {
		d.progressAt = time.Now() // see checkTurns
	}
	quiet := time.Since(later(d.progressAt, r.LastContact))
	isLate := r.Phase == reflector.Listing && p.has(deadline) && quiet > 2*listDeadline+maxTakes ||
		r.Phase == reflector.Streaming && quiet > longestStream ||
		(r.Phase == reflector.Opening || r.Phase == reflector.Watching) && quiet > longestWatch
	if isLate {
		p.violate(7, "%s is %s, and has done nothing for %v", p.name, r.Phase, quiet)
	}
	asOf := health.CurrentAsOf
	if !d.lostAt.IsZero() && !asOf.IsZero() {
		p.violate(4, "%s is current as of %v, and it has lost a change at %v", p.name,
			asOf.Sub(p.begun), d.lostAt.Sub(p.begun))
	}
	if !r.CurrentAsOf.IsZero() && r.CurrentAsOf.Before(d.asOf) && !p.has(custom) {
		p.violate(4, "%s was current as of %v, and is as of %v", p.name, d.asOf.Sub(p.begun),
			r.CurrentAsOf.Sub(p.begun))
	}
	d.asOf = r.CurrentAsOf
}

// checkResyncs checks, at the end of a quiet time, that each object was replayed as often as the
// handler's period demands. A list replays the objects too.
func (h *handler) checkResyncs() {
	p := h.p
	d := p.duties
	d.mu.Lock()
	defer d.mu.Unlock()
	period := h.period()
	queued := h.added.Add(-time.Minute) // a slow queue may still hold what came then
	lists, rounds := since(d.replaced, queued), since(d.resynced, queued)
	if period == 0 {
		rounds = 0
	}
	begin := time.Now().Add(-2*period - resyncPeriod - 30*time.Second)
	isCalm := since(d.replaced, begin.Add(-30*time.Second)) == 0 // a slow handler replays it later
	const tolerance = 10 * time.Second                           // for a slow handler
	isPrompt := func(at time.Time) bool {
		return since(d.resynced, at.Add(-tolerance)) > since(d.resynced, at)
	}
	for key := range h.known {
		times := h.repeats[key]
		if most := lists + rounds + 1; len(times) > most && p.pages != "uncached" {
			p.violate(3, "%s got %d updates of %s without a change, from %d lists and %d resyncs",
				h.name, len(times), key, lists, rounds)
		}
		if period == 0 || h.changed[key].After(begin) || h.added.After(begin) || !isCalm {
			continue
		}
		if since(times, begin) == 0 {
			p.violate(3, "%s got no resync of %s for %v", h.name, key, time.Since(begin))
		}
		for i := 1; i < len(times); i++ {
			last, gap := times[i-1], times[i].Sub(times[i-1])
			if last.After(begin) && gap < period-tolerance && isPrompt(last) {
				p.violate(3, "%s got two resyncs of %s within %v", h.name, key, gap)
			}
		}
	}
	if p.resync == "resync" && p.impl != clientGo && since(d.resynced, begin) > 0 {
		p.cover("resyncs checked")
	}
}

// period returns the resync period of the handler, 0 for never.
func (h *handler) period() time.Duration {
	switch {
	case h.p.resync == "once":
		return 0
	case h.options.ResyncPeriod != nil:
		return *h.options.ResyncPeriod
	}
	return resyncPeriod
}

// checkDrained checks that a handler which ended before its DrainTimeout has got what it was owed.
func (h *handler) checkDrained() {
	if h.owed == nil || !h.shutDown {
		return
	}
	if time.Now().Before(h.until) {
		h.p.cover("handler drained")
		got := h.gotAfter(h.early)
		for key, rv := range h.owed {
			if got[key] < rv {
				h.p.violate(2, "%s was removed, drained, and did not get %s@%d", h.name, key, rv)
			}
		}
	}
	h.owed = nil
}

// gotAfter returns the newest version of each key that the handler knew after its first calls or
// got later. An object that was dropped in the first calls may be back in the same version.
func (h *handler) gotAfter(calls int) map[string]uint64 {
	got := map[string]uint64{}
	for i, n := range h.history.calls {
		if i < calls && n.what == "delete" {
			delete(got, n.key)
		} else {
			got[n.key] = max(got[n.key], n.rv)
		}
	}
	return got
}
