// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/internal/helpers/async"
	"example.com/informerstack/internal/helpers/listwatch"
	"example.com/informerstack/internal/helpers/objects"
)

const forever = time.Duration(math.MaxInt64)

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

// openWatch opens a watch at the last resourceVersion.
func (r *Reflector) openWatch(ctx context.Context) error {
	if err := r.awaitTurn(ctx); err != nil {
		return err
	}
	resourceVersion := r.LastSyncResourceVersion()
	w, err := r.startWatch(ctx, metav1.ListOptions{
		ResourceVersion:     resourceVersion,
		AllowWatchBookmarks: true, // they keep the last resourceVersion recent if little happens
	}, forever)
	if err != nil {
		return err
	}
	// At "" or "0" a watch begins with the present state, as ADDED events in no order.
	w.pastInitial = resourceVersion != "" && resourceVersion != "0"
	r.round.open, r.round.followedFrom = w, w.started
	return nil
}

// watchTimeout is how long the next watch may last: random, so that clients that started together
// drift apart.
func (r *Reflector) watchTimeout() time.Duration {
	seconds := r.opts.MinWatchTimeout.Seconds() * (1 + rand.Float64())
	return time.Duration(int64(seconds)) * time.Second
}

// startWatch asks the server for a watch and waits for the answer, for as long as patience allows,
// and no longer than the watch itself may last.
func (r *Reflector) startWatch(
	ctx context.Context, options metav1.ListOptions, patience time.Duration,
) (*liveWatch, error) {
	timeout := r.watchTimeout()
	options.TimeoutSeconds = new(int64(timeout.Seconds()))
	if r.opts.WatchdogSlack >= 0 {
		patience = min(patience, timeout+r.opts.WatchdogSlack)
	}
	started := r.opts.Clock.Now()
	timer := r.opts.Clock.NewTimer(patience)
	defer timer.Stop()

	watchCtx, cancel := context.WithCancel(ctx)
	answer := async.Call(func() (watch.Interface, error) {
		return r.listerWatcher.WatchWithContext(watchCtx, options)
	})
	o, _, err := receive(ctx, r, answer, timer.C())
	if err != nil {
		cancel()
		go stopLate(answer)
		if err == errTimeout {
			err = fmt.Errorf("%w: no answer within %v", ErrWatchSilent, patience)
		}
		return nil, err
	}
	w, err := o.Unpack()
	if err == nil && objects.IsNil(w) {
		err = fmt.Errorf("failed to watch %v: ListerWatcher returned no watch: %w",
			r.TypeDescription(), errNilResult)
	}
	if !listwatch.IsUnanswered(w) {
		r.noteAnswer(err)
	}
	if err != nil {
		cancel()
		return nil, err
	}
	count(r.opts.Metrics.Watches)
	r.recency.flowing, r.question.watched = time.Time{}, r.opts.Clock.Now()
	return &liveWatch{
		Interface: w, cancel: cancel, started: started, deadline: started.Add(timeout),
	}, nil
}

// stopLate stops the watch of a request that was given up, if the server still grants it.
func stopLate(answer <-chan async.Outcome[watch.Interface]) {
	if o := <-answer; o.Panicked == nil && !objects.IsNil(o.Value) {
		o.Value.Stop()
	}
}

// closeWatch stops the open watch.
func (r *Reflector) closeWatch() {
	w := r.round.open
	r.round.open = nil
	w.Stop()
	w.cancel()
	lasted := r.opts.Clock.Since(w.started)
	report(r.opts.Metrics.WatchDuration, lasted)
	report(r.opts.Metrics.ItemsInWatch, w.eventCount)
	if w.eventCount == 0 && lasted < veryShortWatch {
		count(r.opts.Metrics.ShortWatches)
	}
}

// followWatch applies the events of the open watch to the store until the watch ends.
func (r *Reflector) followWatch(ctx context.Context) error {
	defer r.closeWatch()
	w, before := storeWriter{from: r.LastSyncResourceVersion()}, r.round.open.eventCount
	err := r.consume(ctx, &w)
	now := r.opts.Clock.Now()
	lived := now.Sub(r.round.followedFrom)
	news := w.changed && r.LastSyncResourceVersion() != w.from
	r.round.lost = r.round.lost && lived < healthyWatch
	if lived >= healthyWatch {
		r.backoff.healthy()
	}
	if reselector, ok := r.round.open.Interface.(Reselector); ok && err == nil {
		if selection := reselector.Reselected(); selection != nil {
			return r.reselect(ctx, selection)
		}
	}
	isSilent := errors.Is(err, ErrWatchSilent)
	switch {
	case r.round.open.eventCount > before:
		r.empty = emptyWatches{}
	case lived >= veryShortWatch && (err == nil || isSilent) && !r.isUnreachable():
		return cmp.Or(r.watchWasEmpty(ctx, r.round.open.started, now), err)
	}
	switch {
	case err != nil, news, lived >= veryShortWatch:
		return err
	case r.isUnreachable():
		return fmt.Errorf("%w: %w", errUnreachable, &VeryShortWatchError{Name: r.Name()})
	case r.round.open.eventCount == 0: // a stream has brought the initial events
		return &VeryShortWatchError{Name: r.Name()}
	}
	return errNothingNew
}
