// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"cmp"
	"context"
	"io"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"example.com/informerstack/internal/helpers/callsite"
	"example.com/informerstack/reflector/outage"
	"example.com/informerstack/reflector/starts"
	"example.com/informerstack/store"
)

// Defaults of Options, and the limits that no option changes.
const (
	defaultMinWatchTimeout   = 5 * time.Minute
	defaultPageSize          = 500
	defaultWatchListDeadline = time.Minute
	defaultWatchdogSlack     = 30 * time.Second

	veryShortWatch    = time.Second      // a watch without events that ended sooner is an error
	bookmarkWarning   = 10 * time.Second // how often a stream without its end bookmark is logged
	slowListThreshold = 10 * time.Second // a LIST that takes longer is logged
)

// Options configures a Reflector. The zero value behaves as client-go's informers do by default.
//
// Source: tools/cache/reflector.go ReflectorOptions
type Options struct {
	// Logger is used instead of the one in Run's context.
	Logger *klog.Logger
	// Name names the reflector in logs and errors. Default: the file:line that called New, or that
	// ran the informer, or else the TypeDescription.
	Name string
	// TypeDescription names the type of the objects in logs. Default: the group, version and kind
	// of an unstructured expected type, else the Go type, else "<unspecified>".
	TypeDescription string

	// ResyncPeriod is how often Store.Resync is called while the store is kept up to date, also
	// between two watches. 0 means never.
	ResyncPeriod time.Duration
	// ShouldResync is asked before each Resync. nil means always.
	ShouldResync func() bool

	// MinWatchTimeout is the shortest timeout that a watch requests. Each request has a random
	// timeout between it and twice as much. Default, and minimum: 5 minutes.
	MinWatchTimeout time.Duration
	// WatchdogSlack is how long after that time a silent watch is given up. Default: 30 seconds;
	// negative: never.
	WatchdogSlack time.Duration

	// Clock is the source of time. Default: package time.
	Clock clock.Clock
	// Backoff makes the waits between failures. They start again two minutes after they last did,
	// and after a 410. Default: 800 ms, doubled each time to at most 30 s, plus up to as much again
	// at random.
	Backoff *wait.Backoff
	// Outage, if not nil, is a Group of reflectors of one server, which may end a wait before the
	// end of the Backoff: see package outage. Default: no Group, and client-go's waits.
	// informer.New sets the Group of its client and server, see outage.Of.
	Outage *outage.Group
	// Starts, if not nil, limits how many of the reflectors that share it fetch everything at the
	// same time. Default: each begins at once.
	Starts *starts.Limiter
	// MaxInternalErrorRetryDuration is how long a watch that ends in InternalError is opened again
	// at once instead of listing again. 0 means never.
	MaxInternalErrorRetryDuration time.Duration

	// WatchListPageSize is the page size of each LIST. Default 0: pages of 500 where the server may
	// read from etcd anyway, and no pages where it can serve the list from its cache. A paged LIST
	// always reads from etcd: costly for the server.
	WatchListPageSize int64
	// UseWatchList says whether the first state is fetched by a streaming watch where the server
	// can. nil means yes.
	UseWatchList *bool
	// WatchListDeadline is how long that stream may be without an answer, or bring no new object,
	// before the reflector lists instead. Default: one minute; negative: for ever.
	WatchListDeadline time.Duration

	// ListDeadline is how long a LIST may bring no new object before it is given up, as an error.
	// It is checked once in that time. A ListerWatcher that is no StreamLister brings the objects
	// of a page together. Default: for ever, as in client-go.
	ListDeadline time.Duration

	// Transform changes each received object, before it is buffered or handed to the Store: exactly
	// once for each item of a LIST and each object of a watch event, also of a delete, and never on
	// resync. One call runs at a time. It must not change the object's name and namespace. An error
	// or a nil result is an ApplyError. nil means no transform.
	Transform store.TransformFunc

	// WatchErrorHandler gets the error that ended a round of ListAndWatch. Default:
	// DefaultWatchErrorHandler.
	WatchErrorHandler WatchErrorHandler
	// Metrics are called with what is measured.
	Metrics Metrics
	// Observe, if not nil, is called with each transition of the state machine. It must return
	// quickly.
	Observe func(Transition)
}

// Metrics are functions that a reflector calls with its measurements, from the goroutine that runs
// it. They must return quickly. A nil field is not measured.
//
// Source: tools/cache/reflector_metrics.go MetricsProvider
type Metrics struct {
	// Lists counts LISTs, whole ones, not pages.
	Lists func()
	// ListDuration is how long each LIST took, and ItemsInList how many objects it returned.
	ListDuration func(d time.Duration)
	ItemsInList  func(n int)

	// Watches counts the watches that were opened, streaming lists included; ShortWatches those
	// that were over within a second, without an event.
	Watches, ShortWatches func()
	// WatchDuration is how long each watch stayed open, and ItemsInWatch how many events it
	// brought.
	WatchDuration func(d time.Duration)
	ItemsInWatch  func(n int)

	// LastResourceVersion is the number in the last 15 digits of the resourceVersion that the Store
	// has reached, which a float64 holds exactly.
	LastResourceVersion func(digits float64)

	// Backoff is each wait after a failure, at its start.
	Backoff func(d time.Duration)
}

func count(metric func()) {
	if metric != nil {
		metric()
	}
}

func report[T any](metric func(T), value T) {
	if metric != nil {
		metric(value)
	}
}

// withDefaults fills in what is not set.
func (o Options) withDefaults(e expected) Options {
	o.TypeDescription = cmp.Or(o.TypeDescription, e.describe())
	if o.Name == "" {
		o.Name = cmp.Or(callsite.Name(), o.TypeDescription)
	}
	o.MinWatchTimeout = max(o.MinWatchTimeout, defaultMinWatchTimeout)
	o.WatchdogSlack = cmp.Or(o.WatchdogSlack, defaultWatchdogSlack)
	o.WatchListDeadline = cmp.Or(o.WatchListDeadline, defaultWatchListDeadline)
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Backoff == nil {
		o.Backoff = new(defaultBackoff())
	}
	if o.WatchErrorHandler == nil {
		o.WatchErrorHandler = DefaultWatchErrorHandler
	}
	return o
}

// WatchErrorHandler is called with the error that ended a round of list and watch. After it returns
// the reflector backs off and lists again. It must return quickly.
//
// Source: tools/cache/reflector.go WatchErrorHandlerWithContext
type WatchErrorHandler func(ctx context.Context, r *Reflector, err error)

// DefaultWatchErrorHandler logs err as an error. The usual ends of a watch are logged at a verbose
// level, or not at all: an expired resourceVersion, and a connection that was cut.
//
// Source: tools/cache/reflector.go DefaultWatchErrorHandler
func DefaultWatchErrorHandler(ctx context.Context, r *Reflector, err error) {
	logger := r.log(ctx).WithValues("err", bounded(err))
	switch {
	case isExpired(err):
		logger.V(4).Info("Watch expired")
	case err == io.EOF: // a wrapped EOF means that a request failed, which is worth a report
	case err == io.ErrUnexpectedEOF: // likewise
		logger.V(1).Info("Watch was cut off")
	default:
		utilruntime.HandleErrorWithContext(ctx, bounded(err), "Failed to watch",
			"reflector", r.Name(), "type", r.TypeDescription())
	}
}
