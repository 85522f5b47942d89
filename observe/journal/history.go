// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"cmp"
	"hash/maphash"
	"strings"
	"time"

	"example.com/informerstack/internal/helpers/callsite"
	"example.com/informerstack/internal/helpers/printable"
)

// history is what is remembered of a place.
type history struct {
	causes  []Cause // of Adds since the last Get
	more    int     // causes that were dropped
	delayed *Cause  // of the AddAfter or AddRateLimited that is due first, else the last; see begin
	limited *Limited
	current *Reconcile
	item    uint64 // a hash of the last item that was taken; 0 before the first
	several bool   // items have this key as their text
	last    []*Reconcile
	spare   *Reconcile // to be used again
	bytes   int        // of last

	echoes uint64 // a bit for each of the last reconciles: it echoes the one before
	chain  int    // of reconciles, since one that caused nothing
	count  int
	recent periods[int]
}

// seed is that of the hashes of items.
var seed = maphash.MakeSeed()

func hashOf(item any) uint64 {
	if text, ok := item.(string); ok { // without an allocation
		return maphash.String(seed, text)
	}
	return maphash.Comparable(seed, item)
}

// doing returns what a goroutine does now: the call of a handler, or the work that it has. isOwn is
// true if that is w.
func (j *Journal) doing(own int64, w work) (call *running, has work, isOwn bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if call := j.calls[own]; call != nil {
		return call, work{}, false
	}
	held, exists := j.goroutines[own]
	if worker := j.workers[w]; worker != nil && worker.goroutine == own {
		return nil, work{}, true
	}
	if !exists || held.newest.queue != nil {
		return nil, held.newest, false
	}
	for other, worker := range j.workers {
		if worker.goroutine == own {
			return nil, other, false
		}
	}
	return nil, work{}, false
}

// added notes an Add before it is made: the Get that follows must find it. A delayed one is not due
// at once. The item does not escape.
func (j *Journal) added(queue *queueName, w work, key string, c Cause, delayed bool) {
	var limited *Limited
	if c.Kind == Retry {
		limited = &Limited{Time: c.Time,
			Place: printable.Short(callsite.Place("journal", "workqueue"))}
	}
	own := goroutine()
	call, has, isOwn := j.doing(own, w)
	retry := c.Kind == Retry && call == nil // also by a goroutine that the worker started
	switch {
	case call != nil:
		c.Kind, c.call = call.kind, call.call
	case isOwn && c.Kind != "": // a worker, of its item
	case isOwn:
		c.Kind, c.By = ByWorker, queue.name+" "+key
	case has.queue != nil:
		c.Kind, c.By = ByWorker, has.queue.name+" "+printable.Key(has.item)
	default:
		c.Kind, c.By = Program, printable.Short(callsite.Function("journal", "workqueue"))
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if call != nil && j.calls[own] != call { // the recording began anew
		call = nil
	}
	p := j.addedLocked(call, place{queue, key})
	h := &p.value
	isOthers := has.queue != nil && h.current != nil // its own worker has it still
	switch r := h.ending(); {
	case r == nil:
	case retry && !isOthers:
		c.Kind, c.By = Retry, ""
		r.byOther = !isOwn && r.Result != Retried
		j.resultLocked(r, Retried)
		r.Error, r.exact = cmp.Or(c.Error, r.Error), r.exact || c.Error != ""
		h.recount()
	case isOwn && r.Result == Running && delayed:
		r.Result = Postponed
	}
	if limited != nil {
		limited.note(c)
		h.limited = limited
	}
	h.adds(c, delayed)
	j.keys.resize(p, h.size(p.key))
}

// addedLocked returns the entry of a key that a call adds, if it is not nil: mostly that which the
// handler has added for the object before.
func (j *Journal) addedLocked(call *running, at place) *pair[place, history] {
	if call == nil {
		return j.historyLocked(at)
	}
	o := &call.object.value // empty if it was dropped
	p := o.adds
	if p == nil || p.isDropped() || p.key != at {
		p = j.historyLocked(at)
		o.adds = p
	}
	j.addsLocked(call, p.key)
	return p
}

// adds notes the cause of an Add.
func (h *history) adds(c Cause, delayed bool) {
	switch {
	case delayed && h.delayed != nil && h.delayed.due().After(c.Time) &&
		h.delayed.due().Before(c.due()): // the queue keeps the first
	case delayed:
		first := c
		h.delayed = &first
	case len(h.causes) < maxCauses:
		h.causes = append(h.causes, c)
	default:
		h.more++
	}
}

// due returns when AddAfter adds the key; the zero time if it is not known.
func (c *Cause) due() time.Time {
	if c.Delay <= 0 {
		return time.Time{}
	}
	return c.Time.Add(c.Delay)
}

// ending returns the reconcile that a Forget or AddRateLimited is about: the current one, or the
// last one soon after its Done; or nil.
func (h *history) ending() *Reconcile {
	if h.current != nil || len(h.last) == 0 {
		return h.current
	}
	r := h.last[len(h.last)-1]
	if r.Result != NoForget || time.Since(r.Start) > r.Duration+afterDone {
		return nil
	}
	return r
}

// resultLocked sets the result of a reconcile, which may have been counted without it.
func (j *Journal) resultLocked(r *Reconcile, result Result) {
	if counted := j.queues[r.Queue]; counted != nil && r.Result == NoForget {
		counted.results[indexOf(NoForget)]--
		counted.results[indexOf(result)]++
	}
	r.Result = result
}

// historyLocked keeps a copy of a new key: the key may be a part of a large text.
func (j *Journal) historyLocked(at place) *pair[place, history] {
	p := j.keys.get(at)
	if p == nil {
		at.key = strings.Clone(at.key)
		p = j.keys.put(at, history{}, historyBytes+len(at.key))
	}
	return p
}

// canceled notes that a key waits no longer.
func (j *Journal) canceled(at place) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if p := j.keys.get(at); p != nil {
		p.value.delayed = nil
		j.keys.resize(p, p.value.size(p.key))
	}
}

// begin notes that a worker took a key. A delayed Add is its cause only if there is no other: a
// delay continues although the key is reconciled for another reason. One that is not due is no
// cause: the key was added before the recording began.
func (j *Journal) begin(w work, key, function string, worker Worker) {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := worker.Since
	p := j.historyLocked(place{w.queue, key})
	worker.key, worker.Place = p.key.key, function
	worker.taken = p
	j.tookLocked(w, worker)
	h := &p.value
	causes := h.causes
	switch {
	case len(causes) > 0:
	case h.delayed != nil && !h.delayed.due().After(now):
		causes = append(causes, *h.delayed)
		h.delayed = nil
	default:
		causes = append(causes, Cause{Time: now, Kind: NotKnown})
	}
	item := hashOf(w.item)
	h.several = h.several || h.item != 0 && h.item != item
	h.item = item
	r := h.spare
	if r == nil {
		r = &Reconcile{}
	}
	h.spare = nil
	clear(r.Causes)
	h.causes = r.Causes[:0]
	*r = Reconcile{Queue: w.queue.name, Key: p.key.key, Start: now, Causes: causes, More: h.more,
		Result: Running}
	h.current, h.more = r, 0
	j.noteEchoLocked(h)
	h.count++
	*h.recent.in(j.periodAt(now))++
}

// took notes that a worker took a key while nothing is recorded, and forgets an ended recording.
func (j *Journal) took(w work, worker Worker) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.tookLocked(w, worker)
	if !j.since.IsZero() && !j.recordingAt(worker.Since) {
		j.forgetLocked(time.Time{})
	}
}

// forgotten notes a Forget of the key that a worker has. It returns false without one.
func (j *Journal) forgotten(w work) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	p := j.takenLocked(j.workers[w])
	if p != nil {
		j.forgottenLocked(&p.value)
	}
	return p != nil
}

// forgottenAt notes a Forget of any key.
func (j *Journal) forgottenAt(at place) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if p := j.keys.get(at); p != nil {
		j.forgottenLocked(&p.value)
	}
}

// forgottenLocked notes a Forget. That of a handler, such as for a deleted object, ends no
// reconcile. That of a worker does, whatever a goroutine that waits before it adds has called.
func (j *Journal) forgottenLocked(h *history) {
	h.limited = nil
	switch r := h.ending(); {
	case r == nil || j.calls[goroutine()] != nil:
	case r == h.current:
		if r.forgotten = true; r.byOther {
			r.Result, r.Error = Running, "" // the worker knows better
		}
	default:
		j.resultLocked(r, Forgotten)
	}
}

// takenLocked returns the entry of the key that a worker has; nil if it is not remembered.
func (j *Journal) takenLocked(worker *Worker) *pair[place, history] {
	if worker == nil || worker.taken == nil || worker.taken.isDropped() {
		return nil
	}
	return worker.taken
}

// tookLocked notes the goroutine that has w, and that it has left what it had before, if that is
// not done.
func (j *Journal) tookLocked(w work, worker Worker) {
	delete(j.failures.ended, worker.goroutine)
	j.doneLocked(w, 0) // no queue hands out an item twice
	held := j.goroutines[worker.goroutine]
	if held.items > 0 {
		if left := j.workers[held.newest]; left != nil && left.later.queue == nil {
			left.later = w
		}
	}
	if held.taken = worker.Since; held.ended {
		held.rounds++
		held.ended = false
	}
	if len(j.workers) >= maxKeys {
		if held.newest = (work{}); held.items > 0 {
			j.goroutines[worker.goroutine] = held
		}
		return
	}
	held.newest, worker.round = w, held.rounds
	held.items++
	j.goroutines[worker.goroutine] = held
	var noted *Worker
	if n := len(j.spareWorkers); n > 0 {
		noted, j.spareWorkers = j.spareWorkers[n-1], j.spareWorkers[:n-1]
	} else {
		noted = &Worker{}
	}
	*noted = worker
	j.workers[w] = noted
}

// done forgets a worker, before Done. The item does not escape: this is also done while nothing is
// recorded.
func (j *Journal) done(w work) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.doneLocked(w, goroutine())
}

// doneLocked forgets a worker. by is the goroutine that calls Done, or 0.
func (j *Journal) doneLocked(w work, by int64) {
	worker := j.workers[w]
	if worker == nil {
		return
	}
	delete(j.workers, w)
	held := j.goroutines[worker.goroutine]
	if held.items--; held.newest == w {
		held.newest, held.ended = work{}, by == worker.goroutine
	}
	w.queue.handsOver = w.queue.handsOver || by != 0 && by != worker.goroutine
	if held.items > 0 {
		j.goroutines[worker.goroutine] = held
	} else {
		delete(j.goroutines, worker.goroutine)
	}
	if *worker = (Worker{}); len(j.spareWorkers) < maxSpare {
		j.spareWorkers = append(j.spareWorkers, worker)
	}
}

// endTaken notes Done of an item that a worker has, before it is made. It returns false, and notes
// nothing, if its key is not remembered.
func (j *Journal) endTaken(w work) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	p := j.takenLocked(j.workers[w])
	if p == nil {
		return false
	}
	if canonical := printable.Canonical(p.key.key); j.sampled[canonical] > 0 {
		j.mu.Unlock()
		j.checkKey(canonical, "a reconcile by queue "+w.queue.name)
		j.mu.Lock()
		p = j.takenLocked(j.workers[w])
	}
	j.endLocked(w, p)
	return true
}

// endOf notes Done of any item.
func (j *Journal) endOf(w work, key string) {
	j.checkKey(printable.Canonical(key), "a reconcile by queue "+w.queue.name)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.endLocked(w, j.keys.get(place{w.queue, key}))
}

func (j *Journal) endLocked(w work, p *pair[place, history]) {
	if p != nil && p.value.current != nil {
		r := p.value.end()
		j.keys.resize(p, p.value.size(p.key))
		worker := j.workers[w]
		if worker != nil && r.Result == Retried && r.Error == "" {
			j.failures.ends(worker.goroutine, p.key, r.Start)
		}
		counts := &w.queue.counts
		if counts.recording != j.recordings || counts.facts == nil {
			*counts = queueCounts{j.recordings,
				entry(j.queues, w.queue.name, func() *queueFacts { return &queueFacts{} })}
		}
		counts.facts.note(r, j.periodAt(r.Start.Add(r.Duration)))
	}
	j.doneLocked(w, goroutine())
}

// end ends the current reconcile.
func (h *history) end() *Reconcile {
	r := h.current
	h.current = nil
	r.Duration = time.Since(r.Start)
	switch {
	case r.Result == Retried && h.delayed != nil && h.delayed.Kind == Retry:
		h.delayed.Error = cmp.Or(h.delayed.Error, r.Error)
	case r.Result != Running:
	case r.forgotten:
		r.Result = Forgotten
	default:
		r.Result = NoForget
	}
	if len(h.last) == maxLast {
		h.spare = h.last[0]
		h.bytes -= h.spare.bytes
	}
	h.last = withLast(h.last, r)
	r.bytes = r.size()
	h.bytes += r.bytes
	return r
}

// drop forgets the workers of a queue that was collected.
func (j *Journal) drop(queue *queueName) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for w := range j.workers {
		if w.queue == queue {
			j.doneLocked(w, 0)
		}
	}
}

// recount counts the last reconciles again: an error, or a key that one of their calls added, came
// after their end.
func (h *history) recount() {
	h.bytes = 0
	for _, r := range h.last {
		r.bytes = r.size()
		h.bytes += r.bytes
	}
}

// size is about the memory of an entry. Each reconcile counts with the causes of its own, and with
// its error.
func (h *history) size(p place) int {
	n := historyBytes + len(p.key) + h.bytes + causesSize(h.causes)
	if h.delayed != nil {
		n += h.delayed.size()
	}
	if h.limited != nil {
		n += causeBytes + len(h.limited.Place) + len(h.limited.By)
	}
	if h.current != nil {
		n += h.current.requestBytes()
	}
	return n
}

func (r *Reconcile) size() int {
	return reconcileBytes + len(r.Error) + len(r.Beside) + r.requestBytes() + causesSize(r.Causes)
}

// causesSize counts the room for more causes, too.
func causesSize(causes []Cause) int {
	n := causeBytes * (cap(causes) - len(causes))
	for i := range causes {
		n += causes[i].size()
	}
	return n
}

func (c *Cause) size() int {
	n := causeBytes + len(c.By) + len(c.Error)
	if c.call != nil {
		n += int(c.call.bytes)
	}
	return n
}

// The sizes are rough: what the structs take, and the texts that are their own. A call that is a
// Cause, too, counts twice.
const (
	callBytes      = 240
	reconcileBytes = 240
	causeBytes     = 112
	placeBytes     = 512
	historyBytes   = 1024 // with two reconciles: the current one, and spare
	keyBytes       = 24
	textBytes      = 16
)
