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
// call.go, handler.go, fields.go and apart.go (calls, and changed fields), history.go, queue.go and
// priority.go (keys, and the decorators of queues), request.go and loop.go (requests, and writes
// that cause reconciles), failed.go (errors), goroutine.go and throttled.go (what goroutines do),
// facts.go and text.go (what is shown) and modified.go (changed objects). Then run
// go test -v ./observe/journal. Goroutines: none, except runtime's for cleanups. Locking: the
// Journal's mutex, under which no code of the program runs; those of its looks, which readers alone
// take, and of queues with priorities.
package journal

import (
	"reflect"
	"sync"
	"sync/atomic"
	"time"
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
//	    items are at most maxKeys, of queues that were not collected. goroutines has those that
//	    have any
//	J2  everything else is empty until Record, and begins anew when recording begins anew. It is
//	    forgotten when a worker takes an item after the recording has ended
//	J3  the memory is bounded by the constants of this package, however long it records
type Journal struct {
	until atomic.Int64 // the end of recording, as nanoseconds of Unix time
	looks looks

	workerLook workerLook

	mu           sync.Mutex
	workers      map[work]*Worker
	goroutines   map[int64]holds
	recordings   int // that have begun
	since        time.Time
	calls        map[int64]*running // by goroutine
	objects      *recent[objectID, object]
	keys         *recent[place, history]
	handlers     map[[2]string]*HandlerFacts // by informer and handler
	queues       map[string]*queueFacts
	arrows       map[Arrow]*int
	writes       *recent[string, write] // of this program, by the key of the object
	requests     bool                   // one was seen
	samples      map[sampleID]sample
	sampled      map[string]int           // the number of samples with a key
	modified     map[string]*Modified     // by informer
	compared     time.Duration            // spent on comparing objects
	skipped      map[reflect.Type]bool    // types of objects that cannot be compared
	changed      map[changeID]knownChange // of the last updates: each handler asks
	managed      map[string]*change       // by one manager
	failures     failures
	spare        []*running // to be used again, as are the spareWorkers
	spareWorkers []*Worker
}

// New returns a Journal that does not record yet.
func New() *Journal {
	return &Journal{workers: map[work]*Worker{}, goroutines: map[int64]holds{}}
}

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
	j.recordings++
	for _, worker := range j.workers {
		worker.taken = nil
	}
	for _, call := range j.calls {
		for ; call != nil; call = call.outer {
			call.object = nil
		}
	}
	j.calls = map[int64]*running{}
	j.objects = newRecent[objectID, object]()
	j.keys = newRecent[place, history]()
	j.handlers = map[[2]string]*HandlerFacts{}
	j.queues = map[string]*queueFacts{}
	j.arrows = map[Arrow]*int{}
	j.writes, j.requests = newRecent[string, write](), false
	j.samples, j.sampled = map[sampleID]sample{}, map[string]int{}
	j.modified = map[string]*Modified{}
	j.compared, j.changed = 0, map[changeID]knownChange{}
	j.managed = map[string]*change{}
	j.skipped = map[reflect.Type]bool{}
	j.failures.forget()
}

func (j *Journal) recording() bool {
	_, recording := j.now()
	return recording
}

// now returns the time if the journal records.
func (j *Journal) now() (now time.Time, recording bool) {
	if j.until.Load() == 0 {
		return now, false
	}
	now = time.Now()
	return now, j.recordingAt(now)
}

func (j *Journal) recordingAt(now time.Time) bool { return now.UnixNano() < j.until.Load() }

// place is a key of a queue. Its queue is an identity: two queues may have one name.
type place struct {
	queue *queueName
	key   string
}

type queueName struct {
	name      string
	counts    queueCounts // guarded by the Journal's mutex, as is handsOver
	handsOver bool        // another goroutine than that of an item has called its Done
}

// queueCounts is where the reconciles are counted. It is looked up once for each recording.
type queueCounts struct {
	recording int
	facts     *queueFacts
}

// work is an item that a queue may have handed out. Its text is made when it is recorded, without
// the Journal's lock: the item may have a String method.
type work struct {
	queue *queueName
	item  any
}

// holds is what a goroutine has taken and not done: so many of workers.
type holds struct {
	newest work // taken last; the zero value once it is done, or if it is not remembered
	items  int
	taken  time.Time // the last time
	// rounds counts what it took after it had called Done for the newest item, with others left.
	rounds int
	ended  bool // it has called Done for the newest item
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

// objectID is an object as a handler gets it.
type objectID struct {
	handler *handlerName
	key     string
}
