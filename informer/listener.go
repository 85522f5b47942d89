// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

const (
	// pauseAfterPanic delays the next call of a handler that panicked, where panics do not end the process.
	pauseAfterPanic = time.Second
	// slowBacklogLen and slowCall are the limits beyond which a call is logged as slow.
	slowBacklogLen = 1024
	slowCall       = 100 * time.Millisecond
)

// uptime is a point in time, measured from the start of the process: half a time.Time, and monotonic.
type uptime time.Duration

var processStart = time.Now()

func now() uptime { return uptime(time.Since(processStart)) }

// listener is one registered handler: a backlog, and the one goroutine that works it off.
//
// Handing changes over never blocks, whatever the handler does, and costs one lock however many they are.
//
// Laws:
//
//	L1  the handler is called by one goroutine, one call at a time, in the order of add
//	L2  undelivered = the backlog's calls + those of the taken batch that have not returned
//	L3  owed = initial adds whose call has not returned; synced is closed  <=>  upstreamSynced and owed was 0 since
//	L4  after close(dropped) no further call begins; after close(done) none is running
//
// Source: tools/cache/shared_informer.go processorListener
type listener struct {
	handler ResourceEventHandler
	options HandlerOptions
	logger  klog.Logger
	// informerName is the first half of Name.
	informerName string
	resync       resyncSchedule // guarded by the processor's mu

	synced  chan struct{}
	dropped chan struct{}
	done    chan struct{}

	undelivered atomic.Int64
	calls       atomic.Uint64
	panics      atomic.Uint64
	callSince   atomic.Int64 // when the change in the handler's hands was pushed (uptime), 0 between calls

	mu             sync.Mutex
	wake           sync.Cond // something to take, or closed
	backlog        backlog
	closed         bool
	droppedClosed  bool
	owed           int64
	upstreamSynced bool
	drainTimer     *time.Timer
}

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
		backlog:      &fullBacklog{},
	}
	l.wake.L = &l.mu
	if options.Logger != nil {
		l.logger = *options.Logger
	}
	if options.Coalesce {
		l.backlog = newCoalescingBacklog()
	}
	return l
}

// add hands over the changes that this handler wants. It copies them, and never blocks on the handler.
func (l *listener) add(changes []change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	grown := 0
	for i := range changes {
		c := &changes[i]
		if c.unchanged && !l.resync.wants(c) {
			continue
		}
		l.owed += int64(c.owed)
		if l.options.SplitRecreated && c.recreated() {
			end, begin := c.split()
			grown += l.backlog.push(end) + l.backlog.push(begin)
			continue
		}
		grown += l.backlog.push(*c)
	}
	l.undelivered.Add(int64(grown))
	l.wake.Signal()
}

// run calls the handler until the listener is closed.
func (l *listener) run() {
	defer close(l.done)
	for {
		batch := l.take()
		if len(batch) == 0 {
			return
		}
		for i := range batch {
			select {
			case <-l.dropped:
				l.undelivered.Add(-int64(len(batch) - i))
				return
			default:
			}
			l.deliver(&batch[i])
			batch[i] = change{} // a delivered object is nobody's business here
		}
	}
}

// take waits for changes. It returns none when the listener is closed and nothing is left to deliver.
func (l *listener) take() []change {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		if batch := l.backlog.take(); len(batch) > 0 {
			return batch
		}
		if l.closed {
			if l.drainTimer != nil {
				l.drainTimer.Stop()
			}
			return nil
		}
		l.wake.Wait()
	}
}

// deliver makes one call and accounts for it, whether it returns or panics.
func (l *listener) deliver(c *change) {
	l.callSince.Store(int64(c.at))
	crashed := l.call(c)
	l.callSince.Store(0)
	l.undelivered.Add(-1)
	l.calls.Add(1)
	if c.owed > 0 {
		l.mu.Lock()
		l.owed -= int64(c.owed)
		l.checkSyncedLocked()
		l.mu.Unlock()
	}
	if crashed {
		l.pause(pauseAfterPanic)
	}
}

// call tells the handler of c. A panic ends the process, unless the handler was added with SkipOnPanic, or the process
// has utilruntime.ReallyCrash off: then crashed is true, which asks for a pause.
func (l *listener) call(c *change) (crashed bool) {
	if waiting := l.undelivered.Load(); waiting > slowBacklogLen {
		defer l.logIfSlow(waiting, time.Now())
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

func (l *listener) logIfSlow(waiting int64, began time.Time) {
	if took := time.Since(began); took > slowCall {
		l.logger.Info("Slow event handler", "handler", handlerName(l.handler), "took", took, "pendingNotifications", waiting)
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

// markUpstreamSynced says that every initial add was handed over.
func (l *listener) markUpstreamSynced() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.upstreamSynced = true
	l.checkSyncedLocked()
}

func (l *listener) checkSyncedLocked() {
	if !l.upstreamSynced || l.owed > 0 || IsDone(l) {
		return
	}
	close(l.synced)
}

// close takes no more changes. What waits is dropped, or delivered for as long as the handler's DrainTimeout allows.
// A listener whose run was never started is done at once.
func (l *listener) close(started bool) {
	l.mu.Lock()
	l.closed = true
	drain := started && l.options.DrainTimeout > 0
	if drain {
		l.drainTimer = time.AfterFunc(l.options.DrainTimeout, l.drop)
	}
	l.wake.Signal()
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
	if l.droppedClosed {
		return
	}
	l.droppedClosed = true
	close(l.dropped)
	l.undelivered.Add(-int64(l.backlog.drop()))
	l.wake.Signal()
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
		Calls:     l.calls.Load(),
		Panics:    l.panics.Load(),
		Pending:   int(l.undelivered.Load()),
	}
	since := uptime(l.callSince.Load())
	if since == 0 {
		l.mu.Lock()
		since, _ = l.backlog.oldest()
		l.mu.Unlock()
	}
	if since != 0 {
		s.OldestPending = time.Duration(now() - since)
	}
	return s
}
