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

	"example.com/informerstack/internal/done"
)

const (
	// pauseAfterPanic delays the next call of a handler that panicked, if the process survives.
	pauseAfterPanic = time.Second
	// While more than slowBacklogLen changes are pending, every slowSample-th call is timed, and
	// logged if it took longer than slowCall. (Timing costs more than the rest of a delivery.)
	slowBacklogLen = 1024
	slowSample     = 64
	slowCall       = 100 * time.Millisecond
)

// backlog holds the undelivered changes of a handler, oldest first. The processor's mu is held for
// close; one goroutine calls next; any goroutine may call the other methods.
type backlog interface {
	// next returns the next batch to deliver, or nil if there is none. The batch that it returned
	// before is delivered.
	next() *batch
	// close ends the backlog after the batches that were pushed so far.
	close()
	// drop discards the pending changes. After it, next returns nil.
	drop()
	// appended returns the number of calls that have become due, delivered ones included.
	appended() int64
	// oldest returns the time at which the oldest undelivered change was pushed.
	oldest() time.Time
}

// listener is one registered handler: a backlog, and the goroutine that delivers it. The processor
// never waits for a handler.
//
//	L1  the handler is called by one goroutine, one call at a time, in the order of the backlog
//	L2  backlog.appended - delivered = changes that are pending or being delivered
//	L3  synced is closed  <=>  all changes up to the end of the initial list are delivered
//	L4  after close(dropped) no further call begins; after close(done) none is running
//	L5  wake has a token if a batch was appended since the goroutine last found the backlog empty
//
// Source: tools/cache/shared_informer.go processorListener
type listener struct {
	informer  *sharedIndexInformer
	handler   ResourceEventHandler
	options   HandlerOptions
	logger    klog.Logger
	id        int                // in a resyncRound; set when the listener is added, as backlog is
	backlog   backlog            // a cursor, or coalesced
	coalesced *coalescingBacklog // nil unless the handler has Coalesce
	resync    resyncSchedule     // guarded by the processor's mu

	wake    chan struct{} // capacity 1
	closed  chan struct{} // no more changes are appended
	dropped chan struct{} // no more changes are delivered
	synced  chan struct{}
	done    chan struct{}

	drop       func()      // closes dropped, once
	drainTimer *time.Timer // calls drop; set before closed is closed, or nil

	delivered atomic.Int64 // changes that were delivered or skipped
	calls     atomic.Int64 // calls that have returned or panicked
	panics    atomic.Int64
}

// newListener returns a listener without a backlog, which the processor sets, and without resyncs.
func newListener(
	informer *sharedIndexInformer, handler ResourceEventHandler, options HandlerOptions,
) *listener {
	l := &listener{
		informer: informer,
		handler:  handler,
		options:  options,
		logger:   klog.Background(),
		wake:     make(chan struct{}, 1),
		closed:   make(chan struct{}),
		dropped:  make(chan struct{}),
		synced:   make(chan struct{}),
		done:     make(chan struct{}),
	}
	l.drop = sync.OnceFunc(func() {
		close(l.dropped)
		l.backlog.drop()
	})
	if options.Logger != nil {
		l.logger = *options.Logger
	}
	return l
}

// run calls the handler until the listener is closed.
func (l *listener) run() {
	defer close(l.done)
	defer l.drop()
	defer l.stopDrainTimer()
	for b := l.next(); b != nil; b = l.next() {
		// b is not used below: a handler that never returns would keep b alive, and with it all
		// later batches.
		changes, synced := b.changes, b.synced
		delivered := l.delivered.Load() + int64(len(changes))
		if l.coalesced == nil { // a coalescing backlog has called wanted before
			changes = l.wanted(b)
		}
		for i := range changes {
			select {
			case <-l.dropped:
				return
			default:
			}
			crashed := l.deliver(&changes[i])
			l.delivered.Add(1)
			l.calls.Add(1)
			if crashed {
				select {
				case <-time.After(pauseAfterPanic):
				case <-l.dropped:
				}
			}
		}
		l.delivered.Store(delivered)
		if synced {
			close(l.synced)
		}
	}
}

// next waits for a batch to deliver. It returns nil when the listener is closed and no batch is
// left.
func (l *listener) next() *batch {
	for {
		if b := l.backlog.next(); b != nil {
			return b
		}
		select {
		case <-l.wake:
		case <-l.closed:
			return l.backlog.next()
		}
	}
}

// wanted returns the changes of b to deliver, as the handler's options demand.
func (l *listener) wanted(b *batch) []change {
	own, copied := b.changes, false
	for i := range b.changes {
		c := &b.changes[i]
		skip := c.unchanged && !b.round.wants(l, c)
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
	if l.options.SkipPanics {
		defer func() {
			if r := recover(); r != nil {
				l.panics.Add(1)
				l.logger.Error(fmt.Errorf("%v", r),
					"Event handler panicked, the notification is skipped",
					"handler", handlerName(l.handler), "stack", string(debug.Stack()))
			}
		}()
		c.deliver(l.handler)
		return false
	}
	crashed = true
	defer func() {
		if crashed {
			l.panics.Add(1)
		}
	}()
	defer utilruntime.HandleCrashWithLogger(l.logger)
	c.deliver(l.handler)
	return false
}

func (l *listener) logIfSlow(began time.Time) {
	if took := time.Since(began); took > slowCall {
		l.logger.Info("Slow event handler", "handler", handlerName(l.handler),
			"took", took, "pendingNotifications", l.pending())
	}
}

// close ends the backlog. Pending changes are dropped, or delivered for at most the handler's
// DrainTimeout. If run was never started, the listener is done at once. The processor's mu is held;
// close is called once.
func (l *listener) close(started bool) {
	l.backlog.close()
	if started && l.options.DrainTimeout > 0 {
		l.drainTimer = time.AfterFunc(l.options.DrainTimeout, l.drop)
	} else {
		l.drop()
	}
	close(l.closed)
	if !started {
		close(l.done)
	}
}

func (l *listener) stopDrainTimer() {
	select {
	case <-l.closed:
		if l.drainTimer != nil {
			l.drainTimer.Stop()
		}
	default: // the timer fired before close returned
	}
}

func (l *listener) HasSynced() bool               { return done.Is(l) }
func (l *listener) HasSyncedChecker() DoneChecker { return l }
func (l *listener) Done() <-chan struct{}         { return l.synced }
func (l *listener) ShutdownChan() <-chan struct{} { return l.done }
func (l *listener) Err() error                    { return l.informer.Err() }

func (l *listener) Name() string {
	return l.informer.name + " + event handler " + handlerName(l.handler)
}

func (l *listener) Status() HandlerStatus {
	s := HandlerStatus{
		Name:      handlerName(l.handler),
		HasSynced: l.HasSynced(),
		Calls:     int(l.calls.Load()),
		Panics:    int(l.panics.Load()),
		Pending:   int(l.pending()),
	}
	if s.Pending > 0 {
		s.OldestPending = time.Since(l.backlog.oldest())
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
		return max(0, l.backlog.appended()-l.delivered.Load())
	}
}
