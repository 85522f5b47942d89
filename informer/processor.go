// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"

	"example.com/informerstack/internal/helpers/done"
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

	listeners atomic.Pointer[[]*listener] // replaced under mu; the slice itself does not change

	mu      sync.Mutex
	log     *changeLog
	added   int         // number of listeners ever added, and the id of the newest
	round   resyncRound // the newest
	running bool
	synced  bool
}

func newProcessor() *processor {
	p := &processor{log: newChangeLog()}
	p.listeners.Store(&[]*listener{})
	return p
}

// addLocked adds a listener. It is first notified of the objects in replay, as of an initial list.
func (p *processor) addLocked(l *listener, replay []any) {
	changes := make([]change, 0, len(replay))
	for _, obj := range replay {
		changes = append(changes, add(obj, true))
	}
	l.source = l.from(p.log.newCursor(changes, p.synced))
	p.added++
	l.id = p.added
	listeners := append(slices.Clip(*p.listeners.Load()), l)
	p.listeners.Store(&listeners)
	if p.running {
		p.goroutines.Go(l.run)
	}
}

// removeLocked removes a listener. Removing an unknown one is a no-op.
func (p *processor) removeLocked(l *listener) {
	listeners := slices.Clone(*p.listeners.Load())
	i := slices.Index(listeners, l)
	if i < 0 {
		return
	}
	listeners = slices.Delete(listeners, i, i+1)
	p.listeners.Store(&listeners)
	l.close(p.running)
}

// distributeLocked appends a batch of changes to the log and wakes every listener. A batch without
// changes marks the end of the initial list.
func (p *processor) distributeLocked(changes []change) {
	listeners := *p.listeners.Load()
	if len(listeners) == 0 {
		return
	}
	p.log.append(changes, p.round)
	for _, l := range listeners {
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
	for _, l := range *p.listeners.Load() {
		p.goroutines.Go(l.run)
	}
}

// stop removes every listener and waits until the last call has returned.
func (p *processor) stop() {
	p.mu.Lock()
	for _, l := range *p.listeners.Load() {
		l.close(p.running)
	}
	p.listeners.Store(&[]*listener{})
	p.running = false
	p.mu.Unlock()
	p.goroutines.Wait()
}

// markSynced notes that the initial list is in the store and in the log.
func (p *processor) markSynced() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.synced = true
	p.distributeLocked(nil)
}

// shouldResync selects the listeners of the next resync. It reports whether there is any.
func (p *processor) shouldResync() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	listeners := *p.listeners.Load()
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
	listeners := *p.listeners.Load()
	statuses := make([]HandlerStatus, 0, len(listeners))
	for _, l := range listeners {
		statuses = append(statuses, l.Status())
	}
	return statuses
}

const (
	// pauseAfterPanic delays the next call of a handler that panicked, if the process survives.
	pauseAfterPanic = time.Second
	// While more than slowBacklogLen changes are pending, every slowSample-th call is timed, and
	// logged if it took longer than slowCall. (Timing costs more than the rest of a delivery.)
	slowBacklogLen = 1024
	slowSample     = 64
	slowCall       = 100 * time.Millisecond
)

// source holds the changes that one listener delivers. The processor's mu is held for close; one
// goroutine calls next; any goroutine may call the other methods.
type source interface {
	// next returns the next batch to deliver, with the changes that the handler's options demand,
	// or nil if all are delivered. The batch that it returned before is delivered.
	next() *batch
	// close ends the source at the present end of the log.
	close()
	// drop discards the changes that are left: next returns nil.
	drop()
	// due returns the number of changes that next has returned or will return. Options may still
	// skip, split or merge those that it has not returned.
	due() int64
	// oldest returns the time of the oldest undelivered change, or the current time.
	oldest() time.Time
}

var _, _ source = (*cursor)(nil), (*coalescedChanges)(nil)

// listener is one registered handler: a source of changes, and the goroutine that delivers them.
// The processor never waits for a handler.
//
//	L1  the handler is called by one goroutine, one call at a time, in the order of the log
//	L2  due - calls = changes that are pending, and calls that are left of the batch that is being
//	    delivered
//	L3  synced is closed  <=>  all changes up to the end of the initial list are delivered
//	L4  after close(dropped) no further call begins; after close(done) no call is running
//	L5  wake has a token if a batch was appended since the goroutine last read to the end
//
// Source: tools/cache/shared_informer.go processorListener
type listener struct {
	informer *sharedIndexInformer
	handler  ResourceEventHandler
	name     string // of the handler
	options  HandlerOptions
	logger   klog.Logger
	resync   resyncSchedule // guarded by the processor's mu

	id     int    // in a resyncRound; set when the listener is added, as source is
	source source // the log, or with Coalesce the merged changes

	wake    chan struct{} // capacity 1; closed when nothing is appended any more
	dropped chan struct{} // no more changes are delivered
	synced  chan struct{}
	done    chan struct{}

	drop       func()      // closes dropped, once
	drainTimer *time.Timer // calls drop; set before wake is closed, or nil

	calls  atomic.Int64 // calls that have returned or panicked
	panics atomic.Int64
}

// newListener returns a listener without a source, which the processor sets, and without resyncs.
func newListener(
	informer *sharedIndexInformer, handler ResourceEventHandler, options HandlerOptions,
) *listener {
	l := &listener{
		informer: informer,
		handler:  handler,
		name:     handlerName(handler),
		options:  options,
		logger:   klog.Background(),
		wake:     make(chan struct{}, 1),
		dropped:  make(chan struct{}),
		synced:   make(chan struct{}),
		done:     make(chan struct{}),
	}
	l.drop = sync.OnceFunc(func() {
		close(l.dropped)
		l.source.drop()
	})
	if options.Logger != nil {
		l.logger = *options.Logger
	}
	return l
}

// from returns the source of what c reads.
func (l *listener) from(c *cursor) source {
	c.wanted, c.selective = l.wanted, l.options.SkipUnchanged || l.options.SplitRecreated
	if l.options.Coalesce {
		return coalesce(c)
	}
	return c
}

// run calls the handler until the listener is closed.
func (l *listener) run() {
	defer close(l.done)
	defer l.drop()
	for {
		b := l.source.next()
		if b == nil {
			if _, open := <-l.wake; open {
				continue
			}
			if b = l.source.next(); b == nil { // nothing is appended any more
				if l.drainTimer != nil {
					l.drainTimer.Stop()
				}
				return
			}
		}
		// b is not used below: a handler that never returns would keep b alive, and with it all
		// later batches.
		changes, synced := b.changes, len(b.changes) == 0
		for i := range changes {
			select {
			case <-l.dropped:
				return
			default:
			}
			crashed := l.deliver(&changes[i])
			l.calls.Add(1)
			if crashed {
				select {
				case <-time.After(pauseAfterPanic):
				case <-l.dropped:
				}
			}
		}
		if synced {
			close(l.synced)
		}
	}
}

// wanted returns the changes of b to deliver, as the handler's options demand.
func (l *listener) wanted(b *batch) []change {
	own, copied := b.changes, false
	for i := range b.changes {
		c := &b.changes[i]
		skip := !b.round.wants(l, c) && c.unchanged()
		split := !skip && l.options.SplitRecreated && c.recreated()
		if !copied && (skip || split) {
			own, copied = slices.Clone(b.changes[:i]), true
		}
		switch {
		case split:
			end, begin := c.split()
			own = append(own, end, begin)
		case copied && !skip:
			own = append(own, *c)
		}
	}
	return own
}

// deliver calls the handler for c. A panic ends the process, unless the handler has SkipPanics, or
// utilruntime.ReallyCrash is off: then crashed is true.
func (l *listener) deliver(c *change) (crashed bool) {
	if l.calls.Load()%slowSample == 0 && l.pending() > slowBacklogLen {
		defer l.logIfSlow(time.Now())
	}
	crashed = true
	defer func() {
		if crashed {
			l.panics.Add(1)
			crashed = !l.options.SkipPanics
		}
	}()
	if l.options.SkipPanics {
		defer l.skipPanic()
	} else {
		defer utilruntime.HandleCrashWithLogger(l.logger)
	}
	c.deliver(l.handler)
	return false
}

func (l *listener) skipPanic() {
	if r := recover(); r != nil {
		l.logger.Error(fmt.Errorf("%v", r), "Event handler panicked, the notification is skipped",
			"handler", l.name, "stack", string(debug.Stack()))
	}
}

func (l *listener) logIfSlow(began time.Time) {
	if took := time.Since(began); took > slowCall {
		l.logger.Info("Slow event handler", "handler", l.name,
			"took", took, "pendingNotifications", l.pending())
	}
}

// close ends the listener. Pending changes are dropped, or delivered for at most the handler's
// DrainTimeout. If run was never started, the listener is done at once. The processor's mu is held;
// close is called once.
func (l *listener) close(started bool) {
	l.source.close()
	if started && l.options.DrainTimeout > 0 {
		l.drainTimer = time.AfterFunc(l.options.DrainTimeout, l.drop)
	} else {
		l.drop()
	}
	close(l.wake)
	if !started {
		close(l.done)
	}
}

func (l *listener) HasSynced() bool               { return done.Is(l) }
func (l *listener) HasSyncedChecker() DoneChecker { return l }
func (l *listener) Done() <-chan struct{}         { return l.synced }
func (l *listener) ShutdownChan() <-chan struct{} { return l.done }
func (l *listener) Err() error                    { return l.informer.Err() }

func (l *listener) Name() string {
	return l.informer.name + " + event handler " + l.name
}

func (l *listener) Status() HandlerStatus {
	s := HandlerStatus{
		Name:      l.name,
		HasSynced: l.HasSynced(),
		Calls:     int(l.calls.Load()),
		Panics:    int(l.panics.Load()),
		Pending:   int(l.pending()),
	}
	if s.Pending > 0 {
		s.OldestPending = time.Since(l.source.oldest())
	}
	return s
}

// pending returns the number of changes that are pending or being delivered; 0 once they are
// dropped.
func (l *listener) pending() int64 {
	select {
	case <-l.dropped:
		return 0
	default:
	}
	return max(0, l.source.due()-l.calls.Load())
}
