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
	meta            metav1.Object // of the object that was received, which a transform may have changed since
	resourceVersion string        // as it was received
	obj             any           // the object transformed; nil for a bookmark
	received        time.Time
}

// sink is where the events of a watch go: a snapshot while the initial state streams in, then a follower.
type sink interface {
	// apply takes one change, or a bookmark.
	apply(r *Reflector, e event) error
	// advance notes that e and everything before it was applied. pastInitial is false while the server may still be
	// sending the present state, which is in no order.
	advance(r *Reflector, e event, pastInitial bool)
	// done is true once the sink wants no more.
	done() bool
	// check is called at first and then whenever the time it returned has passed. An error ends the watch.
	check(ctx context.Context, r *Reflector, now time.Time) (next time.Duration, err error)
}

// consume reads the open watch until it is closed, or to is done, or something goes wrong.
func (r *Reflector) consume(ctx context.Context, to sink) error {
	next, err := to.check(ctx, r, r.clock.Now())
	if err != nil {
		return err
	}
	timer := r.clock.NewTimer(next)
	defer timer.Stop()
	events := r.open.ResultChan()
	for {
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
			next, err := to.check(ctx, r, r.clock.Now())
			if err != nil {
				return err
			}
			timer.Reset(next)
		case e, ok := <-events:
			if ok {
				ok, err = r.drain(ctx, e, to)
			}
			if !ok || err != nil || to.done() {
				return err
			}
		}
	}
}

// maxInARow is how many events are handled before anything else gets its turn.
const maxInARow = 64

// drain handles first and the events behind it that have already arrived. It reports whether the watch is still open.
func (r *Reflector) drain(ctx context.Context, first watch.Event, to sink) (open bool, err error) {
	now := r.clock.Now()
	if first.Type != watch.Error {
		r.noteContact()
	}
	next := first
	for count := 1; ; count++ {
		if err := r.handle(ctx, next, now, to); err != nil || to.done() || count == maxInARow || ctx.Err() != nil {
			return true, err
		}
		select {
		case next, open = <-r.open.ResultChan():
			if !open {
				return false, nil
			}
		default:
			return true, nil
		}
	}
}

// handle passes one event on. An event that cannot be meant for us is reported and otherwise ignored; so is an unknown
// type, but its resourceVersion counts. Where the store fails, the resourceVersion must not move.
func (r *Reflector) handle(ctx context.Context, received watch.Event, now time.Time, to sink) error {
	if received.Type == watch.Error {
		err := apierrors.FromObject(received.Object)
		if !isDecodingError(err) {
			r.noteContact()
		}
		return err
	}
	w := r.open
	w.lastEvent = now
	e := event{Event: received, received: now}
	err := r.expected.check(e.Object)
	if err == nil {
		e.meta, err = meta.Accessor(e.Object)
	}
	if err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "Unexpected watch event", "reflector", r.name, "type", r.typeDescription, "event", e.Type)
		return nil
	}
	e.resourceVersion = e.meta.GetResourceVersion()

	switch e.Type {
	case watch.Added, watch.Modified, watch.Deleted:
		if e.obj, err = r.transformed(e.Object); err != nil {
			return err
		}
		fallthrough
	case watch.Bookmark:
		if err := to.apply(r, e); err != nil {
			return err
		}
		w.pastInitial = w.pastInitial || e.Type != watch.Added
	default:
		utilruntime.HandleErrorWithContext(ctx, nil, "Unknown watch event", "reflector", r.name, "type", r.typeDescription, "event", e.Type)
	}
	if e.Type == watch.Bookmark {
		r.lastBookmark = now
	} else {
		r.lastChange = now
	}
	to.advance(r, e, w.pastInitial)
	w.eventCount++
	return nil
}

// transformed applies the transform to an object that was just received.
func (r *Reflector) transformed(obj runtime.Object) (any, error) {
	if r.transform == nil {
		return obj, nil
	}
	result, err := r.transform(obj)
	if err == nil && isNil(result) {
		err = errNilResult
	}
	if err != nil {
		name, _ := store.ObjectToName(obj)
		return nil, &ApplyError{Verb: "transform", Object: name.String(), Err: err}
	}
	return result, nil
}

// follower passes events on to the reflector's store.
type follower struct{}

func (follower) apply(r *Reflector, e event) error {
	var verb string
	var err error
	switch e.Type {
	case watch.Added:
		verb, err = "add", r.store.Add(e.obj)
	case watch.Modified:
		verb, err = "update", r.store.Update(e.obj)
	case watch.Deleted:
		verb, err = "delete", r.store.Delete(e.obj)
	case watch.Bookmark:
		if s, ok := r.store.(BookmarkStore); ok {
			verb, err = "bookmark", s.Bookmark(e.resourceVersion)
		}
	}
	if err != nil {
		return &ApplyError{Verb: verb, Object: store.MetaObjectToName(e.meta).String(), Err: err}
	}
	return nil
}

func (follower) advance(r *Reflector, e event, pastInitial bool) {
	if !pastInitial {
		return
	}
	r.setResourceVersion(e.resourceVersion, e.received)
	if s, ok := r.store.(ResourceVersionUpdater); ok {
		s.UpdateResourceVersion(e.resourceVersion)
	}
}

func (follower) done() bool { return false }

func (follower) check(_ context.Context, r *Reflector, now time.Time) (time.Duration, error) {
	return r.watchdog(now)
}
