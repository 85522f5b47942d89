// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"
)

// processor distributes every change to every handler.
//
// mu is held while a change is stored and appended to the change log. So under mu the store and the
// log agree. A late handler is added under mu: it gets the content of the store and misses no
// change after that. No handler is called under mu.
//
//	P1  a listener in listeners has a running goroutine  <=>  running
//	P2  before mu is released, every change is in the log and every listener is woken
//	P3  synced  <=>  the end of the initial list is in the log
//
// Source: tools/cache/shared_informer.go sharedProcessor
type processor struct {
	goroutines sync.WaitGroup

	listeners atomic.Pointer[[]*listener] // see all; mu guards only its changes

	mu      sync.Mutex
	log     *changeLog
	added   int         // number of listeners ever added, and the id of the newest
	round   resyncRound // the newest
	running bool
	synced  bool
}

// addLocked adds a listener. It is first notified of the objects in replay, as of an initial list.
func (p *processor) addLocked(l *listener, replay []any) {
	changes := make([]change, 0, len(replay))
	for _, obj := range replay {
		changes = append(changes, add(obj, true))
	}
	l.backlog = p.log.newCursor(changes, p.synced)
	if l.options.Coalesce {
		l.coalesced = newCoalescingBacklog(l.wanted)
		for b := l.backlog.next(); b != nil; b = l.backlog.next() {
			l.coalesced.push(b)
		}
		l.backlog = l.coalesced
	}
	p.added++
	l.id = p.added
	p.setListenersLocked(append(slices.Clip(p.all()), l))
	if p.running {
		p.goroutines.Go(l.run)
	}
}

// removeLocked removes a listener. Removing an unknown one is a no-op.
func (p *processor) removeLocked(l *listener) {
	i := slices.Index(p.all(), l)
	if i < 0 {
		return
	}
	p.setListenersLocked(slices.Delete(slices.Clone(p.all()), i, i+1))
	l.close(p.running)
}

// all returns the listeners. It does not wait for mu, which is held while a change is stored.
func (p *processor) all() []*listener {
	if listeners := p.listeners.Load(); listeners != nil {
		return *listeners
	}
	return nil
}

// setListenersLocked replaces the listeners by others, which do not change any more.
func (p *processor) setListenersLocked(listeners []*listener) { p.listeners.Store(&listeners) }

// distributeLocked appends changes for every listener.
func (p *processor) distributeLocked(changes []change) {
	if len(p.all()) == 0 {
		return
	}
	for some := range slices.Chunk(changes, batchLen) {
		p.appendLocked(some, false)
	}
}

func (p *processor) appendLocked(changes []change, synced bool) {
	appended := p.log.append(changes, synced, p.round)
	for _, l := range p.all() {
		if l.coalesced != nil {
			l.coalesced.push(appended)
		}
		select {
		case l.wake <- struct{}{}:
		default: // it has a token
		}
	}
}

// start starts the goroutines that call the handlers.
func (p *processor) start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = true
	for _, l := range p.all() {
		p.goroutines.Go(l.run)
	}
}

// stop removes every listener and waits until the last call has returned.
func (p *processor) stop() {
	p.mu.Lock()
	for _, l := range p.all() {
		l.close(p.running)
	}
	p.setListenersLocked(nil)
	p.running = false
	p.mu.Unlock()
	p.goroutines.Wait()
}

// markSynced notes that the initial list is in the store and in the log.
func (p *processor) markSynced() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.synced = true
	p.appendLocked(nil, true)
}

// shouldResync selects the listeners of the next resync. It reports whether there is any.
func (p *processor) shouldResync() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	listeners := p.all()
	p.round = make(resyncRound, len(listeners))
	anyDue := false
	for _, l := range listeners {
		due := l.resync.check(now)
		p.round[l.id] = due
		anyDue = anyDue || due
	}
	return anyDue
}

// status returns the status of every listener. It does not block.
func (p *processor) status() []HandlerStatus {
	listeners := p.all()
	statuses := make([]HandlerStatus, 0, len(listeners))
	for _, l := range listeners {
		statuses = append(statuses, l.Status())
	}
	return statuses
}

// minimumResyncPeriod is the shortest resync period of a handler.
const minimumResyncPeriod = time.Second

// resyncSchedule is the time of the next resync of one handler. A resync is a replay of the whole
// store from memory.
type resyncSchedule struct {
	period time.Duration // 0: never
	next   time.Time     // the earliest time of the next resync
}

// check reports whether the handler takes part in a resync that begins now.
func (s *resyncSchedule) check(now time.Time) (due bool) {
	if s.period <= 0 || now.Before(s.next) {
		return false
	}
	s.next = now.Add(s.period)
	return true
}

// resyncRound is the result of one resync check: it maps the id of each listener to whether it
// takes part. Until the next check it selects the handlers that get updates without a change, from
// a resync or a relist. A round is immutable.
//
// A handler without an entry was added later, or the informer does no resyncs. It takes part,
// unless it has SkipUnchanged.
type resyncRound map[int]bool

// wants reports whether l gets c, an update without a change.
func (r resyncRound) wants(l *listener, c *change) bool {
	skip := l.options.SkipUnchanged
	due, asked := r[l.id]
	if !asked {
		due = !skip
	}
	return due && (c.resync || !skip)
}

// resyncPlan is the time between two resync checks of an informer, and so its shortest resync
// period.
type resyncPlan struct {
	checkPeriod time.Duration // 0: this informer does no resyncs
	fixed       bool          // the informer has started, and checkPeriod no longer changes
}

// admit returns the resync period of a handler that asks for wanted. Before the start a shorter
// period shortens the check period. After the start the check period is the minimum.
func (p *resyncPlan) admit(logger klog.Logger, wanted time.Duration) time.Duration {
	if wanted <= 0 {
		return 0
	}
	if wanted < minimumResyncPeriod {
		logger.Info("Warning: resync period is too small, using the minimum",
			"resyncPeriod", wanted, "minimumResyncPeriod", minimumResyncPeriod)
		wanted = minimumResyncPeriod
	}
	switch {
	case p.checkPeriod == 0:
		logger.Info("Warning: the handler's resync period is ignored because this informer does"+
			" no resyncs", "resyncPeriod", wanted)
		return 0
	case wanted >= p.checkPeriod:
		return wanted
	case p.fixed:
		logger.Info("Warning: resync period is below the check period of an informer that has"+
			" started, using the check period",
			"resyncPeriod", wanted, "resyncCheckPeriod", p.checkPeriod)
		return p.checkPeriod
	}
	p.checkPeriod = wanted
	return wanted
}
