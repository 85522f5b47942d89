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
//	L2  handed - ended = the backlog's calls + those that were taken and have not returned
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

	handed   atomic.Int64 // calls that became due
	ended    atomic.Int64 // calls that have returned, or panicked
	panics   atomic.Int64
	dueSince atomic.Int64 // when the newest call became due (uptime); 0 while nothing is taken

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

// add hands over the changes that this handler wants. It never blocks on the handler.
func (l *listener) add(b batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || len(b) == 0 {
		return
	}
	l.owed += b.owed()
	l.handed.Add(int64(l.backlog.push(b)))
	l.wake.Signal()
}

// wanted returns the changes of b that the handler is to be told of, in its terms: b itself, or a batch of its own.
func (l *listener) wanted(b batch) batch {
	differs := func(c change) bool { return l.skips(&c) || l.options.SplitRecreated && c.recreated() }
	first := slices.IndexFunc(b, differs)
	if first < 0 {
		return b
	}
	own := slices.Clone(b[:first])
	for i := first; i < len(b); i++ {
		c := &b[i]
		switch {
		case l.skips(c):
		case l.options.SplitRecreated && c.recreated():
			end, begin := c.split()
			own = append(own, end, begin)
		default:
			own = append(own, *c)
		}
	}
	return own
}

func (l *listener) skips(c *change) bool { return c.unchanged && !l.resync.wants(c) }

// run calls the handler until the listener is closed.
func (l *listener) run() {
	defer close(l.done)
	for {
		taken := l.take()
		if len(taken) == 0 {
			return
		}
		for i := range taken {
			for j := range taken[i] {
				select {
				case <-l.dropped:
					return
				default:
				}
				l.deliver(&taken[i][j])
			}
			taken[i] = nil // what was delivered is nobody's business here
		}
		l.dueSince.Store(0)
	}
}

// take waits for changes. It returns none when the listener is closed and nothing is left to deliver.
func (l *listener) take() []batch {
	l.mu.Lock()
	defer l.mu.Unlock()
	for yielded := false; ; {
		taken := l.backlog.take()
		switch {
		case len(taken) > 0:
			return taken
		case l.closed:
			if l.drainTimer != nil {
				l.drainTimer.Stop()
			}
			return nil
		case !yielded: // under load, what comes while others run saves going to sleep and being woken for each change
			yielded = true
			l.mu.Unlock()
			runtime.Gosched()
			l.mu.Lock()
		default:
			l.wake.Wait()
		}
	}
}

// deliver makes one call and accounts for it, whether it returns or panics.
func (l *listener) deliver(c *change) {
	l.dueSince.Store(int64(c.at))
	crashed := l.call(c)
	l.ended.Add(1)
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
	if waiting := l.pending(); waiting > slowBacklogLen {
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
	l.backlog.drop()
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
		Calls:     int(l.ended.Load()),
		Panics:    int(l.panics.Load()),
		Pending:   int(l.pending()),
	}
	since := uptime(l.dueSince.Load())
	if since == 0 {
		l.mu.Lock()
		since, _ = l.backlog.oldest()
		l.mu.Unlock()
	}
	if s.Pending > 0 && since != 0 {
		s.OldestPending = time.Duration(now() - since)
	}
	return s
}

// pending is the number of calls that are due and have not returned. None is due once what waits was dropped.
func (l *listener) pending() int64 {
	select {
	case <-l.dropped:
		return 0
	default:
		return l.handed.Load() - l.ended.Load()
	}
}
