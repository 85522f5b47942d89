// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/informerstack/controller"
	"example.com/informerstack/internal/helpers/printable"
	"example.com/informerstack/observe/journal"
)

const (
	// looks is how often a key is looked for until a queue has it, and pause the time between two.
	looks = 4
	pause = time.Millisecond
	// longCall is how long a transform, or the storing of a change, takes that is reported.
	longCall = time.Second
	// longLook is the time of looks after which one more follows, and not more.
	longLook = 50 * time.Millisecond
	// longNote is the time from the note of an AddAfter to its Add, at most.
	longNote = 100 * time.Millisecond
	// maxSameName bounds the keys that an Answer names in place of one that no informer has, and
	// maxOthers the informers that it names beside one that has the key.
	maxSameName = 5
	maxOthers   = 5
)

// Why answers why a key is not being reconciled. The key is what %v prints of an item of a queue,
// such as "namespace/name", which is its key in the informers' stores, too. It has no kind: objects
// of several informers may have it. Why looks at each item of all queues, up to four times:
// workqueue.Partial says how long a queue is locked.
func (h *Handler) Why(key string) Answer { return h.why(key, false) }

// why is Why; with stacks it looks at the stack of a worker however many goroutines there are.
func (h *Handler) why(key string, stacks bool) Answer {
	// A key may be missed that moves while it is looked for, and one that is due is for a moment in
	// no queue: look again, a little later, before the answer is that no queue has it.
	// With a million keys a look takes long enough for that.
	began := time.Now()
	answer := h.lookFor(key, stacks, false)
	for look := 2; look <= looks && !slices.Contains(inAQueue, answer.Reason); look++ {
		time.Sleep(pause)
		if time.Since(began) > longLook {
			look = looks
		}
		answer = h.lookFor(key, stacks, look == looks)
	}
	return answer
}

// WhyNow is Why with a single look: the answer is right if no key moves meanwhile.
func (h *Handler) WhyNow(key string) Answer { return h.lookFor(key, false, true) }

// inAQueue has the reasons of keys that a queue, or a dead letter, has.
var inAQueue = append(slices.Clone(onTheWay), Scheduled)

func (h *Handler) lookFor(key string, stacks, last bool) Answer {
	s := newSearch(key, time.Time{})
	s.stacks, s.last = stacks, last
	page := h.snapshot(wanted{match: s.follows(h.recording())})
	s.now = page.Time
	if j := h.recording(); j != nil {
		s.calls, s.reconciles = j.About(s.text)
		s.errors, s.recorded = j.Errors()
		s.adds, s.about, s.scope, s.now = j.Adds, j.About, j.Scope(), time.Now()
	}
	return s.answer(page)
}

// Why answers as Handler.Why does, as far as the page knows: not from stores, nor of the last calls
// of handlers. It is for pages that were kept.
func (p Page) Why(key string) Answer {
	s := newSearch(key, p.Time)
	s.kept = true
	if p.Journal != nil {
		s.errors, s.recorded = p.Journal.Errors, p.Journal.Since
		for _, k := range p.Journal.Keys {
			if s.is(k.Key) {
				k.Last = slices.Clone(k.Last)
				s.reconciles = append(s.reconciles, k)
			}
		}
	}
	return s.answer(p)
}

// search collects sentences about a key.
type search struct {
	key   string // canonical
	asked string
	text  string // of the key
	now   time.Time
	kept  bool // the page was kept, and has no stores
	last  bool // no further look follows

	stacks     bool // that of a worker is looked at, however many goroutines there are
	goroutines int  // if they were too many to look

	cut bool // a list of a queue is not whole

	// The calls and reconciles of the key are known if a journal records.
	calls      []journal.Call
	reconciles []journal.KeyFacts
	adds       func(informer, handler string) bool // whether a handler adds keys at all
	about      func(key string) ([]journal.Call, []journal.KeyFacts)
	errors     *int      // of runtime.HandleError, if they are heard
	recorded   time.Time // since then
	scope      *journal.Scope

	found     map[Reason][]string
	queues    int        // and controllers
	standby   bool       // another process leads
	addedNone bool       // no handler added a key for the last change, nor for any other object
	stack     []string   // of the worker
	has       bool       // an informer has the key
	fresh     bool       // such an informer is not known to miss changes
	old       []string   // about informers that are not, and have the key
	stale     []string   // about others that are not, and may lack it
	others    []Informer // that are synced and do not have the key
	remarks   []string   // about the program, not about the key
	waits     []string   // about leases that another process has

	versions map[string][]string // of the objects with the key, by informer
	places   map[string]place    // by the sentence about it: a key that handlers added instead
}

// newSearch returns a search for a key, in any form in which a page shows it.
func newSearch(key string, now time.Time) search {
	return search{key: printable.Canonical(key), asked: key,
		text: keyText(printable.Canonical(key)), now: now}
}

func (s *search) add(reason Reason, format string, args ...any) {
	s.found[reason] = append(s.found[reason], fmt.Sprintf(format, args...))
}

func (s *search) remark(format string, args ...any) {
	s.remarks = append(s.remarks, fmt.Sprintf(format, args...))
}

func (s *search) answer(p Page) Answer {
	s.found, s.versions, s.standby = map[Reason][]string{}, map[string][]string{}, !p.leads()
	s.places = map[string]place{}
	for _, informer := range p.Informers {
		s.informer(informer)
	}
	s.queuesOf(p)
	s.stale = slices.Concat(s.old, s.stale)
	if !s.has || !s.fresh {
		for _, sentence := range s.stale {
			s.add(Stale, "%s", sentence)
		}
	} else {
		s.remarks = append(s.remarks, s.stale...)
	}
	s.followed(p)
	for _, election := range p.Elections {
		s.election(election)
	}
	for _, group := range p.Groups {
		s.group(group)
	}
	for _, kind := range p.Kinds {
		s.kind(kind)
	}
	s.journal()
	if s.knowsNothing() {
		s.unknown()
	}
	s.remarks = append(s.remarks, s.waits...)
	if s.has && len(s.others) > 0 {
		s.remark("these informers have no object with that key: %s",
			firstOf(s.otherNames(), maxOthers))
	}
	a := Answer{Time: s.now, Key: keyText(s.asked), Evidence: []string{}, Stack: s.stack,
		Goroutines: s.goroutines,
		Calls:      s.calls, Reconciles: s.reconciles, Recorded: s.scope}
	for _, reason := range fromWorker {
		for _, sentence := range s.found[reason] {
			if a.Reason == "" {
				a.Reason, a.Sentence = reason, sentence
			} else {
				a.Evidence = append(a.Evidence, sentence)
			}
		}
	}
	if p, ok := s.places[a.Sentence]; ok {
		a.Other, a.Stack = p.key, p.stack
	}
	a.shortStack()
	a.Evidence = append(a.Evidence, s.remarks...)
	switch {
	case a.Reason != Handled && a.Reason != Behind || a.Other != "":
	case s.queues == 0:
		a.Evidence = append(a.Evidence, "no queue was found, so nothing is known of the way from "+
			"handlers to workers")
	case a.Reason == Handled && s.addedNone:
		a.Sentence += " and added no key to these queues"
	case a.Reason == Handled:
		a.Sentence += ", and no queue has the key: it was reconciled since it changed, or no " +
			"handler has added it, or a handler has added another key, or used a queue that " +
			"is not shown"
		if s.adds != nil && len(s.calls) == 0 {
			a.Evidence = append(a.Evidence, "the reasons of its reconciles are recorded from now "+
				"on: ask again after its next change")
		}
	}
	return a
}

// queuesOf looks for the key in queues and controllers.
func (s *search) queuesOf(p Page) {
	for _, queue := range p.Queues {
		s.queue(queue, p.queuesNamed(queue.Name) == 1)
	}
	for _, c := range p.Controllers {
		s.controller(c)
	}
}

// follows returns a match for the key, and for those that the handlers have added for its object.
func (s *search) follows(j *journal.Journal) (match func(item string) bool) {
	if j == nil {
		return s.is
	}
	keys := map[string]bool{s.text: true}
	calls, _ := j.About(s.text)
	for _, call := range calls {
		for _, k := range call.Keys() {
			keys[printable.Canonical(k.Key)] = true
		}
	}
	return func(item string) bool { return keys[printable.Canonical(item)] }
}

// is reports whether the text of an item means the key.
func (s *search) is(item string) bool { return printable.Canonical(item) == s.text }

func (s *search) queue(q Queue, only bool) {
	s.queues++
	s.cut = s.cut || q.Ready.more() > 0 || q.Processing.more() > 0 || q.Waiting.more() > 0
	for _, item := range q.Processing.Items {
		if s.is(item) {
			s.processing(q, item)
		}
	}
	if slices.ContainsFunc(q.Ready.Items, s.is) {
		s.ready("queue "+q.Name, q.Ready, q.Order, s.workersOf(q))
	}
	var failing []FailingKey
	count := rateLimited
	if known, ok := s.knownOf(q.Name); ok && only {
		failing = s.failed(q, known)
		if delay := s.delayIn(q, known); delay > 0 {
			count = func(n int) string {
				if n == 0 {
					return "AddAfter of " + delay.String()
				}
				return rateLimited(n)
			}
		}
		if q.isShutDown && len(known.Waiting) > 0 {
			s.remark("queue %s was shut down: what is added to it is dropped", q.Name)
		}
	}
	s.waiting("queue "+q.Name, q.Waiting, count, failing)
}

// delayIn returns the delay of the AddAfter that the key is due by; 0 if it is not known.
func (s *search) delayIn(q Queue, known journal.KeyFacts) time.Duration {
	for _, w := range q.Waiting.Items {
		for _, c := range known.Waiting {
			late := w.Due.Sub(c.Time.Add(c.Delay)) // the time between the note and the Add
			if s.is(w.Key) && c.Delay > 0 && late >= 0 && late < longNote {
				return c.Delay
			}
		}
	}
	return 0
}

// orderIn says which priority the ready key has in a queue with priorities, and whether its group
// keeps it back.
func (s *search) orderIn(o Order) (said string) {
	for key, priority := range o.Priorities {
		if s.is(key) {
			said = fmt.Sprintf(", at priority %d", priority)
		}
	}
	for key, group := range o.Held {
		if s.is(key) {
			said += "; " + group.heldText()
		}
	}
	return said
}

// workersOf says what the workers of a queue do, in which the key is ready.
func (s *search) workersOf(q Queue) string {
	switch {
	case q.Processing.Total == 0 && q.isShutDown:
		return "; no worker has a key now, and the queue was shut down"
	case q.Processing.Total == 0 && s.standby:
		return "; no worker has a key now: are the workers running? They may wait until this " +
			"process leads"
	case q.Processing.Total == 0:
		return "; no worker has a key now: are the workers running?"
	}
	longest := ""
	if q.workers != nil {
		first := s.now
		for _, worker := range q.workers() {
			if worker.Since.Before(first) {
				first = worker.Since
			}
		}
		longest = ", the longest for " + short(s.now.Sub(first))
	}
	return fmt.Sprintf("; its workers have %s%s", plural(q.Processing.Total, "other key"), longest)
}

func (s *search) processing(q Queue, item string) {
	has, again := "has "+s.text, ""
	var worker journal.Worker
	known := false
	if q.workers != nil {
		if worker, known = q.workers()[item]; known {
			has = fmt.Sprintf("has had %s for %s", s.text, short(s.now.Sub(worker.Since)))
		}
	}
	if slices.ContainsFunc(q.Again.Items, s.is) {
		again = "; it was added again since, and follows when that worker calls Done"
	}
	s.add(Reconciling, "a worker of queue %s %s, and has not called Done%s", q.Name, has, again)
	if known {
		s.goroutine(worker)
	}
}

// goroutine says what the goroutine does that has the key.
func (s *search) goroutine(worker journal.Worker) {
	if worker.Later != "" {
		s.remark("the goroutine that took it%s has taken %s since: its Done was forgotten, or is "+
			"called later, or by another goroutine", atPlace(worker.Place), worker.Later)
		return
	}
	stack, at := worker.Stack(s.stacks)
	if n, stop := journal.TooMany(); at.IsZero() && n > 0 && !s.stacks {
		s.goroutines = n
		s.remark("the stack of its goroutine was not read: the program has %d goroutines, and "+
			"would stop for about %s. To read it all the same, ask with stacks=1 (devtools "+
			"--stacks)", n, short(stop))
		return
	}
	if at.IsZero() {
		wait := max(worker.NextLook().Sub(s.now).Round(time.Second), time.Second)
		s.remark("the stack of its goroutine is not known yet: ask again in %s", wait)
		return
	}
	s.stack = stack
	if left := leftBy(stack); left != "" {
		s.remark("%s%s: its Done was forgotten, or another goroutine is to call it", left,
			atPlace(worker.Place))
	}
	if age := s.now.Sub(at); age >= time.Second {
		s.remark("its goroutine was looked at %s ago: looks are rare if there are many goroutines",
			short(age))
	}
}

// leftBy says why a goroutine with that stack does not work on its key any more; "" if it may.
func leftBy(stack []string) string {
	asks := func(frame string) bool {
		return strings.Contains(frame, "/observe/journal.(*") && strings.Contains(frame, ").Get")
	}
	switch {
	case stack == nil:
		return "the goroutine that took it has ended"
	case slices.ContainsFunc(stack, asks):
		return "the goroutine that took it waits for the next key"
	}
	return ""
}

func (s *search) ready(name string, ready List[string], order Order, remark string) {
	at := slices.IndexFunc(ready.Items, s.is)
	remark = s.orderIn(order) + remark
	switch {
	case at < 0:
	case s.kept && order.GroupCount == 0 || ready.numbers != nil:
		number := at + 1
		if !s.kept {
			number = ready.numbers[at]
		}
		s.add(Queued, "%s is number %d of %d in %s%s", s.text, number, ready.Total, name, remark)
	default:
		s.add(Queued, "%s is one of %d in %s%s", s.text, ready.Total, name, remark)
	}
}

// waiting looks for the key among those with a delay.
func (s *search) waiting(
	name string, waiting List[WaitingKey], count func(n int) string, failing []FailingKey,
) {
	for _, w := range waiting.Items {
		if !s.is(w.Key) {
			continue
		}
		reason := Scheduled
		attempts, last := w.Attempts, ""
		for _, f := range failing {
			if s.is(f.Key) {
				attempts = max(f.Attempts, attempts)
				last = fmt.Sprintf(", the last error %s ago: %s", short(s.now.Sub(f.Last)),
					f.LastError)
			}
		}
		if attempts > 0 {
			reason = Delayed
		}
		s.add(reason, "%s joins %s in %s, at %s, after %s", s.text, name,
			short(w.Due.Sub(s.now)), w.Due.Format(time.RFC3339), count(attempts)+last)
	}
}

// failures and rateLimited say what the limiter of a controller, and of a queue, has counted.
// Handlers, too, may call AddRateLimited of a queue, and a key that Forget was called for may wait.
func failures(n int) string {
	if n == 0 {
		return "AddAfter or RequeueAfter"
	}
	return plural(n, "failure")
}

func rateLimited(n int) string {
	if n == 0 {
		return "AddAfter, or AddRateLimited before a Forget"
	}
	return plural(n, "call") + " of AddRateLimited"
}

func (s *search) controller(c Controller) {
	s.queues++
	s.cut = s.cut || c.Ready.more() > 0 || c.Running.more() > 0 || c.Waiting.more() > 0 ||
		c.DeadLetters.more() > 0
	for _, r := range c.Running.Items {
		if s.is(r.Key) {
			s.add(Reconciling, "controller %s has been reconciling %s for %s (reconcileID %s)",
				c.Name, s.text, short(s.now.Sub(r.Since)), r.ReconcileID)
		}
	}
	remark := ""
	switch c.Phase {
	case controller.PhaseRunning:
		if len(c.Running.Items) > 0 {
			remark = fmt.Sprintf("; its workers have %s, the longest for %s",
				plural(c.Running.Total, "other key"), short(s.now.Sub(c.Running.Items[0].Since)))
		}
	case controller.PhaseStandby:
		remark = ", which does not lead: another process does the work"
	default:
		remark = ", which is " + string(c.Phase)
	}
	s.ready("controller "+c.Name, c.Ready, c.Order, remark)
	s.waiting("controller "+c.Name, c.Waiting, failures, c.Failing.Items)
	for _, d := range c.DeadLetters.Items {
		if s.is(d.Key) {
			s.add(GivenUp, "controller %s gave %s up %s ago (%s, attempts: %d) until it changes: "+
				"%s", c.Name, s.text, short(s.now.Sub(d.Last)), d.Reason, d.Attempts, d.LastError)
		}
	}
	for _, cache := range c.Missing {
		s.remark("controller %s waits for cache %s%s", c.Name, cache.Name, withColon(cache.Error))
	}
}

func (s *search) election(e Election) {
	switch {
	case !e.Leading:
		s.waits = append(s.waits, fmt.Sprintf("this process does not lead %s (%s): %s does",
			e.Name, e.Phase, orNone(e.Leader)))
	case e.late(s.now):
		s.remark("this process leads %s, and has not renewed the lease for %s%s", e.Name,
			short(s.now.Sub(*e.LastRenewal)), e.errorSince())
	}
}
