// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"example.com/informerstack/internal/helpers/printable"
)

// Facts is what was remembered since the recording began.
type Facts struct {
	Recording bool      `json:"recording"`
	Since     time.Time `json:"since"`
	// RecentSince is when the Recent counts begin: Since, or five to ten minutes ago.
	RecentSince time.Time `json:"-"`

	Handlers []HandlerFacts `json:"handlers"`
	Queues   []QueueFacts   `json:"queues"`
	// Arrows lead from handlers to the queues that they add keys to.
	Arrows []Arrow `json:"arrows"`
	// Modified are objects that were changed in a cache, one for each informer.
	Modified []Modified `json:"modified,omitempty"`
	// Throttled is nil if no request has waited for its client's limiter.
	Throttled *Throttled `json:"throttled,omitempty"`
	// TooMany is the number of goroutines if there are too many to look at: then it is not known
	// whether requests wait now.
	TooMany int `json:"tooManyGoroutines,omitempty"`
	// Errors is the number of those that came from runtime.HandleError; nil without HearErrors.
	Errors *int `json:"errors,omitempty"`
	// Keys are those of queues that were reconciled most often since RecentSince, the most frequent
	// first, and then those that were not since.
	Keys []KeyFacts `json:"keys"`
}

// HandlerFacts is about a handler of an informer. Handlers with one name are one.
type HandlerFacts struct {
	Informer string       `json:"informer"`
	Handler  string       `json:"handler"`
	Calls    int          `json:"calls"`
	Filtered int          `json:"filtered"` // calls that added no key
	Kinds    map[Kind]int `json:"kinds"`
	// Idle are updates that changed no field that the informer keeps; see Call.Fields. It is not
	// known for metadata alone.
	Idle    int           `json:"idle"`
	Time    time.Duration `json:"timeNanoseconds"` // of all calls
	Longest time.Duration `json:"longestNanoseconds"`
	// LastIdle is when the last of the Idle updates came, and LastSlow the last call that took
	// longer than SlowCall.
	LastIdle time.Time `json:"lastIdle,omitzero"`
	LastSlow time.Time `json:"lastSlow,omitzero"`
	// Running is a call that has not returned.
	Running *Call      `json:"running,omitempty"`
	Recent  CallCounts `json:"-"`

	kinds  [len(kinds)]int // Kinds
	recent periods[CallCounts]
}

// kinds are those of calls.
var kinds = [...]Kind{InitialList, Added, Updated, Deleted, Tombstone, Resync, Relist}

// results are those of reconciles.
var results = [...]Result{Running, Forgotten, Retried, Postponed, NoForget}

func indexOf(result Result) int { return slices.Index(results[:], result) }

// SlowCall is how long no call takes that only adds a key.
const SlowCall = 5 * time.Millisecond

func (f *HandlerFacts) note(c *call, at int64) {
	recent := f.recent.in(at)
	recent.Calls++
	recent.Time += c.duration
	recent.Longest = max(recent.Longest, c.duration)
	if c.kind == Updated {
		recent.Updates++
	}
	f.Calls++
	f.kinds[slices.Index(kinds[:], c.kind)]++
	if len(c.added) == 0 {
		f.Filtered++
	}
	if c.changed != nil && c.changed.fields != nil && len(c.changed.fields) == 0 && !c.partial {
		f.Idle++
		recent.Idle++
		f.LastIdle = c.time
	}
	if c.duration > SlowCall {
		f.LastSlow = c.time
	}
	f.Time += c.duration
	f.Longest = max(f.Longest, c.duration)
}

// facts returns a copy for readers without the Journal's lock.
func (f *HandlerFacts) facts(at int64) HandlerFacts {
	facts := *f
	facts.Recent = f.recent.in(at).plus(f.recent.before)
	facts.Kinds = map[Kind]int{}
	for i, n := range f.kinds {
		if n > 0 {
			facts.Kinds[kinds[i]] = n
		}
	}
	return facts
}

// QueueFacts is about the reconciles of a queue. Queues with one name are one.
type QueueFacts struct {
	Queue      string         `json:"queue"`
	Reconciles int            `json:"reconciles"`
	Results    map[Result]int `json:"results"`
	Resyncs    int            `json:"resyncs"` // reconciles that had only resyncs as causes
	// Median is the median duration of the last reconciles, and Slowest the longest of all that
	// have ended.
	Median  time.Duration `json:"medianNanoseconds"`
	Slowest time.Duration `json:"slowestNanoseconds"`
	// LastResync and LastNoForget are when the last of these reconciles began.
	LastResync   time.Time `json:"lastResync,omitzero"`
	LastNoForget time.Time `json:"lastNoForget,omitzero"`

	Recent ReconcileCounts `json:"-"`
}

// Arrow leads from a handler to a queue.
type Arrow struct {
	Informer string `json:"informer"`
	Handler  string `json:"handler"`
	Queue    string `json:"queue"`
	Adds     int    `json:"adds"`
}

// KeyFacts is about a key of a queue.
type KeyFacts struct {
	Queue      string `json:"queue"`
	Key        string `json:"key"`
	Reconciles int    `json:"reconciles"`
	Recent     int    `json:"-"` // of Reconciles, those since RecentSince
	// Echoes is the number of the last Of reconciles that the one before has caused: it, or another
	// part of this program, wrote the object meanwhile, and the only causes are updates of it that
	// came until 250 ms after the end. Both count since a reconcile that nothing followed so soon.
	Echoes int `json:"echoes"`
	Of     int `json:"of"`
	// Several is true if different items of the queue have this text, such as structs that embed a
	// type with a String method. Then it is not known which of them the rest is about.
	Several bool `json:"several,omitempty"`
	// Last are the last reconciles, the newest first. The first one may be running.
	Last []Reconcile `json:"last"`
	// Limited is the last AddRateLimited since the last Forget; nil if it is not known.
	Limited *Limited `json:"lastAddRateLimited,omitempty"`
	// Waiting are the Adds since the last Get, delayed ones included.
	Waiting []Cause `json:"waiting,omitempty"`
}

// Scope says what a Journal knows of all keys.
type Scope struct {
	// Since is the time after which the calls and reconciles of a key were dropped only for later
	// ones of the same key: when the recording began, or when it last had no room.
	Since time.Time `json:"since"`
	// Requests is true if a client sends its requests through Journal.Writes.
	Requests bool `json:"requests"`
}

// Scope returns the Scope of the recording; nil if nothing is recorded.
func (j *Journal) Scope() *Scope {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.recording() {
		return nil
	}
	s := Scope{Since: j.since, Requests: j.requests}
	for _, lost := range []time.Time{j.objects.lost, j.keys.lost} {
		if lost.After(s.Since) {
			s.Since = lost
		}
	}
	return &s
}

// queueFacts are counted while keys are reconciled. Results and Median are made when they are read.
type queueFacts struct {
	QueueFacts
	results   [len(results)]int
	durations []time.Duration // of the last ones, a ring
	recent    periods[ReconcileCounts]
}

const maxDurations = 64

func (f *queueFacts) note(r *Reconcile, at int64) {
	recent := f.recent.in(at)
	recent.Reconciles++
	if f.results[indexOf(r.Result)]++; r.Result == NoForget {
		f.LastNoForget = r.Start
	}
	resyncs := !slices.ContainsFunc(r.Causes, func(c Cause) bool { return c.Kind != Resync })
	if resyncs && r.More == 0 {
		f.Resyncs++
		recent.Resyncs++
		f.LastResync = r.Start
	}
	if len(f.durations) < maxDurations {
		f.durations = append(f.durations, r.Duration)
	} else {
		f.durations[f.Reconciles%maxDurations] = r.Duration
	}
	f.Slowest = max(f.Slowest, r.Duration)
	f.Reconciles++
}

func (f *queueFacts) facts(name string, at int64) QueueFacts {
	q := f.QueueFacts
	q.Recent = f.recent.in(at).plus(f.recent.before)
	q.Queue, q.Results = name, map[Result]int{}
	for i, n := range f.results {
		if n > 0 {
			q.Results[results[i]] = n
		}
	}
	if len(f.durations) > 0 {
		sorted := slices.Sorted(slices.Values(f.durations))
		q.Median = sorted[len(sorted)/2]
	}
	return q
}

// Facts returns what is remembered of everything, with at most limit keys.
func (j *Journal) Facts(limit int) Facts {
	f := j.facts(limit)
	if f.Recording {
		f.Throttled, f.TooMany = j.looks.take(), tooMany()
	}
	return f
}

// busiest are the keys that were reconciled most often, the first ones of those with equal counts.
type busiest []counted

// counted is a key and how often it was reconciled.
type counted struct {
	place         place
	history       *history
	recent, count int
}

// add inserts a key, and drops the last one if there are more than limit. Most keys are not among
// the few that are wanted: they cost a comparison.
func (b *busiest) add(key counted, limit int) {
	less := func(a, b counted) int {
		return cmp.Or(cmp.Compare(b.recent, a.recent), cmp.Compare(b.count, a.count))
	}
	all := *b
	if len(all) >= limit && (limit == 0 || less(key, all[limit-1]) >= 0) {
		return
	}
	at := sort.Search(len(all), func(i int) bool { return less(key, all[i]) < 0 })
	all = slices.Insert(all, at, key)
	*b = all[:min(limit, len(all))]
}

func (j *Journal) facts(limit int) Facts {
	j.mu.Lock()
	defer j.mu.Unlock()
	f := Facts{Recording: j.recording(), Since: j.since, Handlers: []HandlerFacts{},
		Queues: []QueueFacts{}, Arrows: []Arrow{}, Keys: []KeyFacts{}}
	if !f.Recording {
		return f
	}
	at := j.periodAt(time.Now())
	f.RecentSince = j.recentSinceLocked()
	f.Errors = j.failures.known()
	for _, h := range j.handlers {
		f.Handlers = append(f.Handlers, h.facts(at))
	}
	for _, call := range j.calls {
		f.addRunning(call.public())
	}
	for _, m := range j.modified {
		f.Modified = append(f.Modified, *m)
	}
	for name, q := range j.queues {
		f.Queues = append(f.Queues, q.facts(name, at))
	}
	for arrow, adds := range j.arrows {
		arrow.Adds = *adds
		f.Arrows = append(f.Arrows, arrow)
	}
	var keys busiest
	j.keys.all(func(p place, h *history) {
		if h.count > 0 {
			keys.add(counted{p, h, *h.recent.in(at) + h.recent.before, h.count}, limit)
		}
	})
	for _, key := range keys {
		f.Keys = append(f.Keys, key.history.facts(key.place, at))
	}
	slices.SortFunc(f.Handlers, func(a, b HandlerFacts) int {
		return cmp.Or(cmp.Compare(a.Informer, b.Informer), cmp.Compare(a.Handler, b.Handler))
	})
	slices.SortFunc(f.Modified, func(a, b Modified) int {
		return cmp.Compare(a.Informer, b.Informer)
	})
	slices.SortFunc(f.Queues, func(a, b QueueFacts) int { return cmp.Compare(a.Queue, b.Queue) })
	slices.SortFunc(f.Arrows, func(a, b Arrow) int {
		return cmp.Or(cmp.Compare(a.Informer, b.Informer), cmp.Compare(a.Handler, b.Handler),
			cmp.Compare(a.Queue, b.Queue))
	})
	return f
}

// addRunning adds the longest of the calls that a handler has not returned from.
func (f *Facts) addRunning(call *Call) {
	at := slices.IndexFunc(f.Handlers, func(h HandlerFacts) bool {
		return h.Informer == call.Informer && h.Handler == call.Handler
	})
	if at < 0 {
		f.Handlers = append(f.Handlers, HandlerFacts{
			Informer: call.Informer, Handler: call.Handler, Kinds: map[Kind]int{}})
		at = len(f.Handlers) - 1
	}
	if h := &f.Handlers[at]; h.Running == nil || call.Time.Before(h.Running.Time) {
		h.Running = call
	}
}

// Adds reports whether a handler has added a key to a queue since the recording began. It is also
// true if there are too many handlers and queues to know.
func (j *Journal) Adds(informer, handler string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	for arrow := range j.arrows {
		if arrow.Informer == informer && arrow.Handler == handler {
			return true
		}
	}
	return len(j.arrows) >= maxNames
}

// About returns the last calls of handlers for objects with a key, the newest first, and what is
// remembered of the key in each queue, without a reconcile if it has only been added. Keys have the
// form of printable.Canonical.
func (j *Journal) About(key string) (calls []Call, queues []KeyFacts) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.recording() {
		return nil, nil
	}
	j.objects.all(func(id objectID, o *object) {
		if id.key != key {
			return
		}
		for _, call := range o.last {
			calls = append(calls, *call.public())
		}
	})
	slices.SortStableFunc(calls, func(a, b Call) int { return b.Time.Compare(a.Time) })
	j.keys.all(func(p place, h *history) {
		if printable.Canonical(p.key) == key {
			queues = append(queues, h.facts(p, j.periodAt(time.Now())))
		}
	})
	return calls, queues
}

func (h *history) facts(p place, at int64) KeyFacts {
	f := KeyFacts{Queue: p.queue.name, Key: p.key, Reconciles: h.count, Several: h.several,
		Last: []Reconcile{}}
	f.Recent = *h.recent.in(at) + h.recent.before
	f.Echoes, f.Of = h.echoed()
	f.Limited = h.limited // nothing changes it
	if h.current != nil {
		f.Last = append(f.Last, h.current.copied())
	}
	for _, r := range slices.Backward(h.last) {
		f.Last = append(f.Last, r.copied())
	}
	waiting := slices.Clone(h.causes)
	if h.delayed != nil && (len(f.Last) == 0 || !h.delayed.Time.Before(f.Last[0].Start)) {
		waiting = append(waiting, *h.delayed)
	}
	f.Waiting = copiedCauses(waiting)
	return f
}

func copiedCauses(causes []Cause) []Cause {
	causes = slices.Clone(causes)
	for i, c := range causes {
		if c.call != nil {
			causes[i].Call, causes[i].call = c.call.public(), nil
		}
	}
	return causes
}

// copied returns a copy for readers without the Journal's lock.
func (r Reconcile) copied() Reconcile {
	r.Causes = copiedCauses(r.Causes)
	r.Requests = slices.Clone(r.Requests)
	for i, request := range r.Requests {
		copied := *request
		r.Requests[i] = &copied
	}
	return r
}
