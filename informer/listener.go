// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

const (
	// pauseAfterPanic delays the next call of a handler that panicked, where panics do not end the process.
	pauseAfterPanic = time.Second
	// While more than slowBacklogLen changes wait, every slowSample-th call is timed, and logged if it took longer than
	// slowCall. (Timing costs more than all the rest of a delivery.)
	slowBacklogLen = 1024
	slowSample     = 64
	slowCall       = 100 * time.Millisecond
)

// listener is one registered handler: a backlog, and the one goroutine that works it off.
//
// Nobody who hands something over waits for the handler.
//
// Laws:
//
//	L1  the handler is called by one goroutine, one call at a time, in the backlog's order
//	L2  backlog.handed - ended = changes that wait + those taken that are not done with
//	L3  synced is closed  <=>  everything up to the end of the initial list is done with
//	L4  after close(dropped) no further call begins; after close(done) none is running
//	L5  asleep  =>  there was nothing to take, and who appends to the backlog wakes the goroutine
//
// Source: tools/cache/shared_informer.go processorListener
type listener struct {
	handler ResourceEventHandler
	options HandlerOptions
	logger  klog.Logger
	// informerName is the first half of Name.
	informerName string
	resync       resyncSchedule // guarded by the processor's mu
	backlog      backlog

	synced  chan struct{}
	dropped chan struct{}
	done    chan struct{}

	ended  atomic.Int64 // changes that are done with: told, or not for this handler
	calls  atomic.Int64 // calls that have returned, or panicked
	panics atomic.Int64
	asleep atomic.Bool

	mu            sync.Mutex
	wake          sync.Cond // not asleep, or closed
	closed        bool
	droppedClosed bool
	drainTimer    *time.Timer
}

// newListener returns a listener without backlog; the processor gives it one.
func newListener(informerName string, handler ResourceEventHandler, options HandlerOptions, schedule resyncSchedule) *listener {
	l := &listener{
		handler:      handler,
		options:      options,
		logger:       klog.Background(),
		informerName: informerName,
		resync:       schedule,
		synced:       make(chan struct{}),
		dropped:      make(chan struct{}),
		done:         make(chan struct{}),
	}
	l.wake.L = &l.mu
	if options.Logger != nil {
		l.logger = *options.Logger
	}
	return l
}

// wakeUp makes the goroutine look into the backlog.
func (l *listener) wakeUp() {
	if !l.asleep.Load() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asleep.Store(false)
	l.wake.Signal()
}

// wanted returns the changes of p that the handler is to be told of, in its terms.
func (l *listener) wanted(p *parcel) []change {
	differs := func(c change) bool { return l.skips(p, &c) || l.splits(&c) }
	first := slices.IndexFunc(p.changes, differs)
	if first < 0 {
		return p.changes
	}
	own := slices.Clone(p.changes[:first])
	for i := first; i < len(p.changes); i++ {
		c := &p.changes[i]
		switch {
		case l.skips(p, c):
		case l.splits(c):
			end, begin := c.split()
			own = append(own, end, begin)
		default:
			own = append(own, *c)
		}
	}
	return own
}

func (l *listener) skips(p *parcel, c *change) bool { return c.unchanged && !p.round.wants(l, c) }

func (l *listener) splits(c *change) bool { return l.options.SplitRecreated && c.recreated() }

// run calls the handler until the listener is closed.
func (l *listener) run() {
	defer close(l.done)
	defer l.backlog.drop()
	defer l.stopDrainTimer()
	for p := l.take(); p != nil; p = l.take() {
		changes, synced, ended := p.changes, p.synced, l.ended.Load()+int64(len(p.changes))
		if !l.options.Coalesce { // which has left out already what is not wanted
			changes = l.wanted(p)
		}
		for i := range changes {
			select {
			case <-l.dropped:
				return
			default:
			}
			l.deliver(&changes[i])
		}
		l.ended.Store(ended)
		if synced {
			close(l.synced)
		}
	}
}

// take waits for something to deliver. It returns nil when the listener is closed and nothing is left.
func (l *listener) take() *parcel {
	for {
		if p := l.backlog.take(); p != nil {
			return p
		}
		// Under load, what comes while others run saves going to sleep and being woken for each change.
		runtime.Gosched()
		if p := l.backlog.take(); p != nil {
			return p
		}
		if p, over := l.sleep(); over {
			return p
		}
	}
}

// sleep waits until it is woken, unless something came in between. It is over if there is something, or never will be.
func (l *listener) sleep() (p *parcel, over bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asleep.Store(true)
	if p = l.backlog.take(); p != nil || l.closed {
		l.asleep.Store(false)
		return p, true
	}
	for l.asleep.Load() && !l.closed {
		l.wake.Wait()
	}
	return nil, false
}

// deliver makes one call and accounts for it, whether it returns or panics.
func (l *listener) deliver(c *change) {
	crashed := l.call(c)
	l.ended.Add(1)
	l.calls.Add(1)
	if crashed {
		l.pause(pauseAfterPanic)
	}
}

// call tells the handler of c. A panic ends the process, unless the handler was added with SkipOnPanic, or the process
// has utilruntime.ReallyCrash off: then crashed is true, which asks for a pause.
func (l *listener) call(c *change) (crashed bool) {
	if l.calls.Load()%slowSample == 0 && l.pending() > slowBacklogLen {
		defer l.logIfSlow(time.Now())
	}
	if l.options.OnPanic == SkipOnPanic {
		defer func() {
			if r := recover(); r != nil {
				l.panics.Add(1)
				l.logger.Error(fmt.Errorf("%v", r), "Event handler panicked, the notification is skipped",
					"handler", handlerName(l.handler), "stack", string(debug.Stack()))
			}
		}()
		c.tell(l.handler)
		return false
	}
	crashed = true
	defer func() {
		if crashed {
			l.panics.Add(1)
		}
	}()
	defer utilruntime.HandleCrashWithLogger(l.logger)
	c.tell(l.handler)
	return false
}

func (l *listener) logIfSlow(began time.Time) {
	if took := time.Since(began); took > slowCall {
		l.logger.Info("Slow event handler", "handler", handlerName(l.handler), "took", took, "pendingNotifications", l.pending())
	}
}

// pause waits for d, or until nothing more is to be delivered.
func (l *listener) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.dropped:
	}
}

// close ends the backlog. What waits is dropped, or delivered for as long as the handler's DrainTimeout allows. A listener
// whose run was never started is done at once. The processor's mu is held.
func (l *listener) close(started bool) {
	l.backlog.close()
	l.mu.Lock()
	l.closed = true
	l.wake.Signal()
	drain := started && l.options.DrainTimeout > 0
	if drain {
		l.drainTimer = time.AfterFunc(l.options.DrainTimeout, l.drop)
	}
	l.mu.Unlock()

	if !drain {
		l.drop()
	}
	if !started {
		close(l.done)
	}
}

// drop gives up what is undelivered. The call in flight is not interrupted.
func (l *listener) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.droppedClosed {
		l.droppedClosed = true
		close(l.dropped)
		l.backlog.drop()
	}
}

func (l *listener) stopDrainTimer() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.drainTimer != nil {
		l.drainTimer.Stop()
	}
}

// HasSynced implements ResourceEventHandlerRegistration.
func (l *listener) HasSynced() bool { return IsDone(l) }

// HasSyncedChecker implements ResourceEventHandlerRegistration.
func (l *listener) HasSyncedChecker() DoneChecker { return l }

// Name implements DoneChecker.
func (l *listener) Name() string {
	return l.informerName + " + event handler " + handlerName(l.handler)
}

// Done implements DoneChecker: closed once the handler has seen the initial list.
func (l *listener) Done() <-chan struct{} { return l.synced }

// ShutdownChan is closed when the handler was removed, or its informer stopped, and its last call has returned.
func (l *listener) ShutdownChan() <-chan struct{} { return l.done }

// Status implements ResourceEventHandlerRegistration.
func (l *listener) Status() HandlerStatus {
	s := HandlerStatus{
		Name:      handlerName(l.handler),
		HasSynced: l.HasSynced(),
		Calls:     int(l.calls.Load()),
		Panics:    int(l.panics.Load()),
		Pending:   int(l.pending()),
	}
	if s.Pending > 0 {
		s.OldestPending = time.Duration(now() - l.backlog.oldest())
	}
	return s
}

// pending is the number of changes that wait or are being told. Nothing waits once it was dropped.
func (l *listener) pending() int64 {
	select {
	case <-l.dropped:
		return 0
	default:
		return max(0, l.backlog.handed()-l.ended.Load())
	}
}
