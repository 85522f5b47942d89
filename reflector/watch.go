// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"fmt"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"
)

// liveWatch is a watch that the server has granted.
type liveWatch struct {
	watch.Interface
	cancel      context.CancelFunc
	started     time.Time // before the request: some proxies answer only when the first event comes
	deadline    time.Time // when the server should have ended it
	lastEvent   time.Time // or the zero time
	eventCount  int
	pastInitial bool // what the server sends now is in resourceVersion order
}

// tooShort returns the error of a watch that ended at now, or nil if it was a proper one.
func (w *liveWatch) tooShort(name string, now time.Time) error {
	if w.eventCount == 0 && now.Sub(w.started) < veryShortWatch {
		return &VeryShortWatchError{Name: name}
	}
	return nil
}

// openWatch opens a watch where the last answer ended.
func (r *Reflector) openWatch(ctx context.Context) (err error) {
	resourceVersion := r.LastSyncResourceVersion()
	r.open, err = r.startWatch(ctx, r.watchTimeout(), metav1.ListOptions{
		ResourceVersion:     resourceVersion,
		AllowWatchBookmarks: true, // so that the last resourceVersion stays recent where little happens
	})
	if err == nil {
		// At "" or "0" a watch begins with the present state, as ADDED events in no order.
		r.open.pastInitial = resourceVersion != "" && resourceVersion != "0"
	}
	return err
}

// startWatch asks the server for a watch and waits for the answer. Meanwhile it resyncs.
func (r *Reflector) startWatch(ctx context.Context, timeout time.Duration, options metav1.ListOptions) (*liveWatch, error) {
	timeoutSeconds := int64(timeout.Seconds())
	options.TimeoutSeconds = &timeoutSeconds
	started := r.clock.Now()
	timer := r.clock.NewTimer(timeout + r.watchdogSlack)
	defer timer.Stop()
	expired := timer.C()
	if r.watchdogSlack < 0 {
		expired = nil
	}

	watchCtx, cancel := context.WithCancel(ctx)
	answer := call(func() (watch.Interface, error) { return r.listerWatcher.WatchWithContext(watchCtx, options) })
	abandon := func() {
		cancel()
		go func() { // it may still come
			if o := <-answer; o.panicked == nil && !isNil(o.value) {
				o.value.Stop()
			}
		}()
	}
	for {
		select {
		case <-ctx.Done():
			abandon()
			return nil, ctx.Err()
		case <-expired:
			abandon()
			return nil, fmt.Errorf("%w: no answer", ErrWatchSilent)
		case <-r.resyncDue():
			if err := r.resyncNow(ctx); err != nil {
				abandon()
				return nil, err
			}
		case cause := <-r.relistDue():
			abandon()
			return nil, relistError(cause)
		case o := <-answer:
			w, err := o.unpack()
			if !isEmptyWatch(w) {
				r.noteAnswer(err)
			}
			if err == nil && isNil(w) {
				err = fmt.Errorf("failed to watch %v: ListerWatcher returned no watch: %w", r.typeDescription, errNilResult)
			}
			if err != nil {
				cancel()
				return nil, err
			}
			inc(r.metrics.watches)
			return &liveWatch{Interface: w, cancel: cancel, started: started, deadline: started.Add(timeout)}, nil
		}
	}
}

// isEmptyWatch reports a watch that rest made itself because it could not reach the server. It is closed already.
func isEmptyWatch(w watch.Interface) bool {
	return reflect.TypeOf(w) == reflect.TypeOf(watch.NewEmptyWatch())
}

// closeWatch stops the open watch.
func (r *Reflector) closeWatch() {
	w := r.open
	r.open = nil
	w.Stop()
	w.cancel()
	r.metrics.watchEnded(r.clock.Since(w.started), w.eventCount)
}

// followWatch applies the events of the open watch to the store until the watch ends.
func (r *Reflector) followWatch(ctx context.Context) error {
	defer r.closeWatch()
	if err := r.consume(ctx, follower{}); err != nil {
		return err
	}
	return r.open.tooShort(r.name, r.clock.Now())
}

// watchdog gives up a watch that the server should have ended, and that has been silent for some time since: nobody is at
// its other end. It returns when to look again.
func (r *Reflector) watchdog(now time.Time) (time.Duration, error) {
	if r.watchdogSlack < 0 {
		return r.minWatchTimeout, nil
	}
	alive := r.open.deadline
	if r.open.lastEvent.After(alive) {
		alive = r.open.lastEvent
	}
	left := alive.Add(r.watchdogSlack).Sub(now)
	if left <= 0 {
		return 0, ErrWatchSilent
	}
	return left, nil
}

// startResync schedules the first Resync after everything was fetched.
func (r *Reflector) startResync() {
	if r.resyncPeriod > 0 {
		r.resync = r.clock.NewTimer(r.resyncPeriod)
	}
}

// resyncDue delivers when a Resync is due. Outside of the phases that resync it never does. What falls due while the
// reflector backs off is found due afterwards.
func (r *Reflector) resyncDue() <-chan time.Time {
	if r.resync == nil {
		return nil
	}
	return r.resync.C()
}

// resyncNow replays the store, if it is asked to, and schedules the next time.
func (r *Reflector) resyncNow(ctx context.Context) error {
	if r.shouldResync == nil || r.shouldResync() {
		klog.FromContext(ctx).V(4).Info("Resyncing", "reflector", r.name)
		if err := r.store.Resync(); err != nil {
			return &ApplyError{Verb: "resync", Err: err}
		}
	}
	r.resync.Reset(r.resyncPeriod)
	return nil
}
