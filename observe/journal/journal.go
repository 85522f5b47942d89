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
// Read journal.go (what is remembered), then handler.go, fields.go and queue.go (the decorators),
// goroutine.go, recent.go (the bound), facts.go (what is read) and throttled.go (what goroutines
// wait for). Then run go test -v ./observe/journal. Goroutines: none. Locking: the Journal's mutex,
// under which no code of the program runs; that of its looks, which readers of Facts alone take.
package journal

import (
	"math/bits"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxKeys is the number of objects, counted for each handler, and that of queued keys, that are
	// remembered.
	maxKeys = 10_000
	// maxBytes bounds the memory of the objects, and that of the queued keys.
	maxBytes = 32 << 20
	// maxLast bounds what is remembered of each: its last calls, its last reconciles.
	maxLast = 5
	// maxCauses bounds the causes of one reconcile, and the keys that one call adds.
	maxCauses = 5
	// maxNames bounds the handlers, queues and arrows that are counted. A program has a few; one
	// that makes them without end must not fill the memory.
	maxNames = 1024
	// echo is how long after a reconcile an update may be one that it wrote.
	echo = 250 * time.Millisecond
	// maxEchoes is the number of reconciles that echoes are counted of.
	maxEchoes = 40
)

// Journal remembers calls of handlers and reconciles. Its methods are safe for concurrent use.
//
//	J1  workers has the goroutine of each key that a queue has handed out and that is not done,
//	    also while nothing is recorded: a worker that hangs was there before the question
//	J2  everything else is empty until Record, and begins anew when recording begins anew
//	J3  the memory is bounded by the constants of this package, however long it records
type Journal struct {
	until atomic.Int64 // the end of recording, as nanoseconds of Unix time
	looks looks

	mu       sync.Mutex
	workers  map[place]Worker
	since    time.Time
	calls    map[string]*Call // in progress, by goroutine
	objects  *recent[objectID, []*Call]
	keys     *recent[place, *history]
	handlers map[[2]string]*HandlerFacts // by informer and handler
	queues   map[string]*queueFacts
	arrows   map[Arrow]int
	samples  map[sampleID]sample
	modified map[string]*Modified // by informer
	compared time.Duration        // spent on comparing objects
	changed  map[changeID]change  // of the last updates: each handler asks
}

// New returns a Journal that does not record yet.
func New() *Journal { return &Journal{workers: map[place]Worker{}} }

// Record records from now on, for at least d after the last call.
func (j *Journal) Record(d time.Duration) {
	now := time.Now()
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.recording() {
		j.since = now
		j.calls = map[string]*Call{}
		j.objects = newRecent[objectID, []*Call]()
		j.keys = newRecent[place, *history]()
		j.handlers = map[[2]string]*HandlerFacts{}
		j.queues = map[string]*queueFacts{}
		j.arrows = map[Arrow]int{}
		j.samples, j.modified = map[sampleID]sample{}, map[string]*Modified{}
		j.compared, j.changed = 0, map[changeID]change{}
	}
	j.until.Store(max(j.until.Load(), now.Add(d).UnixNano()))
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

// history is what is remembered of a place.
type history struct {
	causes  []Cause // of Adds since the last Get
	more    int     // causes that were dropped
	delayed *Cause  // of the last AddAfter or AddRateLimited; see begin
	current *Reconcile
	last    []Reconcile

	echoes uint64 // a bit for each of the last reconciles: all its causes echo the one before
	count  int
}

// Call is a call of a handler.
type Call struct {
	Time     time.Time     `json:"time"`
	Duration time.Duration `json:"durationNanoseconds"` // 0 while it runs
	Informer string        `json:"informer"`
	Handler  string        `json:"handler"`
	Kind     Kind          `json:"kind"`
	Key      string        `json:"key"`
	// ResourceVersion is that of the object, and Was the one before an update.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	Was             string `json:"was,omitempty"`
	// Fields are the paths of the changed fields, without their values, and Managers the owners of
	// the change in managedFields. Both are nil if they are not known; see fields.go.
	Fields   []string `json:"fields,omitempty"`
	Managers []string `json:"managers,omitempty"`
	// Added has "queue key" for each key that the handler added in the call.
	Added []string `json:"added"`
	// Text is String, in an answer about a key.
	Text string `json:"text,omitempty"`
}

// Cause is the reason of one Add.
type Cause struct {
	Time time.Time `json:"time"`
	Kind Kind      `json:"kind"`
	// Call is the call of a handler that added the key, or nil.
	Call *Call `json:"call,omitempty"`
	// By is the function that added the key outside of handlers and workers, or the key that a
	// worker had when it added this one.
	By string `json:"by,omitempty"`
	// Delay is that of AddAfter, and Error that of a retry, if the queue knows it.
	Delay time.Duration `json:"delayNanoseconds,omitempty"`
	Error string        `json:"error,omitempty"`
}

// Kind says what a handler was called for, or what else added a key.
type Kind string

// The kinds of Calls, and then those of other Causes.
const (
	InitialList Kind = "initial list" // OnAdd, isInInitialList
	Added       Kind = "add"
	Updated     Kind = "update"
	Deleted     Kind = "delete"
	Tombstone   Kind = "tombstone" // OnDelete, and the delete itself was missed
	Resync      Kind = "resync"    // OnUpdate with the same object twice
	Relist      Kind = "relist"    // OnUpdate with the same resourceVersion twice

	Retry    Kind = "retry"     // AddRateLimited by the worker of the key
	Delay    Kind = "delay"     // AddAfter by the worker of the key
	ByWorker Kind = "worker"    // by a worker, also with Add of its own key
	Program  Kind = "program"   // by any other goroutine
	NotKnown Kind = "not known" // added before the recording began, or merged with the one before
)

// Reconcile is the time from Get to Done of a key.
type Reconcile struct {
	Queue    string        `json:"queue"`
	Key      string        `json:"key"`
	Start    time.Time     `json:"start"`
	Duration time.Duration `json:"durationNanoseconds"` // 0 while it runs
	Causes   []Cause       `json:"causes"`
	More     int           `json:"moreCauses,omitempty"`
	Result   Result        `json:"result"`
	Error    string        `json:"error,omitempty"`
	// Text is String, in an answer about a key.
	Text string `json:"text,omitempty"`

	forgotten bool
}

// Result is how a reconcile ended, as far as the queue knows.
type Result string

const (
	Running   Result = "running"   // no Done yet
	Forgotten Result = "forgotten" // Forget, and no retry: a success, or the key was given up
	Retried   Result = "retried"   // AddRateLimited
	Postponed Result = "postponed" // AddAfter
	NoForget  Result = "noForget"  // Done, and neither of the three
)

// objectID is an object as a handler gets it.
type objectID struct{ key, informer, handler string }

// enter notes a call, and leave its end.
func (j *Journal) enter(goroutine string, call *Call) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.calls[goroutine] = call
	id := objectID{call.Key, call.Informer, call.Handler}
	calls, _ := j.objects.get(id)
	calls = last(append(calls, call))
	j.objects.put(id, calls, bytesOf(calls))
}

func (j *Journal) leave(goroutine string, call *Call) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.calls[goroutine] != call { // the recording began anew
		return
	}
	delete(j.calls, goroutine)
	call.Duration = max(time.Since(call.Time), time.Nanosecond)
	id := objectID{call.Key, call.Informer, call.Handler}
	if calls, exists := j.objects.get(id); exists {
		j.objects.put(id, calls, bytesOf(calls)) // Added has grown
	}
	facts := entry(j.handlers, [2]string{call.Informer, call.Handler}, &HandlerFacts{
		Informer: call.Informer, Handler: call.Handler, Kinds: map[Kind]int{}})
	facts.note(call)
}

// causeLocked completes the cause of an Add at p by a goroutine.
func (j *Journal) causeLocked(goroutine string, p place, c Cause) Cause {
	if call := j.calls[goroutine]; call != nil {
		c.Kind, c.Call = call.Kind, call
		if text := p.queue.name + " " + p.key; !slices.Contains(call.Added, text) {
			call.Added = append(call.Added[:min(len(call.Added), maxCauses-1)], text)
		}
		arrow := Arrow{call.Informer, call.Handler, p.queue.name, 0}
		if _, exists := j.arrows[arrow]; exists || len(j.arrows) < maxNames {
			j.arrows[arrow]++
		}
		return c
	}
	if c.Kind != "" && j.workers[p].goroutine == goroutine { // of this key
		return c
	}
	for other, worker := range j.workers {
		if worker.goroutine == goroutine {
			c.Kind, c.By = ByWorker, other.queue.name+" "+other.key
			return c
		}
	}
	c.Kind, c.By = Program, caller()
	return c
}

// added notes an Add before it is made: the Get that follows must find it. A delayed one is not due
// at once.
func (j *Journal) added(p place, c Cause, delayed bool) {
	own := goroutine()
	j.mu.Lock()
	defer j.mu.Unlock()
	c = j.causeLocked(own, p, c)
	h := j.historyLocked(p)
	if h.current != nil && j.workers[p].goroutine == own {
		switch {
		case c.Kind == Retry:
			h.current.Result, h.current.Error = Retried, c.Error
		case h.current.Result == Running && delayed:
			h.current.Result = Postponed
		}
	}
	switch {
	case delayed:
		h.delayed = &c
	case len(h.causes) < maxCauses:
		h.causes = append(h.causes, c)
	default:
		h.more++
	}
	j.keys.put(p, h, h.bytes(p))
}

func (j *Journal) historyLocked(p place) *history {
	h, exists := j.keys.get(p)
	if !exists {
		h = &history{}
		j.keys.put(p, h, h.bytes(p))
	}
	return h
}

// begin notes that a worker took a key. A delayed Add is its cause only if there is no other: a
// delay continues although the key is reconciled for another reason.
func (j *Journal) begin(p place, worker Worker) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.workers[p] = worker
	if !j.recording() {
		return
	}
	h := j.historyLocked(p)
	causes := h.causes
	switch {
	case len(causes) > 0:
	case h.delayed != nil:
		causes, h.delayed = []Cause{*h.delayed}, nil
	default:
		causes = []Cause{{Time: worker.Since, Kind: NotKnown}}
	}
	h.current = &Reconcile{Queue: p.queue.name, Key: p.key, Start: worker.Since, Causes: causes,
		More: h.more, Result: Running}
	h.echoes = h.echoes<<1 | h.echoBit()
	h.count++
	h.causes, h.more = nil, 0
}

// echoBit is 1 if all causes of the current reconcile are updates of its object during the one
// before, or soon after: a reconcile that writes each time causes the next.
func (h *history) echoBit() uint64 {
	if len(h.last) == 0 {
		return 0
	}
	before := h.last[len(h.last)-1]
	key := strings.TrimPrefix(h.current.Key, "/")
	for _, c := range h.current.Causes {
		if c.Kind != Updated || c.Call == nil || c.Call.Key != key || c.Time.Before(before.Start) ||
			c.Time.After(before.Start.Add(before.Duration+echo)) {
			return 0
		}
	}
	return 1
}

// echoed returns how many of the last reconciles, of at most maxEchoes, were echoes.
func (h *history) echoed() (echoes, of int) {
	of = min(maxEchoes, h.count)
	return bits.OnesCount64(h.echoes & (1<<of - 1)), of
}

func (j *Journal) forgotten(p place) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if h, exists := j.keys.get(p); exists && h.current != nil {
		h.current.forgotten = true
	}
}

// end notes Done, before it is made.
func (j *Journal) end(p place) {
	if j.recording() {
		j.checkKey(strings.TrimPrefix(p.key, "/"), "a reconcile by queue "+p.queue.name)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.workers, p)
	if !j.recording() {
		return
	}
	h, exists := j.keys.get(p)
	if !exists || h.current == nil {
		return
	}
	r := h.current
	h.current = nil
	r.Duration = time.Since(r.Start)
	switch {
	case r.Result != Running:
	case r.forgotten:
		r.Result = Forgotten
	default:
		r.Result = NoForget
	}
	h.last = last(append(h.last, *r))
	j.keys.put(p, h, h.bytes(p))
	entry(j.queues, p.queue.name, &queueFacts{}).note(r)
}

// last returns the last items of a list, which grows no further.
func last[T any](items []T) []T {
	if len(items) <= maxLast {
		return items
	}
	return slices.Clone(items[len(items)-maxLast:])
}

// entry returns the entry of a bounded map. If there is no room, it returns one that is not kept.
func entry[K comparable, V any](m map[K]*V, key K, empty *V) *V {
	if e, exists := m[key]; exists {
		return e
	}
	if len(m) < maxNames {
		m[key] = empty
	}
	return empty
}
