// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// call is what is noted of a Call: facts alone, which texts are made of when they are read.
type call struct {
	time     time.Time
	age      time.Duration // of the change, in the informer's queue; 0 if it is not known
	duration time.Duration
	handler  *handlerName
	name     *string // of the handler; nil until it is known
	kind     Kind
	key      string
	versions versions
	number   int
	changed  *change
	added    []place  // as Call.Added
	first    [1]place // the room of added, mostly
	bytes    int32
	partial  bool // the object is metadata alone
	isLast   bool // it is one of the lastCalls of its object
}

// handlerName is the identity of a handler, without the handler: two handlers may have one name.
type handlerName struct {
	informer string
	name     atomic.Pointer[string]
	counts   handlerCounts // guarded by the Journal's mutex
}

// handlerCounts are where the calls of a handler with one name are counted. They are looked up once
// for each recording.
type handlerCounts struct {
	recording int
	name      *string
	facts     *HandlerFacts
	arrows    []arrowCount
}

type arrowCount struct {
	queue *queueName
	adds  *int
}

// change has the fields and the managers of an update. It does not change.
type change struct{ fields, managers []string }

// object is what is remembered of an object, for one handler.
type object struct {
	last   []*call // the last changes, and the last resync
	resync *call   // that of last
	count  int
	adds   *pair[place, history] // the key that its last call has added last
}

// remember adds a call: the last changes, and the last resync are kept. Resyncs have no end, and
// must not evict the change that they repeat. It returns by how many bytes the object has grown.
func (o *object) remember(c *call) (bytes int) {
	o.count++
	c.number = o.count
	evicted := -1
	changes := len(o.last)
	if o.resync != nil {
		changes--
	}
	switch {
	case c.isResync() && o.resync != nil:
		evicted = slices.Index(o.last, o.resync)
	case !c.isResync() && changes == maxLast:
		evicted = 0
		if o.last[0] == o.resync {
			evicted = 1
		}
	}
	if c.isResync() {
		o.resync = c
	}
	c.isLast = true
	if evicted < 0 {
		o.last = append(o.last, c)
		return int(c.bytes)
	}
	old := o.last[evicted]
	old.isLast = false
	copy(o.last[evicted:], o.last[evicted+1:])
	o.last[len(o.last)-1] = c
	return int(c.bytes) - int(old.bytes)
}

// isResync reports whether the call repeats what was delivered before.
func (c *call) isResync() bool { return c.kind == Resync }

func (c *call) handlerName() string {
	if c.name != nil {
		return *c.name
	}
	return ""
}

// named names a call that began before Handler.Named.
func (c *call) named() { c.name = c.handler.name.Load() }

// adds notes a key that the call has added: the first ones are kept, and the last.
func (c *call) adds(p place) {
	switch {
	case slices.ContainsFunc(c.added, p.isShownAs):
		return
	case c.added == nil:
		c.first[0] = p
		c.added = c.first[:]
	default:
		c.added = append(c.added[:min(len(c.added), maxCauses-1)], p)
	}
	c.bytes = c.size()
}

func (p place) isShownAs(other place) bool {
	return p.key == other.key && p.queue.name == other.queue.name
}

// size is about the memory of the call: the texts are its own, except those of handlers.
func (c *call) size() int32 {
	n := callBytes + len(c.key)
	if texts := c.versions.texts; texts != nil {
		n += len(texts[0]) + len(texts[1]) + 2*textBytes
	}
	if c.changed != nil {
		for _, text := range c.changed.fields {
			n += textBytes + len(text)
		}
		for _, text := range c.changed.managers {
			n += textBytes + len(text)
		}
	}
	for _, p := range c.added {
		n += keyBytes + len(p.key)
	}
	return int32(n)
}

// public returns the call for readers without the Journal's lock.
func (c *call) public() *Call {
	p := &Call{Time: c.time, Duration: c.duration, Informer: c.handler.informer,
		Handler: c.handlerName(), Kind: c.kind, Key: c.key, Number: c.number,
		Added: make([]string, 0, len(c.added))}
	p.Was, p.ResourceVersion = c.versions.read()
	if c.age > 0 {
		p.Queued = c.time.Add(-c.age)
	}
	if c.changed != nil {
		p.Fields, p.Managers = c.changed.fields, c.changed.managers
	}
	for _, added := range c.added {
		p.Added = append(p.Added, added.queue.name+" "+added.key)
		p.keys = append(p.keys, QueueKey{added.queue.name, added.key})
	}
	return p
}

// versions are the resourceVersion before an update and that of the object. Servers use decimal
// numbers, which need no memory of their own.
type versions struct {
	was, is uint64     // 0 for ""
	texts   *[2]string // of others
}

func newVersions(was, is string) (v versions) {
	var known [2]bool
	v.was, known[0] = decimal(was)
	v.is, known[1] = decimal(is)
	if !known[0] || !known[1] {
		v.texts = &[2]string{strings.Clone(was), strings.Clone(is)}
	}
	return v
}

func (v versions) read() (was, is string) {
	if v.texts != nil {
		return v.texts[0], v.texts[1]
	}
	text := func(n uint64) string {
		if n == 0 {
			return ""
		}
		return strconv.FormatUint(n, 10)
	}
	return text(v.was), text(v.is)
}

// decimal returns the number of a text that strconv.FormatUint returns, or 0 for "".
func decimal(text string) (n uint64, ok bool) {
	const digits = 19 // of any number with so many
	if text == "" {
		return 0, true
	}
	if len(text) > digits || text[0] == '0' {
		return 0, false
	}
	for i := range len(text) {
		digit := text[i] - '0'
		if digit > 9 {
			return 0, false
		}
		n = 10*n + uint64(digit)
	}
	return n, true
}

// running is a call that has not ended.
type running struct {
	*call
	goroutine int64
	outer     *running // of a handler that called this one
	object    *pair[objectID, object]
	places    []place // of the keys that it has added
}

// seen is what a handler is called with.
type seen struct {
	handler      *handlerName
	kind         Kind
	key          string
	version, was string
	before, obj  any
	managers     managers
	partial      bool
}

// enter notes a call, which begins now. age is that of the change.
func (j *Journal) enter(s *seen, changed *change, now time.Time, age time.Duration) *running {
	own := goroutine()
	j.mu.Lock()
	defer j.mu.Unlock()
	id := objectID{s.handler, s.key}
	of := j.objects.get(id)
	if of == nil {
		id.key = strings.Clone(id.key) // it may be a part of a large text
		of = j.objects.put(id, object{}, placeBytes+len(id.key))
	}
	c := &call{time: now, age: max(age, 0), handler: s.handler, kind: s.kind, key: of.key.key,
		versions: newVersions(s.was, s.version), changed: changed, partial: s.partial}
	c.named()
	c.bytes = c.size()
	j.objects.resize(of, of.bytes+of.value.remember(c))
	r := j.spareLocked()
	*r = running{c, own, j.calls[own], of, r.places[:0]}
	j.calls[own] = r
	return r
}

// leave notes the end of a call. It reports whether the object may be compared with a sample.
func (j *Journal) leave(r *running) (sampled bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	sampled = j.sampled[r.key] > 0
	if j.calls[r.goroutine] != r { // the recording began anew
		return sampled
	}
	if delete(j.calls, r.goroutine); r.outer != nil {
		j.calls[r.goroutine] = r.outer
	}
	r.duration = max(time.Since(r.time), time.Nanosecond)
	r.named()
	if len(r.places) > 1 { // those before the last have the call as a cause, which has grown
		for _, p := range r.places {
			if h := j.keys.get(p); h != nil {
				h.value.recount()
				j.keys.resize(h, h.value.size(p))
			}
		}
	}
	j.countsLocked(r.call).facts.note(r.call, j.periodAt(r.time.Add(r.duration)))
	if clear(r.places); len(j.spare) < maxSpare && cap(r.places) <= maxSpare {
		j.spare = append(j.spare, r)
	}
	return sampled
}

// maxSpare bounds the records that are kept to be used again, and the places of each.
const maxSpare = 64

func (j *Journal) spareLocked() *running {
	n := len(j.spare)
	if n == 0 {
		return &running{}
	}
	r := j.spare[n-1]
	j.spare = j.spare[:n-1]
	return r
}

// addsLocked notes a key that a call adds.
func (j *Journal) addsLocked(r *running, p place) {
	r.named()
	if len(r.places) < maxKeys {
		r.places = append(r.places, p)
	}
	before := r.bytes
	if r.adds(p); r.isLast {
		j.objects.resize(r.object, r.object.bytes+int(r.bytes-before))
	}
	if adds := j.arrowLocked(r.call, p.queue); adds != nil {
		*adds++
	}
}

// countsLocked returns where the calls of the handler with its present name are counted.
func (j *Journal) countsLocked(c *call) *handlerCounts {
	counts := &c.handler.counts
	if counts.recording != j.recordings || counts.name != c.name {
		name := [2]string{c.handler.informer, c.handlerName()}
		*counts = handlerCounts{recording: j.recordings, name: c.name,
			facts: entry(j.handlers, name, func() *HandlerFacts {
				return &HandlerFacts{Informer: name[0], Handler: name[1]}
			})}
	}
	return counts
}

// maxArrows bounds the queues of a handler that are not looked up each time.
const maxArrows = 8

// arrowLocked returns where the Adds of the handler to a queue are counted; nil without room.
func (j *Journal) arrowLocked(c *call, queue *queueName) *int {
	counts := j.countsLocked(c)
	for _, known := range counts.arrows {
		if known.queue == queue {
			return known.adds
		}
	}
	arrow := Arrow{c.handler.informer, c.handlerName(), queue.name, 0}
	adds := j.arrows[arrow]
	if adds == nil && len(j.arrows) < maxNames {
		adds = new(int)
		j.arrows[arrow] = adds
	}
	if adds != nil && len(counts.arrows) < maxArrows {
		counts.arrows = append(counts.arrows, arrowCount{queue, adds})
	}
	return adds
}
