// SPDX-License-Identifier: Apache-2.0

// Package journal remembers why each key was reconciled: the call of a handler that added it, with
// the change of the object, or a retry, a delay, or another part of the program.
//
//	informer -> handlers -> workqueue -> workers
//	        [Handler] [RateLimitingQueue] -> [Journal] -> observe/health
//
// A decorator around each handler and each queue notes what passes. Handlers add keys in their own
// goroutine, and workers retry them in theirs: so the goroutine shows which call led to which Add.
// The pieces contain no code for it.
//
// To use it, make a [Journal] with [New], wrap handlers with [NewHandler] and queues with
// [NewRateLimitingQueue], and give it to health.Handler.SetJournal. Nothing is remembered until
// [Journal.Record] is called; the page of package health does so when it is asked.
//
// Read record.go and journal.go (what is remembered), recent.go and periods.go (for how long), then
// handler.go, fields.go and apart.go (changed fields), queue.go and priority.go (the decorators of
// queues), request.go and loop.go (requests, and writes that cause reconciles), failed.go (errors),
// goroutine.go and throttled.go (what goroutines do), facts.go and text.go (what is shown) and
// modified.go (changed objects). Then run go test -v ./observe/journal. Goroutines: none,
// except runtime's for cleanups. Locking: the Journal's mutex, under which no code of the program
// runs; those of its looks, which readers alone take, and of queues with priorities.
package journal

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"example.com/informerstack/internal/helpers/callsite"
	"example.com/informerstack/internal/helpers/printable"
)

// Tests lower these limits.
var (
	// maxKeys is the number of objects, counted for each handler, and that of queued keys, that are
	// remembered.
	maxKeys = 10_000
	// maxBytes bounds the memory of the objects, and that of the queued keys.
	maxBytes = 32 << 20
)

const (
	// maxLast bounds what is remembered of each: its last calls, its last reconciles.
	maxLast = 5
	// maxCauses bounds the causes of one reconcile, and the keys that one call adds.
	maxCauses = 5
	// maxNames bounds the handlers, queues and arrows that are counted. A program has a few; one
	// that makes them without end must not fill the memory.
	maxNames = 1024
	// afterDone is how long after Done a Forget or AddRateLimited may be about the reconcile.
	afterDone = 250 * time.Millisecond
)

// Journal remembers calls of handlers and reconciles. Its methods are safe for concurrent use.
//
//	J1  workers has the goroutine of each item that a queue has handed out and that is not done,
//	    also while nothing is recorded: a worker that hangs was there before the question. Its
//	    items are at most maxKeys, of queues that were not collected
//	J2  everything else is empty until Record, and begins anew when recording begins anew. It is
//	    forgotten when a worker takes an item after the recording has ended
//	J3  the memory is bounded by the constants of this package, however long it records
type Journal struct {
	until atomic.Int64 // the end of recording, as nanoseconds of Unix time
	looks looks

	workerLook workerLook

	mu       sync.Mutex
	workers  map[work]Worker
	newest   map[int64]work // that a goroutine has taken and not done, of those in workers
	since    time.Time
	calls    map[int64]*Call // in progress, by goroutine
	objects  *recent[objectID, []*Call]
	keys     *recent[place, *history]
	handlers map[[2]string]*HandlerFacts // by informer and handler
	queues   map[string]*queueFacts
	arrows   map[Arrow]int
	writes   *recent[string, time.Time] // of this program, by the key of the object
	requests bool                       // one was seen
	samples  map[sampleID]sample
	modified map[string]*Modified  // by informer
	compared time.Duration         // spent on comparing objects
	skipped  map[reflect.Type]bool // types of objects that cannot be compared
	changed  map[changeID]change   // of the last updates: each handler asks
	failures failures
}

// New returns a Journal that does not record yet.
func New() *Journal { return &Journal{workers: map[work]Worker{}, newest: map[int64]work{}} }

// Record records from now on, for at least d after the last call.
func (j *Journal) Record(d time.Duration) {
	now := time.Now()
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.recording() {
		j.forgetLocked(now)
	}
	j.until.Store(max(j.until.Load(), now.Add(d).UnixNano()))
}

// forgetLocked forgets everything except the workers. since is when a recording begins, or zero.
func (j *Journal) forgetLocked(since time.Time) {
	j.since = since
	j.calls = map[int64]*Call{}
	j.objects = newRecent[objectID, []*Call]()
	j.keys = newRecent[place, *history]()
	j.handlers = map[[2]string]*HandlerFacts{}
	j.queues = map[string]*queueFacts{}
	j.arrows = map[Arrow]int{}
	j.writes, j.requests = newRecent[string, time.Time](), false
	j.samples, j.modified = map[sampleID]sample{}, map[string]*Modified{}
	j.compared, j.changed = 0, map[changeID]change{}
	j.skipped = map[reflect.Type]bool{}
	j.failures.forget()
}

func (j *Journal) recording() bool {
	until := j.until.Load()
	return until != 0 && time.Now().UnixNano() < until
}

// place is a key of a queue. Its queue is an identity: two queues may have one name.
type place struct {
	queue *queueName
	key   string
}

type queueName struct{ name string }

// work is an item that a queue may have handed out. Its text is made when it is recorded.
type work struct {
	queue *queueName
	item  any
}

// place must be called without the Journal's lock: the item may have a String method.
func (w work) place() place { return place{w.queue, printable.Key(w.item)} }

// history is what is remembered of a place.
type history struct {
	key     string
	causes  []Cause // of Adds since the last Get
	more    int     // causes that were dropped
	delayed *Cause  // of the AddAfter or AddRateLimited that is due first, else the last; see begin
	later   *Cause  // of an AddAfter that is due later
	limited *Limited
	current *Reconcile
	last    []Reconcile

	echoes uint64 // a bit for each of the last reconciles: it echoes the one before
	count  int
	recent periods[int]
}

// objectID is an object as a handler gets it.
type objectID struct {
	key, informer string
	handler       *handlerName
}

// enter notes a call, and leave its end.
func (j *Journal) enter(goroutine int64, call *Call) {
	j.mu.Lock()
	defer j.mu.Unlock()
	call.outer = j.calls[goroutine]
	j.calls[goroutine] = call
	id := objectID{call.Key, call.Informer, call.called}
	calls, _ := j.objects.get(id)
	if call.Number = 1; len(calls) > 0 {
		call.Number = calls[len(calls)-1].Number + 1
	}
	calls = remember(calls, call)
	j.objects.put(id, calls, bytesOf(calls))
}

// nameLocked names a call that began before Handler.Named.
func (c *Call) nameLocked() {
	if name := c.called.name.Load(); name != nil {
		c.Handler = *name
	}
}

func (j *Journal) leave(goroutine int64, call *Call) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.calls[goroutine] != call { // the recording began anew
		return
	}
	if delete(j.calls, goroutine); call.outer != nil {
		j.calls[goroutine], call.outer = call.outer, nil
	}
	call.Duration = max(time.Since(call.Time), time.Nanosecond)
	id := objectID{call.Key, call.Informer, call.called}
	if calls, exists := j.objects.get(id); exists {
		j.objects.put(id, calls, bytesOf(calls)) // Added has grown
	}
	if len(call.places) > 1 {
		for _, p := range call.places {
			if h, exists := j.keys.get(p); exists {
				j.keys.put(p, h, h.bytes(p)) // it has the call as a cause
			}
		}
	}
	call.places = nil
	call.nameLocked()
	facts := entry(j.handlers, [2]string{call.Informer, call.Handler}, func() *HandlerFacts {
		return &HandlerFacts{Informer: call.Informer, Handler: call.Handler, Kinds: map[Kind]int{}}
	})
	facts.note(call, j.periodLocked())
}

// doing returns what a goroutine does now: the call of a handler, or the work that it has, which is
// w if it has several items.
func (j *Journal) doing(goroutine int64, w work) (call *Call, has work) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if call := j.calls[goroutine]; call != nil {
		return call, work{}
	}
	if j.workers[w].goroutine == goroutine {
		return nil, w
	}
	for other, worker := range j.workers {
		if worker.goroutine == goroutine {
			return nil, other
		}
	}
	return nil, work{}
}

// added notes an Add before it is made: the Get that follows must find it. A delayed one is not due
// at once.
func (j *Journal) added(w work, c Cause, delayed bool) {
	p := w.place()
	var limited *Limited
	if c.Kind == Retry {
		limited = &Limited{Time: c.Time,
			Place: printable.Short(callsite.Place("journal", "workqueue"))}
	}
	call, has := j.doing(goroutine(), w)
	retry := c.Kind == Retry && call == nil // also by a goroutine that the worker started
	switch {
	case call != nil:
		c.Kind, c.Call = call.Kind, call
	case has == w && c.Kind != "": // a worker, of its item
	case has.queue != nil:
		c.Kind, c.By = ByWorker, has.queue.name+" "+printable.Key(has.item)
	default:
		c.Kind, c.By = Program, printable.Short(callsite.Function("journal", "workqueue"))
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if call != nil {
		j.addedByLocked(call, p)
	}
	h := j.historyLocked(p)
	isOthers := has.queue != nil && has != w && h.current != nil // its own worker has it still
	switch r := h.ending(); {
	case r == nil:
	case retry && !isOthers:
		c.Kind, c.By = Retry, ""
		j.resultLocked(r, Retried)
		r.Error, r.exact = cmp.Or(c.Error, r.Error), r.exact || c.Error != ""
	case has == w && r.Result == Running && delayed:
		r.Result = Postponed
	}
	if limited != nil {
		limited.note(c)
		h.limited = limited
	}
	switch {
	case delayed && h.delayed != nil && h.delayed.due().After(c.Time) &&
		h.delayed.due().Before(c.due()):
		h.later = &c // the queue keeps the first
	case delayed:
		h.delayed, h.later = &c, nil
	case len(h.causes) < maxCauses:
		h.causes = append(h.causes, c)
	default:
		h.more++
	}
	j.keys.put(p, h, h.bytes(p))
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
	r := &h.last[len(h.last)-1]
	if r.Result != NoForget || time.Since(r.Start) > r.Duration+afterDone {
		return nil
	}
	return r
}

// resultLocked sets the result of a reconcile, which may have been counted without it.
func (j *Journal) resultLocked(r *Reconcile, result Result) {
	if counted := j.queues[r.Queue]; counted != nil && r.Result == NoForget {
		counted.results[NoForget]--
		counted.results[result]++
		maps.DeleteFunc(counted.results, func(_ Result, n int) bool { return n == 0 })
	}
	r.Result = result
}

func (j *Journal) addedByLocked(call *Call, p place) {
	call.nameLocked()
	if len(call.places) < maxKeys {
		call.places = append(call.places, p)
	}
	if text := p.queue.name + " " + p.key; !slices.Contains(call.Added, text) {
		at := min(len(call.Added), maxCauses-1)
		call.Added = append(call.Added[:at], text)
		call.keys = append(call.keys[:at], QueueKey{p.queue.name, strings.Clone(p.key)})
	}
	arrow := Arrow{call.Informer, call.Handler, p.queue.name, 0}
	if _, exists := j.arrows[arrow]; exists || len(j.arrows) < maxNames {
		j.arrows[arrow]++
	}
}

// historyLocked keeps a copy of a new key: the key may be a part of a large text.
func (j *Journal) historyLocked(p place) *history {
	h, exists := j.keys.get(p)
	if !exists {
		p.key = strings.Clone(p.key)
		h = &history{key: p.key}
		j.keys.put(p, h, h.bytes(p))
	}
	return h
}

// begin notes that a worker took a key. A delayed Add is its cause only if there is no other: a
// delay continues although the key is reconciled for another reason.
func (j *Journal) begin(w work, worker Worker) {
	var p place
	recording := j.recording()
	if recording {
		p = w.place()
		worker.key = p.key
		worker.Place = printable.Short(callsite.Function("journal", "workqueue"))
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.tookLocked(w, worker)
	if !recording {
		if !j.since.IsZero() && !j.recording() {
			j.forgetLocked(time.Time{})
		}
		return
	}
	h := j.historyLocked(p)
	causes := h.causes
	switch {
	case len(causes) > 0:
	case h.later != nil && !h.later.due().After(worker.Since): // the first was canceled
		causes, h.delayed, h.later = []Cause{*h.later}, nil, nil
	case h.delayed != nil:
		causes, h.delayed, h.later = []Cause{*h.delayed}, nil, nil
	default:
		causes = []Cause{{Time: worker.Since, Kind: NotKnown}}
	}
	h.current = &Reconcile{Queue: p.queue.name, Key: h.key, Start: worker.Since, Causes: causes,
		More: h.more, Result: Running}
	h.echoes = h.echoes<<1 | j.echoBitLocked(h)
	h.count++
	*h.recent.in(j.periodLocked())++
	h.causes, h.more = nil, 0
}

func (j *Journal) forgotten(p place) {
	j.mu.Lock()
	defer j.mu.Unlock()
	h, exists := j.keys.get(p)
	if !exists {
		return
	}
	h.limited = nil
	switch r := h.ending(); {
	case r == nil:
	case r == h.current:
		r.forgotten = true
	default:
		j.resultLocked(r, Forgotten)
	}
}

// tookLocked notes the goroutine that has w, and that it has left what it had before, if that is
// not done.
func (j *Journal) tookLocked(w work, worker Worker) {
	delete(j.failures.ended, worker.goroutine)
	before := j.newest[worker.goroutine]
	if left, exists := j.workers[before]; exists && left.later.queue == nil {
		left.later = w
		j.workers[before] = left
	}
	if len(j.workers) >= maxKeys {
		delete(j.newest, worker.goroutine) // it is not remembered
		return
	}
	j.workers[w], j.newest[worker.goroutine] = worker, w
}

// done forgets a worker, before Done. The item does not escape: this is also done while nothing is
// recorded.
func (j *Journal) done(w work) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.doneLocked(w)
}

func (j *Journal) doneLocked(w work) {
	if worker := j.workers[w]; j.newest[worker.goroutine] == w {
		delete(j.newest, worker.goroutine)
	}
	delete(j.workers, w)
}

// end notes Done, before it is made.
func (j *Journal) end(w work) {
	p := w.place()
	j.checkKey(printable.Canonical(p.key), "a reconcile by queue "+p.queue.name)
	j.mu.Lock()
	defer j.mu.Unlock()
	h, exists := j.keys.get(p)
	if !exists || h.current == nil {
		return
	}
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
	h.last = withLast(h.last, *r)
	if worker, known := j.workers[w]; known && r.Result == Retried && r.Error == "" {
		j.failures.ends(worker.goroutine, p, r.Start)
	}
	j.keys.put(p, h, h.bytes(p))
	facts := entry(j.queues, p.queue.name, func() *queueFacts { return &queueFacts{} })
	facts.note(r, j.periodLocked())
}

// drop forgets the workers of a queue that was collected.
func (j *Journal) drop(queue *queueName) {
	j.mu.Lock()
	defer j.mu.Unlock()
	maps.DeleteFunc(j.workers, func(w work, _ Worker) bool { return w.queue == queue })
	maps.DeleteFunc(j.newest, func(_ int64, w work) bool { return w.queue == queue })
}

// withLast appends an item. If there are maxLast, it takes the place of the oldest one.
func withLast[T any](items []T, item T) []T {
	switch len(items) {
	case maxLast:
		copy(items, items[1:])
		items[maxLast-1] = item
		return items
	case maxLast - 1:
		items = append(make([]T, 0, maxLast), items...) // no room that stays unused
	}
	return append(items, item)
}

// entry returns the entry of a bounded map. If there is no room, it returns one that is not kept.
func entry[K comparable, V any](m map[K]*V, key K, empty func() *V) *V {
	if e, exists := m[key]; exists {
		return e
	}
	e := empty()
	if len(m) < maxNames {
		m[key] = e
	}
	return e
}
