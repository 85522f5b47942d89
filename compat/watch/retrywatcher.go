// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"

	"example.com/informerstack/compat/cache"
	"example.com/informerstack/internal/helpers/done"
)

const (
	// minRestartDelay is the least time between two starts of a watch.
	minRestartDelay = time.Second
	// maxRetryAfter is the longest pause that the server is granted.
	maxRetryAfter = time.Minute
)

// RetryWatcher is a watch that restarts where it ended, so that its reader sees every event once,
// in order. It ends with an Error event if it cannot be continued: after a resourceVersion that the
// server has compacted, missing permission or credentials, an object without a resourceVersion, or
// an unknown event.
//
//	W1  resourceVersion is that of the last event that was delivered, or of a bookmark after it
//	W2  two watches begin at least minRestartDelay apart, and later where the server asks for it,
//	    up to maxRetryAfter
//
// Source: tools/watch/retrywatcher.go RetryWatcher
type RetryWatcher struct {
	watcher         cache.WatcherWithContext
	resourceVersion string // of run's goroutine
	results         chan watch.Event
	done            chan struct{}
	stop            context.CancelFunc
}

var _ watch.Interface = (*RetryWatcher)(nil)

// NewRetryWatcher is NewRetryWatcherWithContext without a context.
//
// Deprecated: use NewRetryWatcherWithContext.
//
// Source: tools/watch/retrywatcher.go NewRetryWatcher
func NewRetryWatcher(initialResourceVersion string,
	watcherClient cache.Watcher) (*RetryWatcher, error) {
	return NewRetryWatcherWithContext(context.Background(), initialResourceVersion,
		cache.ToWatcherWithContext(watcherClient))
}

// NewRetryWatcherWithContext returns a RetryWatcher that runs until ctx is done or Stop is called.
// It returns an error if initialResourceVersion is "" or "0", because a watch from there does not
// begin at a known state.
//
// Source: tools/watch/retrywatcher.go NewRetryWatcherWithContext
func NewRetryWatcherWithContext(ctx context.Context, initialResourceVersion string,
	watcherClient cache.WatcherWithContext) (*RetryWatcher, error) {
	if initialResourceVersion == "" || initialResourceVersion == "0" {
		return nil, fmt.Errorf("initial RV %q is not supported due to issues with underlying WATCH",
			initialResourceVersion)
	}
	ctx, stop := context.WithCancel(ctx)
	w := &RetryWatcher{
		watcher:         watcherClient,
		resourceVersion: initialResourceVersion,
		results:         make(chan watch.Event),
		done:            make(chan struct{}),
		stop:            stop,
	}
	go w.run(ctx)
	return w, nil
}

// ResultChan returns the events. It is closed when the watcher has ended.
func (w *RetryWatcher) ResultChan() <-chan watch.Event { return w.results }

// Stop ends the watcher without waiting; see Done.
func (w *RetryWatcher) Stop() { w.stop() }

// Done returns a channel that closes when the watcher has ended.
func (w *RetryWatcher) Done() <-chan struct{} { return w.done }

// verdict is the next step after an event or the end of a watch.
type verdict int

const (
	proceed verdict = iota // read the next event
	restart                // start a new watch
	end                    // end the watcher
)

// run starts watches until the verdict is end.
func (w *RetryWatcher) run(ctx context.Context) {
	defer close(w.done)
	defer close(w.results)
	defer w.stop()
	for {
		began := time.Now()
		next, pause := w.watch(ctx)
		if next == end || ctx.Err() != nil {
			return
		}
		if !done.Sleep(ctx, max(pause, minRestartDelay-time.Since(began))) {
			return
		}
		klog.FromContext(ctx).V(4).Info("Watching again", "resourceVersion", w.resourceVersion)
	}
}

// watch delivers the events of one watch. It returns the next step, and the delay that the server
// asked for.
func (w *RetryWatcher) watch(ctx context.Context) (next verdict, pause time.Duration) {
	one, err := w.watcher.WatchWithContext(ctx, metav1.ListOptions{
		ResourceVersion:     w.resourceVersion,
		AllowWatchBookmarks: true,
	})
	if err != nil {
		return w.refused(ctx, err), 0
	}
	if one == nil {
		klog.FromContext(ctx).Error(nil, "Watch returned neither a watch nor an error")
		return restart, 0
	}
	defer one.Stop()
	for {
		select {
		case <-ctx.Done():
			return end, 0
		case event, open := <-one.ResultChan():
			if !open {
				return restart, 0
			}
			if next, pause := w.take(ctx, event); next != proceed {
				return next, pause
			}
		}
	}
}

// refused returns the verdict on a watch that could not start.
func (w *RetryWatcher) refused(ctx context.Context, err error) verdict {
	logger := klog.FromContext(ctx)
	switch {
	case errors.Is(err, io.EOF): // the server is shutting down
	case errors.Is(err, io.ErrUnexpectedEOF):
		logger.V(1).Info("Watch was cut", "err", err)
	case utilnet.IsProbableEOF(err), utilnet.IsTimeout(err):
		logger.V(5).Info("Watch failed", "err", err)
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		logger.Error(err,
			"Watch failed: the client needs valid credentials and the permission to watch")
		var status apierrors.APIStatus
		if errors.As(err, &status) {
			s := status.Status()
			w.send(ctx, watch.Event{Type: watch.Error, Object: &s})
		}
		return end
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		logger.V(4).Info("Watch failed", "err", err)
	default:
		logger.Error(err, "Watch failed")
	}
	return restart
}

// take delivers an event and returns the verdict on it.
func (w *RetryWatcher) take(ctx context.Context,
	event watch.Event) (next verdict, pause time.Duration) {
	switch event.Type {
	case watch.Added, watch.Modified, watch.Deleted, watch.Bookmark:
		return w.pass(ctx, event), 0
	case watch.Error:
		return w.failed(ctx, event)
	}
	klog.FromContext(ctx).Error(nil, "Watch brought an event of an unknown type", "type",
		event.Type)
	return w.fail(ctx, fmt.Errorf("retryWatcher failed to recognize Event type %q", event.Type)), 0
}

// pass delivers an event, unless it is a bookmark, and stores its resourceVersion.
func (w *RetryWatcher) pass(ctx context.Context, event watch.Event) verdict {
	object, ok := event.Object.(interface{ GetResourceVersion() string })
	if !ok {
		return w.fail(ctx, errors.New("retryWatcher: doesn't support resourceVersion"))
	}
	resourceVersion := object.GetResourceVersion()
	if resourceVersion == "" {
		return w.fail(ctx,
			fmt.Errorf("retryWatcher: object %T doesn't support resourceVersion", event.Object))
	}
	if event.Type != watch.Bookmark && !w.send(ctx, event) {
		return end
	}
	w.resourceVersion = resourceVersion
	return proceed
}

// failed returns the verdict on an Error event.
func (w *RetryWatcher) failed(ctx context.Context,
	event watch.Event) (next verdict, pause time.Duration) {
	var status *apierrors.StatusError
	if err := apierrors.FromObject(event.Object); !errors.As(err, &status) {
		klog.FromContext(ctx).Error(err, "Watch brought an error that is no Status")
		return restart, 0
	}
	if status.ErrStatus.Code == http.StatusGone {
		w.send(ctx, event)
		return end, 0
	}
	klog.FromContext(ctx).V(5).Info("Watch failed", "err", status)
	if details := status.ErrStatus.Details; details != nil {
		pause = min(time.Duration(details.RetryAfterSeconds)*time.Second, maxRetryAfter)
	}
	return restart, pause
}

// fail ends the watcher with err as an Error event: if it continued, it could miss events.
func (w *RetryWatcher) fail(ctx context.Context, err error) verdict {
	w.send(ctx, watch.Event{Type: watch.Error, Object: &apierrors.NewInternalError(err).ErrStatus})
	return end
}

// send waits for the reader. It returns false if the watcher is stopped first.
func (w *RetryWatcher) send(ctx context.Context, event watch.Event) bool {
	select {
	case w.results <- event:
		return true
	case <-ctx.Done():
		return false
	}
}
