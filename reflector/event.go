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

	"example.com/informerstack/internal/objects"
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
	// handle takes a change, a bookmark, or an event of an unknown type, of which only the
	// resourceVersion counts. done means that the handler needs no further event.
	handle(r *Reflector, e event) (done bool, err error)
	// check is called at first and then whenever nothing has arrived for the time that it returned,
	// or for less. An error ends the watch.
	check(ctx context.Context, r *Reflector, now time.Time) (next time.Duration, err error)
}

// consume reads the open watch until it is closed, or h is done, or something goes wrong.
func (r *Reflector) consume(ctx context.Context, h eventHandler) error {
	next, err := h.check(ctx, r, r.opts.Clock.Now())
	if err != nil {
		return err
	}
	timer := r.opts.Clock.NewTimer(min(next, r.recency.pause()))
	defer timer.Stop()
	for {
		e, open, err := receive(ctx, r, r.round.open.ResultChan(), timer.C())
		switch {
		case err == errTimeout:
			now := r.opts.Clock.Now()
			if next, err = h.check(ctx, r, now); err != nil {
				return err
			}
			if !r.notePause(now) {
				next = min(next, r.recency.pause())
			}
			timer.Reset(next)
		case err != nil || !open:
			return err
		default:
			if done, err := r.drain(ctx, e, h); done || err != nil {
				return err
			}
			r.ask(ctx)
			timer.Reset(r.recency.pause())
		}
	}
}

// maxInARow is how many events are handled before the other cases of receive get a turn.
const maxInARow = 64

// drain handles first and the events behind it that have already arrived. done means that the watch
// was closed, or that h needs no further event.
func (r *Reflector) drain(
	ctx context.Context, first watch.Event, h eventHandler,
) (done bool, err error) {
	now, w := r.opts.Clock.Now(), r.round.open
	w.lastEvent = now
	r.recency.took(now)
	if first.Type != watch.Error {
		r.noteContact(now)
	}
	next, open := first, true
	for count := 1; ; count++ {
		done, err = r.handleEvent(ctx, next, now, h)
		if done || err != nil || count == maxInARow || ctx.Err() != nil {
			return done, err
		}
		select {
		case next, open = <-w.ResultChan():
			if !open {
				return true, nil
			}
			now = r.opts.Clock.Now()
			w.lastEvent = now
		default:
			return false, nil
		}
	}
}

// handleEvent checks and transforms one event and passes it on. An event that cannot be meant for
// this reflector is reported and skipped, or ends the stream of initial events. If the handler
// fails, the resourceVersion does not move.
func (r *Reflector) handleEvent(
	ctx context.Context, received watch.Event, now time.Time, h eventHandler,
) (done bool, err error) {
	if received.Type == watch.Error {
		err := apierrors.FromObject(received.Object)
		if !isDecodingError(err) {
			r.noteContact(now)
		}
		return false, err
	}
	w := r.round.open
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
		if e.obj, err = r.transformed(ctx, e.Object); err != nil {
			return false, err
		}
		w.pastInitial = w.pastInitial || e.Type != watch.Added
	case watch.Bookmark:
		w.pastInitial, r.recency.backlog = true, false
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

// transformed applies the transform to an object that was just received. If ctx is done it returns
// ctx's error: the caller may be a LIST that an earlier Run gave up.
func (r *Reflector) transformed(ctx context.Context, obj runtime.Object) (any, error) {
	if r.opts.Transform == nil {
		return obj, nil
	}
	select {
	case r.transforming <- struct{}{}:
		defer func() { <-r.transforming }()
	case <-ctx.Done():
	}
	if err := ctx.Err(); err != nil { // of two cases that are ready, select takes any
		return nil, err
	}
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
	from    string // the resourceVersion at which the watch began
	changed bool   // a change has arrived; initial events do not count
}

func (w *storeWriter) handle(r *Reflector, e event) (done bool, err error) {
	var verb string
	switch e.Type {
	case watch.Added:
		verb, err = "add", r.store.Add(e.obj)
	case watch.Modified:
		verb, err = "update", r.store.Update(e.obj)
	case watch.Deleted:
		verb, err = "delete", r.store.Delete(e.obj)
	case watch.Bookmark:
		if s, ok := r.store.(BookmarkStore); ok && e.resourceVersion != "" {
			verb, err = "bookmark", s.Bookmark(e.resourceVersion)
		}
	}
	if err != nil {
		name := store.MetaObjectToName(e.meta).String()
		return false, &ApplyError{Verb: verb, Object: name, Err: err}
	}
	if !e.pastInitial {
		return false, nil
	}
	if e.obj != nil {
		w.changed = true
	}
	if e.resourceVersion == "" { // the store may have more, but the next watch must not start anew
		return false, nil
	}
	r.recency.reached(e.resourceVersion, e.received)
	r.advance(e.resourceVersion, r.recency.current(), e)
	if s, ok := r.store.(ResourceVersionUpdater); ok {
		s.UpdateResourceVersion(e.resourceVersion)
	}
	return false, nil
}

func (w *storeWriter) check(_ context.Context, r *Reflector, now time.Time) (time.Duration, error) {
	return r.watchdog(now)
}
