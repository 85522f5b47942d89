// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"slices"
	"sync"
	"time"
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

	mu        sync.Mutex
	log       *changeLog
	listeners []*listener
	round     resyncRound // the newest
	running   bool
	synced    bool
}

// addLocked adds a listener. It is first notified of the objects in replay, as of an initial list.
func (p *processor) addLocked(l *listener, replay []any) {
	changes := make([]change, 0, len(replay))
	for _, obj := range replay {
		changes = append(changes, add(obj, true))
	}
	l.backlog = p.log.newCursor(changes, p.synced)
	if l.options.Coalesce {
		own := newCoalescingBacklog(l.wanted)
		for b := l.backlog.next(); b != nil; b = l.backlog.next() {
			own.push(b)
		}
		l.backlog = own
	}
	p.listeners = append(p.listeners, l)
	if p.running {
		p.goroutines.Go(l.run)
	}
}

// removeLocked removes a listener. Removing an unknown one is a no-op.
func (p *processor) removeLocked(l *listener) {
	i := slices.Index(p.listeners, l)
	if i < 0 {
		return
	}
	p.listeners = slices.Delete(p.listeners, i, i+1)
	p.round = p.round.without(l)
	l.close(p.running)
}

// distributeLocked appends changes for every listener.
func (p *processor) distributeLocked(changes []change) {
	if len(p.listeners) == 0 {
		return
	}
	for some := range slices.Chunk(changes, batchLen) {
		p.appendLocked(some, false)
	}
}

func (p *processor) appendLocked(changes []change, synced bool) {
	appended := p.log.append(changes, synced, p.round)
	for _, l := range p.listeners {
		l.backlog.push(appended)
		l.wakeUp()
	}
}

// start starts the goroutines that call the handlers.
func (p *processor) start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = true
	for _, l := range p.listeners {
		p.goroutines.Go(l.run)
	}
}

// stop removes every listener and waits until the last call has returned.
func (p *processor) stop() {
	p.mu.Lock()
	for _, l := range p.listeners {
		l.close(p.running)
	}
	p.listeners = nil
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
	p.round = make(resyncRound, len(p.listeners))
	anyDue := false
	for _, l := range p.listeners {
		due := l.resync.check(now)
		p.round[l] = due
		anyDue = anyDue || due
	}
	return anyDue
}

// status returns the status of every listener.
func (p *processor) status() []HandlerStatus {
	p.mu.Lock()
	listeners := slices.Clone(p.listeners)
	p.mu.Unlock()
	all := make([]HandlerStatus, 0, len(listeners))
	for _, l := range listeners {
		all = append(all, l.Status())
	}
	return all
}
