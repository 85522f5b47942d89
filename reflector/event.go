// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/store"
)

// event is a watch event that was understood.
type event struct {
	watch.Event
	meta            metav1.Object // of the object as received; a transform may have changed it
	resourceVersion string        // as it was received
	obj             any           // the object transformed; nil for a bookmark
	received        time.Time
	pastInitial     bool // false while the server may still send the present state, in no order
}

// isChange reports an event about an object.
func (e event) isChange() bool {
	return e.Type == watch.Added || e.Type == watch.Modified || e.Type == watch.Deleted
}

// eventHandler takes the events of a watch: a snapshot while the initial state streams in, then a
// storeWriter.
type eventHandler interface {
	// handle takes a change, a bookmark, or an event of an unknown type, of which only the
	// resourceVersion counts.
	handle(r *Reflector, e event) error
	// done is true once the handler wants no more.
	done() bool
	// check is called at first and then whenever the time it returned has passed. An error ends the
	// watch.
	check(ctx context.Context, r *Reflector, now time.Time) (next time.Duration, err error)
}

// consume reads the open watch until it is closed, or h is done, or something goes wrong.
func (r *Reflector) consume(ctx context.Context, h eventHandler) error {
	next, err := h.check(ctx, r, r.opts.Clock.Now())
	if err != nil {
		return err
	}
	timer := r.opts.Clock.NewTimer(next)
	defer timer.Stop()
	events := r.round.open.ResultChan()
	for {
		r.round.open.idleSince = r.opts.Clock.Now()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.resyncDue():
			if err := r.resyncNow(ctx); err != nil {
				return err
			}
		case cause := <-r.relistDue():
			return relistError(cause)
		case <-timer.C():
			next, err := h.check(ctx, r, r.opts.Clock.Now())
			if err != nil {
				return err
			}
			timer.Reset(next)
		case e, ok := <-events:
			if ok {
				ok, err = r.drain(ctx, e, h)
			}
			if !ok || err != nil || h.done() {
				return err
			}
		}
	}
}

// maxInARow is how many events are handled before the other cases of consume get a turn.
const maxInARow = 64

// drain handles first and the events behind it that have already arrived. It reports whether the
// watch is still open.
func (r *Reflector) drain(
	ctx context.Context, first watch.Event, h eventHandler,
) (open bool, err error) {
	now := r.opts.Clock.Now()
	if first.Type != watch.Error {
		r.noteContact(now)
	}
	next := first
	for count := 1; ; count++ {
		err := r.receiveEvent(ctx, next, now, h)
		if err != nil || h.done() || count == maxInARow || ctx.Err() != nil {
			return true, err
		}
		select {
		case next, open = <-r.round.open.ResultChan():
			if !open {
				return false, nil
			}
		default:
			return true, nil
		}
	}
}

// receiveEvent checks and transforms one event and passes it on. An event that cannot be meant for
// this reflector is reported and otherwise ignored. If the handler fails, the resourceVersion does
// not move.
func (r *Reflector) receiveEvent(
	ctx context.Context, received watch.Event, now time.Time, h eventHandler,
) error {
	if received.Type == watch.Error {
		err := apierrors.FromObject(received.Object)
		if !isDecodingError(err) {
			r.noteContact(now)
		}
		return err
	}
	w := r.round.open
	w.noteEvent(now, received.Type)
	e := event{Event: received, received: now}
	err := r.expected.check(e.Object)
	if err == nil {
		e.meta, err = meta.Accessor(e.Object)
	}
	if err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "Unexpected watch event",
			"reflector", r.Name(), "type", r.TypeDescription(), "event", e.Type)
		return nil
	}
	e.resourceVersion = e.meta.GetResourceVersion()

	switch {
	case e.isChange():
		if e.obj, err = r.transformed(ctx, e.Object); err != nil {
			return err
		}
		w.pastInitial = w.pastInitial || e.Type != watch.Added
	case e.Type == watch.Bookmark:
		w.pastInitial = true
	default:
		utilruntime.HandleErrorWithContext(ctx, nil, "Unknown watch event",
			"reflector", r.Name(), "type", r.TypeDescription(), "event", e.Type)
	}
	e.pastInitial = w.pastInitial
	if err := h.handle(r, e); err != nil {
		return err
	}
	w.eventCount++
	return nil
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
	if err == nil && isNil(result) {
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
	from       string // the resourceVersion at which the watch began
	eventCount int
	changed    bool // a change has arrived; initial events do not count
}

func (w *storeWriter) handle(r *Reflector, e event) error {
	if err := w.write(r.store, e); err != nil {
		return err
	}
	w.eventCount++
	r.round.lost = false
	if !e.pastInitial {
		return nil
	}
	if e.isChange() {
		w.changed = true
		r.backoff.changeArrived()
	}
	r.advance(e.resourceVersion, e.received.Add(-r.round.open.behind), e)
	if s, ok := r.store.(ResourceVersionUpdater); ok {
		s.UpdateResourceVersion(e.resourceVersion)
	}
	return nil
}

func (w *storeWriter) write(s Store, e event) error {
	var verb string
	var err error
	switch e.Type {
	case watch.Added:
		verb, err = "add", s.Add(e.obj)
	case watch.Modified:
		verb, err = "update", s.Update(e.obj)
	case watch.Deleted:
		verb, err = "delete", s.Delete(e.obj)
	case watch.Bookmark:
		if s, ok := s.(BookmarkStore); ok {
			verb, err = "bookmark", s.Bookmark(e.resourceVersion)
		}
	}
	if err != nil {
		return &ApplyError{Verb: verb, Object: store.MetaObjectToName(e.meta).String(), Err: err}
	}
	return nil
}

func (w *storeWriter) done() bool { return false }

func (w *storeWriter) check(_ context.Context, r *Reflector, now time.Time) (time.Duration, error) {
	return r.watchdog(now)
}
