// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"example.com/informerstack/controller"
	"example.com/informerstack/informer"
	"example.com/informerstack/internal/helpers/printable"
	"example.com/informerstack/leaderelection"
	"example.com/informerstack/observe/journal"
	"example.com/informerstack/observe/sizes"
	"example.com/informerstack/store"
	"example.com/informerstack/workqueue"
)

// AddInformer adds an informer to the page. If name is "", the page uses the informer's own name.
// The returned function removes it: an informer that has stopped stays on the page, and in memory,
// until then. Why looks for keys in the informers that have a GetStore, and their objects are
// measured. An informer may have an Unread method: see Informer.Unread.
func (h *Handler) AddInformer(
	name string, subject interface{ Status() informer.Status },
) (remove func()) {
	added, meter := time.Now(), &sizes.Meter{}
	var seen informerLooks
	return add(h, &h.informers, func(wanted) Informer {
		i := describeInformer(name, subject.Status())
		seen.look(&i)
		i.added, i.meter = added, meter
		if selects, ok := subject.(selecting); ok {
			if selection, known := selects.Selection(); known {
				i.selection, i.Selection = selection, printable.Short(selection.String())
			}
		}
		if stored, ok := subject.(interface{ GetStore() store.Store }); ok {
			i.store = stored.GetStore()
		}
		if known, ok := subject.(interface{ Unread() bool }); ok {
			i.Unread = known.Unread()
		}
		return i
	})
}

// selecting is an informer.Informer of any type.
type selecting interface {
	Selection() (selection informer.Collection, known bool)
}

// nameAndSelection returns the name of the informer, and what it selects, if it is known.
func (i Informer) nameAndSelection() string {
	if i.Selection == "" {
		return i.Name
	}
	return i.Name + " selects " + i.Selection
}

// wanted says which keys of a queue or a controller are wanted: those with a text that matches, or
// at most limit of each list, after the first skip, if match is nil.
type wanted struct {
	skip, limit int
	match       func(text string) bool
	queue       string // no keys of others are wanted; "" means of all
}

// of returns what is wanted of the queue or controller with a name.
func (w wanted) of(name string) wanted {
	if w.queue != "" && w.queue != printable.Short(name) {
		return wanted{}
	}
	return w
}

// page returns the items of a list that are wanted, if match is nil.
func page[T any](list []T, w wanted) []T {
	list = list[min(w.skip, len(list)):]
	return list[:min(w.limit, len(list))]
}

func partOf[K comparable](
	queue interface{ Snapshot() workqueue.Snapshot[K] }, w wanted,
) workqueue.Part[K] {
	if w.match == nil {
		return workqueue.SnapshotOf(queue, w.skip, w.limit)
	}
	return workqueue.Find(queue, func(item K) bool { return w.match(keyText(item)) })
}

// AddQueue adds a workqueue to the page. Use it for queues without a controller. A queue that is no
// workqueue.Partial is copied whole for each question. Why shows the goroutine that has an item, if
// queue is one of package journal. The returned function removes it.
func AddQueue[K comparable](
	h *Handler, name string, queue interface{ Snapshot() workqueue.Snapshot[K] },
) (remove func()) {
	var ready readyLooks
	return add(h, &h.queues, func(w wanted) Queue {
		w = w.of(name)
		p := partOf(queue, w)
		q := Queue{
			Name:       printable.Short(name),
			Ready:      listOf(w, p.Ready, p.Total.Ready, keyText[K]),
			Processing: listOf(w, p.Processing, p.Total.Processing, keyText[K]),
			Again:      listOf(wanted{}, p.Again, p.Total.Again, keyText[K]),
			Waiting:    listOf(w, p.Waiting, p.Total.Waiting, describeWaiting[K]),
			LastDue:    orNil(p.LastDue),
			unserved:   ready.look(p.Total.Ready > 0 && p.Total.Processing == 0, p.Taken),
		}
		q.Ready.numbers = p.Numbers
		q.Order = describeOrder(p.Snapshot, queue)
		if known, ok := queue.(interface {
			Workers() map[string]journal.Worker
		}); ok {
			q.workers = known.Workers
		}
		if known, ok := queue.(interface{ ShuttingDown() bool }); ok {
			q.isShutDown = known.ShuttingDown()
		}
		return q
	})
}

// shownGroups is the number of groups of a queue on the page.
const shownGroups = 10

// describeOrder describes the order of the items of s, which queue has.
func describeOrder[K comparable](s workqueue.Snapshot[K], queue any) (o Order) {
	for item, priority := range s.Priorities {
		if o.Priorities == nil {
			o.Priorities = map[string]int{}
		}
		o.Priorities[keyText(item)] = priority
	}
	for item, group := range s.Held {
		if o.Held == nil {
			o.Held = map[string]KeyGroup{}
		}
		o.Held[keyText(item)] = describeKeyGroup(group)
	}
	if grouped, ok := queue.(workqueue.Grouped); ok {
		most, all := grouped.Groups(shownGroups)
		if all.Groups > 1 { // one group may have all items, without a name
			o.GroupCount = all.Groups
			for _, group := range most {
				o.Groups = append(o.Groups, describeKeyGroup(group))
			}
		}
	}
	return o
}

func describeKeyGroup(g workqueue.Group) KeyGroup {
	return KeyGroup{Name: printable.Short(g.Name), Queued: g.Queued, Working: g.Working,
		Workers: g.Workers}
}

// unserved says that a queue has ready items that no worker takes.
type unserved struct {
	// since is the first of the last looks that all found ready items and no worker with one, and
	// no Get between them; zero if the last look was another. So the items of the first look
	// are still there.
	since   time.Time
	longest time.Duration // between the first and the last of such looks before
}

// readyLooks are what the last looks at a queue have found.
type readyLooks struct {
	mu    sync.Mutex
	found unserved
	taken uint64
	last  time.Time
}

// look notes a look at the content of the queue, and returns what all looks have found.
func (l *readyLooks) look(ready bool, taken uint64) unserved {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := &l.found
	if !f.since.IsZero() && l.taken != taken {
		f.longest = max(f.longest, l.last.Sub(f.since))
	}
	switch {
	case !ready:
		f.since = time.Time{}
	case f.since.IsZero() || l.taken != taken:
		f.since = time.Now()
	}
	l.taken, l.last = taken, time.Now()
	return *f
}

// informerLooks are what the last looks at an informer have found.
type informerLooks struct {
	mu      sync.Mutex
	started bool
	since   time.Time // of that value of started
	calls   map[seenHandler]time.Time
}

// seenHandler is a handler that has calls to make, by its place and name, and how many have ended.
type seenHandler struct {
	at    int
	name  string
	ended int
}

// look sets the times since when the page has seen the present state of i.
func (l *informerLooks) look(i *Informer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.since.IsZero() || l.started != i.Started {
		l.started, l.since = i.Started, now
	}
	i.startedOrNot = l.since
	before := l.calls
	l.calls = map[seenHandler]time.Time{}
	for n := range i.Handlers {
		h := &i.Handlers[n]
		id := seenHandler{n, h.Name, h.Calls}
		h.sameSince = now
		if since, known := before[id]; known {
			pending := time.Duration(h.OldestPendingSeconds * float64(time.Second))
			h.sameSince = later(since, now.Add(-pending)) // it may be another one with the name
		}
		if h.Pending > 0 {
			l.calls[id] = h.sameSince
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// AddController adds a controller to the page, with its queue and its dead letters. The returned
// function removes it.
func AddController[K comparable](h *Handler, subject *controller.Controller[K]) (remove func()) {
	return add(h, &h.controllers, func(w wanted) Controller {
		return describeController(subject, w)
	})
}

// AddElection adds an elector to the page. The name is usually that of the lease. The returned
// function removes it.
func (h *Handler) AddElection(
	name string, elector interface{ Status() leaderelection.Status },
) (remove func()) {
	return add(h, &h.elections, func(wanted) Election {
		return describeElection(name, elector.Status())
	})
}

func describeInformer(name string, s informer.Status) Informer {
	if name == "" {
		name = s.Name
	}
	i := Informer{
		Name:                printable.Short(name),
		Started:             s.Started,
		Synced:              s.HasSynced,
		Stopped:             s.Stopped,
		Objects:             s.Objects,
		Phase:               s.Reflector.Phase,
		ResourceVersion:     printable.Short(s.Reflector.ResourceVersion),
		CurrentAsOf:         orNil(s.CurrentAsOf),
		LastContact:         orNil(s.Reflector.LastContact),
		LastEvent:           orNil(s.Reflector.LastEvent),
		LastBookmark:        orNil(s.Reflector.LastBookmark),
		Failures:            s.Reflector.Failures,
		ConsecutiveFailures: s.Reflector.ConsecutiveFailures,
		Fallbacks:           s.Reflector.Fallbacks,
		LastErrorTime:       orNil(s.Reflector.LastErrorTime),
		TransformingSince:   orNil(s.Reflector.TransformingSince),
		StoringSince:        orNil(s.StoringSince),
		LastError:           errorText(s.Reflector.LastError),
		Handlers:            make([]HandlerInfo, 0, len(s.Handlers)),
	}
	for _, handler := range s.Handlers {
		i.Handlers = append(i.Handlers, HandlerInfo{
			Name:                 printable.Short(handler.Name),
			Synced:               handler.HasSynced,
			Pending:              handler.Pending,
			OldestPendingSeconds: handler.OldestPending.Seconds(),
			Calls:                handler.Calls,
			Panics:               handler.Panics,
		})
	}
	return i
}

func describeController[K comparable](subject *controller.Controller[K], w wanted) Controller {
	var s controller.Part[K]
	if w = w.of(subject.Status().Name); w.match == nil {
		s = subject.SnapshotOf(w.skip, w.limit)
	} else {
		s = subject.Find(func(key K) bool { return w.match(keyText(key)) })
	}
	running := s.Running // also those that do not match: an answer has the longest
	if w.match == nil {
		running = page(running, w)
	}
	c := Controller{
		Name:        printable.Short(s.Name),
		Phase:       s.Phase,
		Ready:       listOf(w, s.Ready, s.Total.Ready, keyText[K]),
		Waiting:     listOf(w, s.Waiting, s.Total.Waiting, describeWaiting[K]),
		LastDue:     orNil(s.LastDue),
		Running:     listOf(w, running, len(s.Running), describeRunning[K]),
		Failing:     listOf(w, s.Failing, s.Status.Failing, describeFailing[K]),
		DeadLetters: lettersOf(subject, w),
		Evicted:     s.Evicted,
		KeyErrors:   s.KeyErrors,
		Outcomes:    map[string]uint64{},
	}
	c.Ready.numbers = s.Numbers
	c.Order = describeOrder(
		workqueue.Snapshot[K]{Priorities: s.Priorities, Held: s.Held}, subject)
	c.Ready.Total = max(c.Ready.Total, s.Queued) // a queue without Snapshot has only a length
	for outcome, count := range s.Outcomes {
		c.Outcomes[string(outcome)] = count
	}
	for _, cache := range s.Missing {
		c.Missing = append(c.Missing, MissingCache{
			Name: printable.Short(cache.Name), Error: errorText(cache.Err),
		})
	}
	return c
}

func describeElection(name string, s leaderelection.Status) Election {
	e := Election{
		Name:        printable.Short(name),
		Phase:       s.Phase,
		Leader:      printable.Short(s.Leader),
		RetryPeriod: s.RetryPeriod,
		LastRenewal: orNil(s.LastRenewal),
		LastError:   errorText(s.LastError),

		LastErrorTime: orNil(s.LastErrorTime),
	}
	e.Leading = s.Phase == leaderelection.Leading || s.Phase == leaderelection.Finishing
	if s.Phase == leaderelection.Idle {
		e.Leader = "" // it does not look any more
	}
	return e
}

func describeWaiting[K comparable](w workqueue.Waiting[K]) WaitingKey {
	return WaitingKey{Key: keyText(w.Item), Due: w.Due, Attempts: w.Failures}
}

func describeRunning[K comparable](r controller.Running[K]) RunningKey {
	return RunningKey{Key: keyText(r.Key), ReconcileID: string(r.ReconcileID), Since: r.Since}
}

func describeFailing[K comparable](f controller.FailedKey[K]) FailingKey {
	return FailingKey{
		Key: keyText(f.Key), Attempts: f.Attempts,
		Since: f.First.Time, Last: f.Last.Time, LastError: errorText(f.Last.Err),
	}
}

func describeDeadLetter[K comparable](d controller.FailedKey[K]) DeadLetter {
	return DeadLetter{
		Key: keyText(d.Key), Reason: d.Reason, Attempts: d.Attempts,
		Since: d.First.Time, Last: d.Last.Time, LastError: errorText(d.Last.Err),
	}
}

// lettersOf describes the dead letters that are wanted. Options of the controller bound them.
func lettersOf[K comparable](subject *controller.Controller[K], w wanted) List[DeadLetter] {
	letters := subject.DeadLetters().List()
	total := len(letters)
	if w.match != nil {
		letters = slices.DeleteFunc(letters, func(l controller.FailedKey[K]) bool {
			return !w.match(keyText(l.Key))
		})
	} else {
		letters = page(letters, w)
	}
	return listOf(w, letters, total, describeDeadLetter[K])
}

// listOf describes the items that are wanted of a list of total items.
func listOf[S, T any](w wanted, items []S, total int, describe func(S) T) List[T] {
	l := List[T]{Total: total, Before: min(w.skip, total), Items: []T{}}
	for _, item := range items {
		l.Items = append(l.Items, describe(item))
	}
	return l
}

func keyText[K comparable](key K) string { return printable.KeyOf(key) }

// errorText returns the text of err, or "" for nil. It survives an Error method that panics.
func errorText(err error) string {
	if err == nil {
		return ""
	}
	return printable.Short(fmt.Sprint(err))
}

func orNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
