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

	"example.com/informerstack/store"
)

// Defaults of Options, and the limits that no option changes.
const (
	defaultMinWatchTimeout   = 5 * time.Minute
	defaultPageSize          = 500
	defaultWatchListDeadline = time.Minute
	defaultWatchdogSlack     = 30 * time.Second

	veryShortWatch    = time.Second      // a watch without events that ended sooner is an error
	bookmarkWarning   = 10 * time.Second // how often a stream without its end bookmark is complained about
	slowListThreshold = 10 * time.Second // a LIST that takes longer is logged
)

// Options configures a Reflector. The zero value behaves as client-go's informers do by default.
//
// Source: tools/cache/reflector.go ReflectorOptions
type Options struct {
	// Logger is used instead of the one in Run's context.
	Logger *klog.Logger
	// Name names the reflector in logs, errors and metrics. Default: file:line of New's caller, or the
	// TypeDescription if that is an informer.
	Name string
	// TypeDescription is the type's name for people. Default: the group, version and kind of an unstructured expected
	// type, else the Go type, else "<unspecified>".
	TypeDescription string

	// ResyncPeriod is how often Store.Resync is called while watching. 0 means never.
	ResyncPeriod time.Duration
	// ShouldResync is asked before each Resync. nil means always.
	ShouldResync func() bool

	// MinWatchTimeout is the least time after which the server is asked to end a watch: each watch asks for a random time
	// between it and its double. Less than 5 minutes, the default, is not honoured.
	MinWatchTimeout time.Duration
	// WatchdogSlack is how long after that time a silent watch is given up. Default: 30 seconds; negative: never.
	WatchdogSlack time.Duration

	// Clock is the source of time. Default: package time.
	Clock clock.Clock
	// Backoff makes the waits between failures. They start again two minutes after they last did, and sooner once a watch
	// proves that the server is well, by a change or by outliving the last wait. Default: 800 ms, doubled each time to at
	// most 30 s, plus up to as much again at random.
	Backoff *wait.Backoff
	// MaxInternalErrorRetryDuration is how long a watch that ends in InternalError is opened again at once instead of
	// listing again. 0 means never.
	MaxInternalErrorRetryDuration time.Duration

	// WatchListPageSize is the page size of each LIST. Default 0: pages of 500 where the server may read from etcd anyway,
	// and none where it can serve the list from its cache. A paged LIST always reads from etcd: costly for the server.
	WatchListPageSize int64
	// UseWatchList says whether the first state is fetched by a streaming watch where the server can. nil means yes.
	UseWatchList *bool
	// WatchListDeadline is how long that stream may bring no new object before the reflector lists instead. Default: one
	// minute; negative: for ever.
	WatchListDeadline time.Duration

	// Transform changes each received object, before it is buffered or handed to the Store: exactly once for each item of
	// a LIST and each object of a watch event, also of a delete, and never on resync. It must leave the object's name and
	// namespace alone. An error or a nil result is an ApplyError. nil means no transform.
	Transform store.TransformFunc

	// Verify, if not nil, is shown what a streaming list brought, before the Store gets it: for a check against the server,
	// in tests. The reflector waits until it returns.
	Verify func(ctx context.Context, r *Reflector, streamed Streamed)

	// WatchErrorHandler is told why a round of ListAndWatch failed. Default: DefaultWatchErrorHandler.
	WatchErrorHandler WatchErrorHandler
	// Metrics, if not nil, makes the metrics, once, in New.
	Metrics MetricsProvider
	// Observe, if not nil, is told each transition of the state machine. It must return quickly.
	Observe func(Transition)
	// Progress, if not nil, is called with each resourceVersion up to which the Store has taken every change, once Status
	// shows it, and with the time at which it was current (see Status.CurrentAsOf). It must return quickly.
	Progress func(resourceVersion string, asOf time.Time)
}

// withDefaults fills in what is not set.
func (o Options) withDefaults(e expected) Options {
	o.TypeDescription = cmp.Or(o.TypeDescription, e.describe())
	if o.Name == "" {
		o.Name = cmp.Or(callsite(), o.TypeDescription)
	}
	o.MinWatchTimeout = max(o.MinWatchTimeout, defaultMinWatchTimeout)
	o.WatchdogSlack = cmp.Or(o.WatchdogSlack, defaultWatchdogSlack)
	o.WatchListDeadline = cmp.Or(o.WatchListDeadline, defaultWatchListDeadline)
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Backoff == nil {
		wait := defaultBackoff()
		o.Backoff = &wait
	}
	if o.UseWatchList == nil {
		yes := true
		o.UseWatchList = &yes
	}
	if o.WatchErrorHandler == nil {
		o.WatchErrorHandler = DefaultWatchErrorHandler
	}
	return o
}

// WatchErrorHandler is called with the error that ended a round of list and watch. After it returns the reflector backs
// off and lists again. It must return quickly.
//
// Source: tools/cache/reflector.go WatchErrorHandlerWithContext
type WatchErrorHandler func(ctx context.Context, r *Reflector, err error)

// DefaultWatchErrorHandler logs err at the level it deserves: an expired resourceVersion and a cut connection are
// everyday, anything else is reported as an error.
//
// Source: tools/cache/reflector.go DefaultWatchErrorHandler
func DefaultWatchErrorHandler(ctx context.Context, r *Reflector, err error) {
	logger := klog.FromContext(ctx).WithValues("reflector", r.Name(), "type", r.TypeDescription(), "err", bounded(err))
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
