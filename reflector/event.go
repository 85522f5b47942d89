// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/internal/freshness"
	"example.com/informerstack/internal/helpers/objects"
	"example.com/informerstack/store"
)

// event is a watch event that was understood.
type event struct {
	watch.Event
	meta            metav1.Object // of the object as received; a transform may have changed it
	resourceVersion string        // as it was received
	obj             any           // of a change: the object transformed; otherwise nil
	received        time.Time
	pastInitial     bool // false while the server may still send the present state, in no order
}

// eventHandler takes the events of a watch: a snapshot while the initial state streams in, then a
// storeWriter.
type eventHandler interface {
	// handle takes a change, a bookmark, or the resourceVersion of an event of an unknown
	// type. done means that the handler needs no further event.
	handle(r *Reflector, e event) (done bool, err error)
	// check is called at first, and again when the time that it returned has passed, or earlier. An
	// error ends the watch.
	check(ctx context.Context, r *Reflector, now time.Time) (next time.Duration, err error)
}

// maxInARow is how many events are handled before the other cases of receive get a turn.
const maxInARow = 64

// consume reads the open watch until it is closed, or h is done, or something goes wrong.
func (r *Reflector) consume(ctx context.Context, h eventHandler) error {
	events := r.round.open.ResultChan()
	now := r.opts.Clock.Now()
	next, err := h.check(ctx, r, now)
	if err != nil {
		return err
	}
	checkAt := now.Add(next)
	r.recency.waiting = r.opts.Clock.Now()
	timer := r.opts.Clock.NewTimer(min(next, r.lookForPause(r.recency.waiting, events)))
	defer timer.Stop()
	for {
		e, open, err := receive(ctx, r, events, timer.C())
		now = r.opts.Clock.Now()
		switch {
		case err == errTimeout:
			if next, err = h.check(ctx, r, now); err != nil {
				return err
			}
			checkAt = now.Add(next)
			flowing := r.recency.flowing
			timer.Reset(min(next, r.lookForPause(now, events)))
			if !flowing.IsZero() && now.Sub(flowing) >= questionFlow {
				r.askIfOld(ctx, now)
			}
		case err != nil || !open:
			return err
		default:
			endsPause := r.took(e, now)
		arrived:
			for count := 1; ; count++ {
				if done, err := r.handleEvent(ctx, e, now, h); done || err != nil {
					return err
				}
				if count == maxInARow || ctx.Err() != nil {
					break
				}
				select {
				case e, open = <-events:
					now = r.opts.Clock.Now()
				default:
					break arrived
				}
				if !open {
					return nil
				}
			}
			r.recency.waiting = r.opts.Clock.Now()
			if endsPause {
				timer.Reset(min(checkAt.Sub(r.recency.waiting), max(r.recency.pause, readPause)))
			}
		}
	}
}

// receive returns the next value of ch, or false if ch is closed. All waits of the goroutine that
// runs r are here: from the end of a list to the end of its round, a wait resyncs when that is due,
// and ends with an ApplyError when a Relist asks for it.
func receive[T any](
	ctx context.Context, r *Reflector, ch <-chan T, timeout <-chan time.Time,
) (value T, ok bool, err error) {
	for {
		var resync <-chan time.Time
		if r.round.resync != nil {
			resync = r.round.resync.C()
		}
		var relists <-chan error
		if r.round.fetched { // before, the request that is under way must end first
			relists = r.relists
		}
		select {
		case value, ok = <-ch:
			return value, ok, nil
		case <-timeout:
			return value, false, errTimeout
		case <-ctx.Done():
			return value, false, ctx.Err()
		case cause := <-relists:
			return value, false, &ApplyError{Verb: "process", Err: cause}
		case <-resync:
			if err := r.resyncNow(ctx); err != nil {
				return value, false, err
			}
		}
	}
}

// resyncNow calls the store's Resync, if ShouldResync agrees, and schedules the next one.
func (r *Reflector) resyncNow(ctx context.Context) error {
	if r.opts.ShouldResync == nil || r.opts.ShouldResync() {
		r.log(ctx).V(4).Info("Resyncing")
		if err := r.store.Resync(); err != nil {
			return &ApplyError{Verb: "resync", Err: err}
		}
	}
	r.round.resync.Reset(r.opts.ResyncPeriod)
	r.recency.waiting = r.opts.Clock.Now()
	return nil
}

// handleEvent checks and transforms one event and passes it on. An event that cannot be meant for
// this reflector is reported and skipped, or ends the stream of initial events. If the handler
// fails, the resourceVersion does not move.
func (r *Reflector) handleEvent(
	ctx context.Context, received watch.Event, now time.Time, h eventHandler,
) (done bool, err error) {
	w := r.round.open
	w.lastEvent = now
	if received.Type == watch.Error {
		return false, apierrors.FromObject(received.Object)
	}
	e := event{Event: received, received: now}
	if err = r.expected.check(e.Object); err == nil {
		e.meta, err = meta.Accessor(e.Object)
	}
	if err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "Unexpected watch event",
			"reflector", r.Name(), "type", r.TypeDescription(), "event", e.Type)
		err = fmt.Errorf("unexpected watch event %v: %w", e.Type, err)
		if !r.round.fetched { // a LIST decides whether the collection is of this type
			return false, err
		}
		r.noteFailure(err, now)
		return false, nil
	}
	e.resourceVersion = e.meta.GetResourceVersion()

	switch e.Type {
	case watch.Added, watch.Modified, watch.Deleted:
		e.obj = e.Object
		if r.opts.Transform != nil {
			if e.obj, err = r.transformed(ctx, e.Object); err != nil {
				return false, err
			}
		}
		w.pastInitial = w.pastInitial || e.Type != watch.Added
	case watch.Bookmark:
		w.pastInitial = true
	default:
		utilruntime.HandleErrorWithContext(ctx, nil, "Unknown watch event",
			"reflector", r.Name(), "type", r.TypeDescription(), "event", e.Type)
	}
	e.pastInitial = w.pastInitial
	if done, err = h.handle(r, e); err == nil {
		w.eventCount++
	}
	return done, err
}

// transformed applies Options.Transform to an object that was just received. If ctx is done it
// returns ctx's error: the caller may be a LIST that an earlier Run gave up.
func (r *Reflector) transformed(ctx context.Context, obj runtime.Object) (any, error) {
	select {
	case r.transforming <- struct{}{}:
		defer func() { <-r.transforming }()
	case <-ctx.Done():
	}
	if err := ctx.Err(); err != nil { // of two cases that are ready, select takes any
		return nil, err
	}
	r.transformingSince.Store(r.opts.Clock.Now().UnixNano())
	defer r.transformingSince.Store(0)
	result, err := r.opts.Transform(obj)
	if err == nil && objects.IsNil(result) {
		err = errNilResult
	}
	if err != nil {
		name, _ := store.ObjectToName(obj)
		return nil, &ApplyError{Verb: "transform", Object: name.String(), Err: err}
	}
	return result, nil
}

// storeWriter writes the events of a watch to the reflector's store.
type storeWriter struct {
	from    string // the first resourceVersion of the watch
	changed bool   // a change has arrived; initial events do not count
}

func (w *storeWriter) handle(r *Reflector, e event) (done bool, err error) {
	// An event without a version changes the store, but moves no version: the next watch would
	// start anew at "".
	advances := e.pastInitial && e.resourceVersion != ""
	isBookmark := advances && e.Type == watch.Bookmark
	var handover freshness.Handover
	if advances {
		handover = freshness.Handover{
			Kind: freshness.Change, ResourceVersion: e.resourceVersion, At: e.received,
		}
	}
	if isBookmark {
		handover.Kind = freshness.Bookmark
	}
	var verb string
	if isForStore := e.obj != nil || isBookmark && r.bookmarks != nil; !isForStore {
		r.freshness.Note(handover)
	} else {
		r.freshness.Begin(handover)
		switch e.Type {
		case watch.Added:
			verb, err = "add", r.store.Add(e.obj)
		case watch.Modified:
			verb, err = "update", r.store.Update(e.obj)
		case watch.Deleted:
			verb, err = "delete", r.store.Delete(e.obj)
		default:
			verb, err = "bookmark", r.bookmarks.Bookmark(e.resourceVersion)
		}
		r.freshness.End(handover, err)
	}
	if err != nil {
		name := store.MetaObjectToName(e.meta).String()
		return false, &ApplyError{Verb: verb, Object: name, Err: err}
	}
	w.changed = w.changed || e.pastInitial && e.obj != nil
	if !advances {
		return false, nil
	}
	if r.opts.Metrics.LastResourceVersion != nil {
		r.reportVersion(e.resourceVersion)
	}
	if r.versions != nil {
		r.versions.UpdateResourceVersion(e.resourceVersion)
	}
	return false, nil
}

func (w *storeWriter) check(_ context.Context, r *Reflector, now time.Time) (time.Duration, error) {
	return r.watchdog(now)
}

// watchdog gives up a watch that the server should have ended, and that has been silent for some
// time since: its connection is dead. It returns how long to wait before the next check.
func (r *Reflector) watchdog(now time.Time) (time.Duration, error) {
	if r.opts.WatchdogSlack < 0 {
		return r.opts.MinWatchTimeout, nil
	}
	alive := r.round.open.deadline
	if r.round.open.lastEvent.After(alive) {
		alive = r.round.open.lastEvent
	}
	left := alive.Add(r.opts.WatchdogSlack).Sub(now)
	if left <= 0 {
		return 0, ErrWatchSilent
	}
	return left, nil
}
