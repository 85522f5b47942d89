// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"slices"
	"sync/atomic"
	"time"
)

// uptime is a point in time, measured from the start of the process: half a time.Time, and monotonic.
type uptime time.Duration

var processStart = time.Now()

func now() uptime { return uptime(time.Since(processStart)) }

// flow is the list of everything that handlers are told. It is written once, at its end, and read by each handler at its
// own pace: one more handler costs the writer next to nothing, and a slow one shares what it has not read with other slow
// ones. What every handler has read is garbage.
//
//	read by all | quick handler's place        | last
//	            v                              v
//	... -> [a, b] -> [c] -> [d, e, f] -> [g] -> [ ]
//	          ^
//	          slow handler's place
//
// The writer holds the processor's mu; readers need no lock.
//
// Laws:
//
//	W1  last is the only parcel without a next; it is empty
//	W2  a parcel that has a next does not change any more
//	W3  a handler that has read everything stands at last, and so keeps no object alive
type flow struct {
	last   *parcel
	handed atomic.Int64 // changes that were ever appended
}

// parcelLen is the most changes in a parcel: what was delivered of it stays reachable until the rest is.
const parcelLen = 64

// parcel is changes that were handed over together.
type parcel struct {
	changes []change
	// synced says that the initial list ends here: who gets as far as this has been told of all of it.
	synced bool
	// round decides who is told of updates that changed nothing.
	round resyncRound
	// at is when the changes were handed over.
	at uptime

	next atomic.Pointer[parcel]
}

// fill makes last a parcel with a copy of changes, and appends a new last.
func (f *flow) fill(changes []change, synced bool, round resyncRound) *parcel {
	p := f.last
	p.changes = slices.Clone(changes) // on its own: a call in flight holds a change, and must not hold the list
	for i := range p.changes {
		c := &p.changes[i]
		c.unchanged = c.kind == updated && sameVersion(c.oldObj, c.newObj)
	}
	p.synced, p.round, p.at = synced, round, now()
	f.last = &parcel{}
	f.handed.Add(int64(len(changes)))
	p.next.Store(f.last)
	return p
}

// place is a reader's place in the flow. It is a backlog: everything from there on.
type place struct {
	flow *flow
	// before is how many changes were in the flow when this reader came, less those of its replay.
	before int64
	parcel atomic.Pointer[parcel]
	end    atomic.Pointer[placeEnd] // where reading ends; nil until then
	taken  bool                     // the reader's own: whether it has got parcel
}

type placeEnd struct {
	last   *parcel
	handed int64
}

// newPlace returns a place at the end of the flow, or at a replay that leads there. The processor's mu is held.
func newPlace(f *flow, replay []change, synced bool) *place {
	p := &place{flow: f, before: f.handed.Load() - int64(len(replay))}
	if len(replay) == 0 && !synced {
		p.parcel.Store(f.last)
		return p
	}
	own := &flow{last: &parcel{}} // a side stream that only this reader sees
	p.parcel.Store(own.last)
	var mouth *parcel
	for some := range slices.Chunk(replay, parcelLen) {
		mouth = own.fill(some, false, nil)
	}
	if synced {
		mouth = own.fill(nil, true, nil)
	}
	mouth.next.Store(f.last)
	return p
}

func (p *place) push(*parcel) {} // it is in the flow

func (p *place) close() { p.end.Store(&placeEnd{p.flow.last, p.handed()}) }

// drop forgets the place: who still holds the handle of a removed handler does not hold the flow.
func (p *place) drop() {
	p.parcel.Store(&parcel{})
	p.end.Store(&placeEnd{})
}

func (p *place) take() *parcel {
	here := p.parcel.Load()
	if p.taken {
		next := here.next.Load()
		if next == nil || !p.parcel.CompareAndSwap(here, next) {
			return nil // dropped
		}
		here = next
	}
	p.taken = here.next.Load() != nil && !p.endsAt(here)
	if !p.taken {
		return nil
	}
	return here
}

func (p *place) endsAt(here *parcel) bool {
	end := p.end.Load()
	return end != nil && end.last == here
}

func (p *place) handed() int64 {
	if end := p.end.Load(); end != nil {
		return end.handed
	}
	return p.flow.handed.Load() - p.before
}

func (p *place) oldest() uptime {
	if here := p.parcel.Load(); here.next.Load() != nil {
		return here.at
	}
	return now()
}
