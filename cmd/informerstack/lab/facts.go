// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"net/http"
	"strconv"
	"strings"

	"example.com/informerstack/deltafifo"
	"example.com/informerstack/observe/trace"
)

// fact says what happened at a hop, where the events before it prove that: for example that a
// version is a worker's own write. Its name selects a caption, which has the arguments.
type fact struct {
	name string // "" claims nothing
	args map[string]string
}

// The names of the facts.
const (
	initialFact  = "initial"  // an object that existed before, or the end of these objects
	expiredFact  = "expired"  // the server no longer has the changes after the version
	ownFact      = "own"      // a worker of this controller wrote this version
	conflictFact = "conflict" // the server refused a write: 409
	refusedFact  = "refused"  // the server refused a write with another status
	tokenFact    = "token"    // a leader has written with fencing token n
	fencedFact   = "fenced"   // a leader's write with fencing token n was not done
	besideFact   = "beside"   // n earlier deltas of the key are in the queue
	manyFact     = "many"     // n deltas at once
	listFact     = "list"     // a delta of a list
	resyncFact   = "resync"   // a delta of a resync
	allFact      = "all"      // a delta that concerns all objects
	replacesFact = "replaces" // another version, old
	sameFact     = "same"     // the version is as before
	lostFact     = "lost"     // a tombstone
	queuedFact   = "queued"   // the key was added before, and no worker has got it since
	againFact    = "again"    // the key is added while it is in processing, or was
	mergedFact   = "merged"   // n calls of Add have become one Get
	retryFact    = "retry"    // attempt n in a row
	delayFact    = "delay"    // after a delay; of failure n if the call failed
	successFact  = "success"  // the last call of reconcile succeeded
	gaveUpFact   = "gaveUp"   // the last call of reconcile failed
	goneFact     = "gone"     // the store does not have the object
	wroteFact    = "wrote"    // the call of reconcile has written, as version if that is known
	nothingFact  = "nothing"  // the call of reconcile has sent no write
)

// maxKnown bounds the keys that a ledger knows.
const maxKnown = 2 * maxObjects

// ledger draws facts from the events, which it gets in the order in which they are recorded.
//
//	L1  no fact is drawn from an event that the ledger has not seen: a key that it does not know
//	    has no facts about its past, so the ledger may forget keys at any time
//
// An Add is reported just before it happens, as are the changes that enter the delta queue.
type ledger struct {
	reads     bool // the answers to the workers' writes
	streaming bool // a watch sends the objects that exist, until its bookmark
	keys      map[string]*keyLedger
}

// keyLedger is what the events prove about a key.
type keyLedger struct {
	deltas int    // that are in the delta queue
	stored string // the version in the store
	gone   bool   // the store has deleted it
	own    string // the version of the newest write by a worker

	adds       int // calls of Add since the last Get
	processing bool
	failures   int  // in a row, at the last AddRateLimited, until the next Get
	unforgot   bool // a call has succeeded, and no Forget since: the limiter counts on

	called  bool   // a call of reconcile has been seen, and no Forget since
	before  string // the version in the store when it began
	sent    int    // the writes of this call
	written string // the version that the server gave to the newest of them
	failed  bool   // the call returned an error
}

func newLedger(reads bool) *ledger { return &ledger{reads: reads, keys: map[string]*keyLedger{}} }

func (l *ledger) key(key string) *keyLedger {
	k := l.keys[key]
	if k == nil {
		if len(l.keys) >= maxKnown {
			clear(l.keys)
		}
		k = &keyLedger{}
		l.keys[key] = k
	}
	return k
}

// wrote notes the version that the server has given to a write of a worker.
func (l *ledger) wrote(key, resourceVersion string) {
	k := l.key(key)
	k.own, k.written = resourceVersion, resourceVersion
}

// enter notes an event, and returns the fact about it.
func (l *ledger) enter(event trace.Event) fact {
	switch event.Hop {
	case trace.Server:
		return l.server(event)
	case trace.Queue:
		return l.queue(event)
	case trace.Store:
		return l.store(event)
	case trace.Handler:
		return handled(event)
	case trace.Workqueue:
		return l.key(event.Key).workqueue(event)
	case trace.Worker:
		return l.worker(event)
	}
	return fact{}
}

// server notes a request, an event of a watch, or a write.
func (l *ledger) server(event trace.Event) fact {
	streaming := l.streaming
	switch event.What {
	case "LIST":
		l.streaming = false
	case "WATCH":
		l.streaming = event.Error == "" && strings.Contains(event.Detail, trace.InitialEvents)
		return factIf(l.streaming, initialFact).or(factIf(isExpired(event), expiredFact))
	case "BOOKMARK":
		l.streaming = false
		return factIf(streaming, initialFact)
	case "ERROR":
		l.streaming = false
		return factIf(isExpired(event), expiredFact)
	case "ADDED":
		return factIf(streaming, initialFact)
	case "MODIFIED":
		own := event.ResourceVersion != "" && l.key(event.Key).own == event.ResourceVersion
		return factIf(own, ownFact)
	case "POST", "PUT", "PATCH", "DELETE":
		if token, ok := strings.CutPrefix(event.Detail, fencingToken); ok {
			return factIf(event.Error != "", fencedFact).or(fact{name: tokenFact}).with("n", token)
		}
		l.key(event.Key).sent++
		status := statusOf(event.Detail)
		return factIf(status == http.StatusConflict, conflictFact).
			or(factIf(status >= http.StatusBadRequest, refusedFact))
	}
	return fact{}
}

// isExpired reports whether the server no longer has the changes that a watch asks for.
func isExpired(event trace.Event) bool {
	return strings.Contains(event.Error, "410 ") || strings.Contains(event.Error, "too old")
}

// statusOf returns the code of the HTTP status at the end of a write's detail, or 0 without one.
func statusOf(detail string) int {
	status := detail[strings.LastIndex(detail, ",")+1:]
	text, _, _ := strings.Cut(strings.TrimSpace(status), " ")
	code, _ := strconv.Atoi(text)
	return code
}

// queue notes what enters and leaves the delta queue.
func (l *ledger) queue(event trace.Event) fact {
	if event.Key == "" {
		return factIf(event.What == "Pop", allFact).with("types", event.Detail)
	}
	k := l.key(event.Key)
	if event.What != "Pop" {
		waiting := k.deltas
		k.deltas++
		return factIf(waiting > 0, besideFact).with("n", strconv.Itoa(waiting))
	}
	n := strings.Count(event.Detail, ",") + 1
	k.deltas = max(0, k.deltas-n)
	switch {
	case n > 1:
		return fact{name: manyFact}.with("n", strconv.Itoa(n)).with("types", event.Detail)
	case event.Detail == string(deltafifo.Replaced):
		return fact{name: listFact}
	case event.Detail == string(deltafifo.Sync):
		return fact{name: resyncFact}
	}
	return fact{}
}

// store notes a write to the store.
func (l *ledger) store(event trace.Event) fact {
	if event.Error != "" {
		return fact{}
	}
	if event.Key == "" { // its objects are not named
		for _, k := range l.keys {
			k.stored, k.gone = "", false
		}
		return fact{}
	}
	k := l.key(event.Key)
	if event.What == "Delete" {
		k.stored, k.gone = "", true
		return fact{}
	}
	k.stored, k.gone = event.ResourceVersion, false
	return replaced(event)
}

// replaced says what became of the version that a detail names.
func replaced(event trace.Event) fact {
	old, known := strings.CutPrefix(event.Detail, "was @")
	return factIf(known && old == event.ResourceVersion, sameFact).
		or(factIf(known, replacesFact).with("old", old))
}

// handled says what a handler is called with.
func handled(event trace.Event) fact {
	switch event.Detail {
	case trace.InitialList:
		return fact{name: initialFact}
	case trace.Unchanged:
		return fact{name: sameFact}
	case trace.Tombstone:
		return fact{name: lostFact}
	}
	return replaced(event)
}

// workqueue notes a call of the workqueue.
func (k *keyLedger) workqueue(event trace.Event) fact {
	switch event.What {
	case "Add":
		k.adds++
		return factIf(k.processing, againFact).or(factIf(k.adds > 1, queuedFact))
	case "AddAfter":
		delay, _, _ := strings.Cut(event.Detail, ",") // perhaps with a priority
		return fact{name: delayFact}.with("delay", delay)
	case "AddRateLimited":
		if k.unforgot { // the limiter's count is not one of failures in a row
			k.failures = 0
			return fact{}
		}
		delay, failures, known := strings.Cut(strings.TrimPrefix(event.Detail, "in "), ", failure ")
		k.failures, _ = strconv.Atoi(failures)
		return factIf(known, delayFact).with("delay", delay).with("n", failures)
	case "Get":
		adds, failures := k.adds, k.failures
		k.adds, k.failures, k.processing = 0, 0, true
		if adds == 0 {
			return factIf(failures > 0, retryFact).with("n", strconv.Itoa(failures+1))
		}
		return factIf(adds > 1, mergedFact).with("n", strconv.Itoa(adds))
	case "Done":
		again := k.processing && k.adds > 0
		k.processing = false
		return factIf(again, againFact)
	case "Forget":
		called := k.called
		k.called, k.unforgot = false, false
		return factIf(called && k.failed, gaveUpFact).or(factIf(called, successFact))
	}
	return fact{}
}

// worker notes the beginning or the end of a call of reconcile.
func (l *ledger) worker(event trace.Event) fact {
	k := l.key(event.Key)
	if event.What == "reconcile" {
		k.called, k.before, k.sent, k.written, k.failed = true, k.stored, 0, "", false
		return factIf(k.gone, goneFact).
			or(factIf(k.own != "" && k.own == k.stored, ownFact).with("version", k.own))
	}
	k.failed = event.Error != ""
	k.unforgot = k.unforgot || !k.failed
	_, delay, later := strings.Cut(event.Detail, ", again after ")
	switch {
	case k.failed || !k.called:
		return fact{}
	case later:
		return fact{name: delayFact}.with("delay", delay)
	case k.written != "" && k.written != k.before:
		return fact{name: wroteFact}.with("version", k.written)
	}
	return factIf(l.reads && k.sent == 0, nothingFact)
}

// factIf returns the fact of this name if it holds.
func factIf(holds bool, name string) fact {
	if !holds {
		return fact{}
	}
	return fact{name: name}
}

// or returns f, or another fact if f claims nothing.
func (f fact) or(other fact) fact {
	if f.name != "" {
		return f
	}
	return other
}

// with adds an argument to a fact that claims something.
func (f fact) with(name, value string) fact {
	if f.name == "" {
		return f
	}
	if f.args == nil {
		f.args = map[string]string{}
	}
	f.args[name] = value
	return f
}
