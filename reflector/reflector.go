// SPDX-License-Identifier: Apache-2.0

// Package reflector keeps a store equal to a collection on a server.
//
//	API server <- LIST, WATCH - [reflector] - Replace, Add, Update, Delete -> deltafifo
//
// Read phase.go (the state machine), reflector.go, list.go, watch.go, event.go, watchlist.go; listwatch.go and liststream.go
// are the way to a server. Then go test -v ./reflector.
// Goroutines: Run's own does everything but wait for the server: each LIST and each opening of a watch has one that ends
// with the request. Locking: mu guards what Status shows; no foreign code runs under it.
//
// Source: tools/cache/reflector.go Reflector, tools/cache/listwatch.go ListWatch
package reflector

import (
	"cmp"
	"context"
	"math/rand/v2"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"example.com/informerstack/store"
)

// Reflector lists a collection, puts it into a Store, then watches it and passes on each change.
//
//	R1  the Store has taken every change up to the last resourceVersion, and no relist asks for an older state
//	R2  at most one watch is open; it is iff the phase is Watching (or Streaming, which opens its own), and every watch
//	    received is stopped
//	R3  each received object is transformed once, then handed to the Store or dropped with the list it came in
//	R4  the Store is called from one goroutine; Resync only while there is a watch or one is being opened
//	R5  two requests that fail in the same way have a wait between them, but for InternalErrors within
//	    Options.MaxInternalErrorRetryDuration
type Reflector struct {
	name            string
	typeDescription string
	logger          *klog.Logger

	listerWatcher ListerWatcher
	expected      expected
	store         Store
	transform     store.TransformFunc
	verify        func(context.Context, *Reflector, Streamed)

	clock             clock.Clock
	resyncPeriod      time.Duration
	shouldResync      func() bool
	minWatchTimeout   time.Duration
	watchdogSlack     time.Duration
	watchListDeadline time.Duration
	pageSize          int64
	watchErrorHandler WatchErrorHandler
	metrics           metrics
	observe           func(Transition)
	progress          func(resourceVersion string, asOf time.Time)

	running atomic.Bool
	relists chan error // the cause of a Relist that no request for the collection has followed yet

	// Below: of the goroutine that runs the reflector.

	fetched        bool        // whether this round has fetched everything and now follows the changes
	useWatchList   bool        // false once the server is known not to support it
	unfinished     int         // streaming lists in a row that ended before the initial state was complete
	fellBack       bool        // whether a fallback was logged
	paginated      bool        // whether the server pages even a LIST at "0": there is no watch cache to protect
	limit          int64       // of each page of the LISTs of this round; -1 before the first
	unavailable    bool        // whether the server cannot serve the last resourceVersion
	open           *liveWatch  // see R2
	lastChange     time.Time   // of any watch; see Status.LastEvent, which setResourceVersion sets
	lastBookmark   time.Time   // likewise
	resync         clock.Timer // when the next Resync is due; nil outside of R4's phases, or without resync
	backoff        *backoff
	internalErrors internalErrors

	mu     sync.Mutex
	status Status
}

// New returns a reflector that keeps s equal to the collection that lw lists and watches. It does nothing before Run.
//
// expectedType is an example of the objects; for an unstructured one, apiVersion and kind matter too. A LIST that holds
// another Go type fails, an event that brings another type or kind is reported and skipped. nil accepts anything.
func New(lw ListerWatcher, expectedType any, s Store, opts Options) *Reflector {
	r := &Reflector{
		name:              opts.Name,
		typeDescription:   opts.TypeDescription,
		logger:            opts.Logger,
		listerWatcher:     lw,
		expected:          newExpected(expectedType),
		store:             s,
		transform:         opts.Transform,
		verify:            opts.Verify,
		clock:             opts.Clock,
		resyncPeriod:      opts.ResyncPeriod,
		shouldResync:      opts.ShouldResync,
		minWatchTimeout:   max(opts.MinWatchTimeout, defaultMinWatchTimeout),
		watchdogSlack:     orDefault(opts.WatchdogSlack, defaultWatchdogSlack),
		watchListDeadline: orDefault(opts.WatchListDeadline, defaultWatchListDeadline),
		pageSize:          opts.WatchListPageSize,
		watchErrorHandler: opts.WatchErrorHandler,
		observe:           opts.Observe,
		progress:          opts.Progress,
		useWatchList:      (opts.UseWatchList == nil || *opts.UseWatchList) && !refusesWatchList(lw),
		limit:             -1,
		relists:           make(chan error, 1),
		internalErrors:    internalErrors{max: opts.MaxInternalErrorRetryDuration},
		status:            Status{Phase: Idle},
	}
	if r.clock == nil {
		r.clock = clock.RealClock{}
	}
	if r.watchErrorHandler == nil {
		r.watchErrorHandler = DefaultWatchErrorHandler
	}
	if r.typeDescription == "" {
		r.typeDescription = r.expected.describe()
	}
	if r.name == "" {
		r.name = cmp.Or(callsite(), r.typeDescription)
	}
	r.metrics = newMetrics(opts.Metrics, r.name)
	wait := defaultBackoff()
	if opts.Backoff != nil {
		wait = *opts.Backoff
	}
	r.backoff = newBackoff(wait)
	return r
}

func orDefault(d, def time.Duration) time.Duration {
	if d == 0 {
		return def
	}
	return d
}

// Name returns the name used in logs and metrics.
func (r *Reflector) Name() string { return r.name }

// TypeDescription returns the name of the expected type, for people.
func (r *Reflector) TypeDescription() string { return r.typeDescription }

// Run lists and watches until ctx is done, again and again, with a wait after each round. It returns without waiting for
// requests that ignore ctx. A second Run at the same time is reported and returns at once.
func (r *Reflector) Run(ctx context.Context) {
	ctx = r.withLogger(ctx)
	if !r.running.CompareAndSwap(false, true) {
		utilruntime.HandleErrorWithContext(ctx, ErrRunning, "Reflector was run twice", "reflector", r.name)
		return
	}
	defer r.running.Store(false)
	defer r.setPhase(Idle)
	logger := klog.FromContext(ctx)
	logger.V(3).Info("Starting reflector", "type", r.typeDescription, "resyncPeriod", r.resyncPeriod, "reflector", r.name)
	defer logger.V(3).Info("Stopped reflector", "type", r.typeDescription, "reflector", r.name)
	for {
		r.handledRound(ctx)
		if !r.pause(ctx) {
			return
		}
	}
}

// handledRound hands the error of a round over. A panic is logged, and goes on unless the process is set up to survive
// panics (utilruntime.ReallyCrash).
func (r *Reflector) handledRound(ctx context.Context) {
	defer utilruntime.HandleCrashWithContext(ctx)
	if err := r.round(ctx); err != nil {
		r.watchErrorHandler(ctx, r, err)
	}
}

// ListAndWatch does one round: it fetches everything, then watches until only a new round can help. It returns nil when
// ctx is done or the watch ended in a way that is merely logged, else why the round could not begin or had to end: LIST
// or the start of a WATCH failed, or a change could not be applied (ApplyError).
//
// The panic of a LIST or of a WATCH's start reaches the caller of ListAndWatch.
func (r *Reflector) ListAndWatch(ctx context.Context) error {
	if !r.running.CompareAndSwap(false, true) {
		return ErrRunning
	}
	defer r.running.Store(false)
	defer r.setPhase(Idle)
	return r.round(r.withLogger(ctx))
}

// round runs the state machine from Starting until it would start again.
func (r *Reflector) round(ctx context.Context) error {
	defer r.endRound()
	for phase := Starting; ; {
		r.setPhase(phase)
		next := r.step(ctx, phase)
		if ctx.Err() != nil {
			next = Transition{To: Idle}
		}
		next.From = phase
		r.note(ctx, next)
		switch {
		case next.To == Starting && next.handle:
			return next.Err
		case next.To == Starting, next.To == Idle:
			return nil
		case next.Pause && !r.pause(ctx):
			return nil
		}
		phase = next.To
	}
}

// endRound closes what a round had open.
func (r *Reflector) endRound() {
	if r.open != nil {
		r.closeWatch()
	}
	if r.resync != nil {
		r.resync.Stop()
		r.resync = nil
	}
	r.internalErrors = internalErrors{max: r.internalErrors.max}
	r.limit = -1
	r.fetched = false
}

// pause backs off. It returns false if ctx ends first.
func (r *Reflector) pause(ctx context.Context) bool {
	timer := r.clock.NewTimer(r.backoff.next(r.clock.Now()))
	defer timer.Stop()
	r.setPhase(BackingOff)
	select {
	case <-ctx.Done():
	case <-timer.C():
	}
	return ctx.Err() == nil
}

// watchTimeout is how long the next watch may last: random, so that clients that started together do not stay together.
func (r *Reflector) watchTimeout() time.Duration {
	seconds := r.minWatchTimeout.Seconds() * (1 + rand.Float64())
	return time.Duration(int64(seconds)) * time.Second
}

func (r *Reflector) withLogger(ctx context.Context) context.Context {
	if r.logger == nil {
		return ctx
	}
	return klog.NewContext(ctx, klog.LoggerWithName(*r.logger, r.name))
}

// isNil is true of nil and of a nil pointer inside an interface.
func isNil(obj any) bool {
	if obj == nil {
		return true
	}
	v := reflect.ValueOf(obj)
	return v.Kind() == reflect.Pointer && v.IsNil()
}
