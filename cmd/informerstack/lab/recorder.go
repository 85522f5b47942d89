// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"example.com/informerstack/internal/helpers/printable"
	"example.com/informerstack/observe/trace"
)

// recorder keeps what a frame shows of the events: the hops since the last frame, and the ends of
// the change log and of the server's log.
//
//	R1  without a page, active is false and an event costs one look at it
//	R2  hops has at most maxHops elements, logged and events at most maxRows each
//	R3  events is exact; hops are a sample of whole keys if there are more than maxHops
type recorder struct {
	mu       sync.Mutex
	active   bool
	followed string
	share    uint64 // of sampleRange: the share of the keys that are recorded
	total    int    // events since it became active
	shown    int    // events that were sent as hops
	recent   int    // events since the last frame
	hops     []HopView
	logged   []LogItem
	events   []ServerEvent
	rates    []rateMark
	ledger   *ledger // of the running pipeline
}

// rateMark is the number of events at a time.
type rateMark struct {
	at    time.Time
	total int
}

// sampleRange is the range of the hash of a key.
const sampleRange = 1 << 16

// rateWindow is the time over which events per second are measured.
const rateWindow = 2 * time.Second

var keySeed = maphash.MakeSeed()

func newRecorder() *recorder { return &recorder{share: sampleRange, ledger: newLedger(false)} }

// activate starts or stops recording. It forgets what was recorded before.
func (r *recorder) activate(active bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.active == active {
		return
	}
	r.active = active
	r.share, r.total, r.shown, r.recent = sampleRange, 0, 0, 0
	r.hops, r.logged, r.events, r.rates = nil, nil, nil, nil
	r.ledger = newLedger(r.ledger.reads)
}

// begin begins with the events of another pipeline.
func (r *recorder) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ledger = newLedger(r.ledger.reads)
}

// readWrites notes that wrote is called for each write of a worker.
func (r *recorder) readWrites() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ledger.reads = true
}

// wrote notes the version that the server has given to a write of a worker.
func (r *recorder) wrote(key, resourceVersion string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.active {
		r.ledger.wrote(key, resourceVersion)
	}
}

func (r *recorder) follow(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.followed = key
}

// record takes an event that has passed the gate.
func (r *recorder) record(event trace.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.active {
		return
	}
	r.total++
	r.recent++
	key := printable.Short(event.Key)
	switch {
	case event.Hop == trace.Store && event.Error == "":
		item := LogItem{What: "On" + event.What, Key: key, RV: event.ResourceVersion}
		r.logged = appendBounded(r.logged, item)
	case event.Hop == trace.Server && slices.Contains(serverEvents, event.What):
		e := ServerEvent{RV: event.ResourceVersion, Type: event.What, Key: key}
		r.events = appendBounded(r.events, e)
	}
	happened := r.ledger.enter(event)
	if !r.keepsLocked(key) {
		return
	}
	r.hops = append(r.hops, HopView{
		N: r.total, Time: event.Time, Hop: string(event.Hop), What: event.What, Key: key,
		RV: event.ResourceVersion, Detail: printable.Short(event.Detail),
		Error: printable.Short(event.Error), Fact: happened.name, Args: happened.args,
	})
}

// serverEvents are the events of a watch that are writes.
var serverEvents = []string{"ADDED", "MODIFIED", "DELETED"}

// keepsLocked samples the keys, so that the journeys of those that are shown are whole. A quarter
// of the hops is reserved for the followed key.
func (r *recorder) keepsLocked(key string) bool {
	if key == r.followed && key != "" {
		return len(r.hops) < maxHops
	}
	return len(r.hops) < maxHops*3/4 && maphash.String(keySeed, key)%sampleRange < r.share
}

// recorded is the part of a frame that comes from events.
type recorded struct {
	hops      []HopView
	logged    []LogItem
	events    []ServerEvent
	total     int
	shown     int
	perSecond float64
	followed  string
}

// take returns what was recorded, with the hops since the last call.
func (r *recorder) take(now time.Time) recorded {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rates = append(r.rates, rateMark{now, r.total})
	for len(r.rates) > 1 && now.Sub(r.rates[0].at) > rateWindow {
		r.rates = r.rates[1:]
	}
	r.shown += len(r.hops)
	first := r.rates[0]
	taken := r.logsLocked()
	taken.hops = append(taken.hops, r.hops...)
	if elapsed := now.Sub(first.at); elapsed > 0 {
		taken.perSecond = float64(r.total-first.total) / elapsed.Seconds()
	}
	r.share = sampleRange
	if r.recent > maxHops/2 {
		r.share = sampleRange * maxHops / 2 / uint64(r.recent)
	}
	r.hops, r.recent = r.hops[:0], 0
	return taken
}

// logs returns what was recorded, without hops.
func (r *recorder) logs() recorded {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.logsLocked()
}

func (r *recorder) logsLocked() recorded {
	return recorded{
		hops:     []HopView{},
		logged:   append([]LogItem{}, r.logged...),
		events:   append([]ServerEvent{}, r.events...),
		total:    r.total,
		shown:    r.shown,
		followed: r.followed,
	}
}

// appendBounded appends to a list, and drops the first element if there are more than maxRows.
func appendBounded[T any](list []T, item T) []T {
	list = append(list, item)
	if len(list) > maxRows {
		list = slices.Delete(list, 0, 1)
	}
	return list
}
