// SPDX-License-Identifier: Apache-2.0

// Package reflector keeps a store equal to a collection on a server.
//
//	API server <- LIST, WATCH - [reflector] - Replace, Add, Update, Delete -> deltafifo
//
// To use it, make a wire.ListWatch or a [ListWatch], and a [Reflector] with [New], which gets the
// [Store] to fill, and call Run. Run returns when its context ends; until then it retries every
// failure. Most programs use an informer, which has a reflector inside, and set its
// Options.Reflector.
//
// Read reflector.go, phase.go (the state machine), list.go, watch.go, event.go and backoff.go;
// watchlist.go is the streaming list, recency.go and question.go the age of the store, empty.go the
// watches that bring nothing. Then go test -v ./reflector.
// Goroutines: Run's caller does everything but wait for the server. Each LIST and each opening of a
// watch has a goroutine that ends with the request. Locking: mu guards the content of Status; no
// foreign code runs under it.
//
// Source: tools/cache/reflector.go Reflector, tools/cache/listwatch.go ListWatch
package reflector

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"example.com/informerstack/internal/freshness"
	"example.com/informerstack/reflector/outage"
)

// Store is the destination of a reflector, which keeps it equal to the collection: a store.Store,
// or a queue in front of one.
//
// A reflector calls all methods, and those of the optional interfaces below, from the goroutine
// that runs it, one at a time. An error means that the store did not take the change: the reflector
// does not move past it, see ApplyError.
//
// Source: tools/cache/reflector.go ReflectorStore
type Store interface {
	Add(obj any) error
	Update(obj any) error
	Delete(obj any) error
	// Replace makes the store hold exactly list. The store owns list from then on.
	Replace(list []any, resourceVersion string) error
	Resync() error
}

// BookmarkStore is a Store that also gets the bookmarks of a watch: resourceVersions that the
// server has reached without a change of the collection.
//
// Source: tools/cache/reflector.go ReflectorBookmarkStore
type BookmarkStore interface {
	Bookmark(resourceVersion string) error
}

// ResourceVersionUpdater is a Store that is also called with each resourceVersion that the watch
// has reached, after the change itself.
//
// Source: tools/cache/reflector.go ResourceVersionUpdater
type ResourceVersionUpdater interface {
	UpdateResourceVersion(resourceVersion string)
}

// Reflector lists a collection, puts it into a Store, then watches it and passes on each change.
//
//	R1  the Store has taken every change up to the last resourceVersion, and no relist asks for
//	    an older state
//	R2  one watch is open while the phase is Watching or Streaming, and no watch otherwise; every
//	    watch received is stopped
//	R3  each received object is transformed once, then handed to the Store or dropped with the
//	    list that it came in; one transform runs at a time
//	R4  the Store is called from one goroutine; Resync only between the end of a list and the
//	    end of its round
//	R5  two requests that fail in the same way have a wait between them, and so have two watches
//	    that end within a second and bring no change. Exceptions: InternalErrors within
//	    Options.MaxInternalErrorRetryDuration, and the first loss of a connection
//	R6  Status.CurrentAsOf is the zero time while the store is known to be old
type Reflector struct {
	opts          Options // with the defaults filled in
	listerWatcher ListerWatcher
	expected      expected
	store         Store
	bookmarks     BookmarkStore          // the store, if it is one
	versions      ResourceVersionUpdater // the store, if it is one
	freshness     *freshness.Tracker

	running      atomic.Bool
	relists      chan error    // holds the cause of a Relist until everything is requested again
	transforming chan struct{} // full during a transform: a LIST of an earlier Run may be in one
	// transformingSince is when it began, as nanoseconds of Unix time; otherwise 0.
	transformingSince atomic.Int64
	arrived           atomic.Int64 // counts the objects that LISTs have brought

	// The fields below belong to the goroutine that runs the reflector.

	backoff  *backoff
	member   outage.Member
	round    round
	recency  recency
	question question
	empty    emptyWatches

	// Facts about the server.

	useWatchList bool // false once the server is known not to support streaming lists
	unfinished   int  // streaming lists in a row that ended before the initial state was complete
	fellBack     bool // a streaming list was given up for a LIST, and that was logged
	paginated    bool // the server pages even a LIST at "0": it has no watch cache to protect
	unavailable  bool // the server cannot serve the last resourceVersion

	contact atomic.Pointer[time.Time] // Status.LastContact; nil before the first one

	mu     sync.Mutex
	status Status    // without contact and what freshness knows
	readAt time.Time // when Status was last called
}

// round is what a reflector remembers between the phases of one round.
type round struct {
	limit          int64       // of each page of this round's LISTs; -1 before the first
	losses         int         // before everything was requested
	fetched        bool        // everything was fetched, and is kept up to date from now on
	inferred       bool        // the last list was not requested
	resync         clock.Timer // fires when the next Resync is due; nil before it is fetched
	open           *liveWatch  // see R2
	followedFrom   time.Time   // when the open watch began, or the initial events of a stream ended
	lost           bool        // a watch was lost, and no watch has lived for healthyWatch since
	internalErrors internalErrors
}

// New returns a reflector that keeps s equal to the collection that lw lists and watches. It does
// nothing before Run.
//
// expectedType is an example of the objects; for an unstructured one, apiVersion and kind matter
// too. A LIST that holds another Go type fails; an event that brings another type or kind is
// reported and skipped. nil accepts anything.
func New(lw ListerWatcher, expectedType any, s Store, opts Options) *Reflector {
	r := &Reflector{
		listerWatcher: lw,
		expected:      newExpected(expectedType),
		store:         s,
		freshness:     freshness.Direct(),
		relists:       make(chan error, 1),
		transforming:  make(chan struct{}, 1),
		status:        Status{Phase: Idle},
	}
	if f, ok := s.(freshness.Followed); ok { // an informer's
		inner, tracker := f.Followed()
		r.store, r.freshness = inner.(Store), tracker
	}
	r.bookmarks, _ = r.store.(BookmarkStore)
	r.versions, _ = r.store.(ResourceVersionUpdater)
	r.opts = opts.withDefaults(r.expected)
	r.backoff = newBackoff(*r.opts.Backoff, r.opts.Clock)
	r.member.Group = r.opts.Outage
	refuser, ok := lw.(WatchListRefuser)
	refused := ok && refuser.IsWatchListSemanticsUnSupported()
	r.useWatchList = (opts.UseWatchList == nil || *opts.UseWatchList) && !refused
	return r
}

// Name returns the name used in logs and metrics.
func (r *Reflector) Name() string { return r.opts.Name }

// TypeDescription returns the name of the expected type, for readers of a log.
func (r *Reflector) TypeDescription() string { return r.opts.TypeDescription }

// Run lists and watches until ctx is done, in rounds with a wait after each. It returns without
// waiting for requests that ignore ctx. A second Run at the same time is reported and returns at
// once.
func (r *Reflector) Run(ctx context.Context) {
	ctx = r.withLogger(ctx)
	if !r.running.CompareAndSwap(false, true) {
		utilruntime.HandleErrorWithContext(ctx, ErrRunning, "Reflector was run twice",
			"reflector", r.Name())
		return
	}
	defer r.running.Store(false)
	defer r.setPhase(Idle)
	logger := r.log(ctx)
	logger.V(3).Info("Starting reflector", "resyncPeriod", r.opts.ResyncPeriod)
	defer logger.V(3).Info("Stopped reflector")
	for {
		r.handledRound(ctx)
		if err := r.pause(ctx); err != nil {
			return
		}
	}
}

// handledRound runs a round and passes its error to the WatchErrorHandler. A panic is logged, and
// raised again unless the process is configured to survive panics (utilruntime.ReallyCrash).
func (r *Reflector) handledRound(ctx context.Context) {
	defer utilruntime.HandleCrashWithContext(ctx)
	if err := r.runRound(ctx); err != nil {
		r.opts.WatchErrorHandler(ctx, r, err)
	}
}

// ListAndWatch runs one round: it fetches everything, then follows the changes until everything
// must be fetched again. It returns nil if ctx is done, or if the watch ended in a way that is only
// logged. Otherwise it returns why the round ended: a LIST or the start of a WATCH failed, or a
// change could not be applied (ApplyError).
//
// The panic of a LIST or of a WATCH's start reaches the caller of ListAndWatch.
func (r *Reflector) ListAndWatch(ctx context.Context) error {
	if !r.running.CompareAndSwap(false, true) {
		return ErrRunning
	}
	defer r.running.Store(false)
	defer r.setPhase(Idle)
	return r.runRound(r.withLogger(ctx))
}

// Relist asks the running reflector to end its watch and to fetch everything again, after a wait,
// because the consumer behind the Store lost a change. The round ends with an ApplyError with the
// Verb "process" and cause as its Err, which the WatchErrorHandler gets. Until the new list has
// replaced the Store's content, Status.CurrentAsOf is the zero time.
//
// A list that was requested before the call does not satisfy it: another one follows. Calls that no
// list has followed yet count as one, and the first one's cause is reported. A call during a wait
// before a list, or before Run, is satisfied by that list. Relist never blocks, and may be called
// from any goroutine, even from within the Store.
func (r *Reflector) Relist(cause error) {
	r.freshness.Lose() // before the cause is there: a list that was requested since ends the loss
	select {
	case r.relists <- cause:
	default:
	}
}

// forgetRelist is called before everything is requested: that request satisfies a Relist, and
// brings every change that was lost until now.
func (r *Reflector) forgetRelist(ctx context.Context) {
	select {
	case cause := <-r.relists:
		r.log(ctx).Info("Fetching everything again: a change was lost behind the Store",
			"err", bounded(cause))
	default:
	}
	r.round.losses = r.freshness.Losses()
}

// runRound runs the state machine from Starting until it would start again. It returns the error of
// the last phase, except the end of a watch, which is only logged.
func (r *Reflector) runRound(ctx context.Context) error {
	defer r.endRound()
	r.round.limit = -1
	next := Transition{To: Starting}
	for {
		next = r.step(ctx, next.To, next.Pause)
		r.note(ctx, next)
		switch {
		case next.isHandled():
			return next.Err
		case next.To == Starting, next.To == Idle:
			return nil
		}
	}
}

// endRound closes what a round had open.
func (r *Reflector) endRound() {
	if r.round.open != nil {
		r.closeWatch()
	}
	if r.round.resync != nil {
		r.round.resync.Stop()
	}
	r.round = round{}
}

func (r *Reflector) withLogger(ctx context.Context) context.Context {
	if r.opts.Logger == nil {
		return ctx
	}
	return klog.NewContext(ctx, klog.LoggerWithName(*r.opts.Logger, r.Name()))
}

// log returns the logger of ctx, with the reflector's name and type.
func (r *Reflector) log(ctx context.Context) klog.Logger {
	return klog.FromContext(ctx).WithValues("reflector", r.Name(), "type", r.TypeDescription())
}
