// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/internal/helpers/listwatch"
	"example.com/informerstack/store"
)

// maxUnfinished is how many streaming lists in a row may end before the initial state is complete.
// A server that does not know of streaming lists, and does not refuse them either, just watches.
// After that many the reflector uses LIST.
const maxUnfinished = 2

// errClosedEarly is ErrStreamUnfinished when the server ended the stream, after some time or some
// events.
var errClosedEarly = fmt.Errorf("%w: closed early", ErrStreamUnfinished)

// streamList fetches everything through a watch that sends the present state as ADDED events and
// then a bookmark that says so (a "WatchList"). It replaces the store's content with that, and
// leaves the watch open to be followed.
func (r *Reflector) streamList(ctx context.Context) (err error) {
	resourceVersion := r.LastSyncResourceVersion()
	if r.unavailable {
		resourceVersion = ""
	}
	patience := r.opts.WatchListDeadline
	if patience < 0 {
		patience = forever
	}
	r.forgetRelist(ctx)
	r.round.open, err = r.startWatch(ctx, metav1.ListOptions{
		ResourceVersion:      resourceVersion,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		SendInitialEvents:    new(true),
		AllowWatchBookmarks:  true,
	}, patience)
	if errors.Is(err, ErrWatchSilent) {
		return fmt.Errorf("%w: %w", ErrStreamUnfinished, err)
	}
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			r.closeWatch()
		}
	}()

	initial := newSnapshot(r.opts.Clock.Now())
	if err = r.consume(ctx, initial); err != nil {
		return err
	}
	if w := r.round.open; !initial.complete {
		switch {
		case listwatch.IsUnreachable(w.Interface): // which says nothing about the server
			return errUnreachable
		case w.eventCount == 0 && r.opts.Clock.Since(w.started) < veryShortWatch:
			return fmt.Errorf("%w: %w", ErrStreamUnfinished, &VeryShortWatchError{Name: r.Name()})
		}
		return errClosedEarly
	}
	got := listed{
		items: initial.list(), resourceVersion: initial.resourceVersion, asOf: r.round.open.started,
	}
	if err := r.replace(got); err != nil {
		return err
	}
	r.round.followedFrom = r.opts.Clock.Now()
	return nil
}

// snapshot collects the initial state from a stream. Its objects stay apart from the store until it
// is complete.
//
//	S1  index[name] = i  <=>  items[i] is the newest object of that name that was received, and
//	    was not deleted since
//	S2  every other item is nil
type snapshot struct {
	items           []any
	index           map[store.ObjectName]int
	resourceVersion string
	complete        bool      // the bookmark that ends the initial events was received
	progress        time.Time // when the stream began, or last brought an object that was new to it
	warned          time.Time // when a slow stream was last logged
}

func newSnapshot(began time.Time) *snapshot {
	return &snapshot{index: map[store.ObjectName]int{}, progress: began}
}

func (s *snapshot) handle(r *Reflector, e event) (done bool, err error) {
	name := store.MetaObjectToName(e.meta)
	i, known := s.index[name]
	switch {
	case e.Type == watch.Bookmark:
		s.resourceVersion = e.resourceVersion
		s.complete = e.meta.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
	case e.obj == nil: // of an unknown type
	case e.Type == watch.Deleted && known:
		s.items[i] = nil
		delete(s.index, name)
	case e.Type == watch.Deleted:
	case known:
		s.items[i] = e.obj
	default:
		s.index[name] = len(s.items)
		s.items = append(s.items, e.obj)
		s.progress = e.received
	}
	if s.complete {
		return true, nil
	}
	return false, s.stalled(r, e.received)
}

// stalled returns an error if a stream has brought nothing new for too long. Events about known
// objects do not count: a server that ignores the request for initial events sends those without
// end.
func (s *snapshot) stalled(r *Reflector, now time.Time) error {
	quiet, deadline := now.Sub(s.progress), r.opts.WatchListDeadline
	if deadline > 0 && quiet >= deadline {
		return fmt.Errorf("%w: nothing new for %v", ErrStreamUnfinished, quiet)
	}
	return nil
}

// check logs a stream that brings nothing new, then gives it up.
func (s *snapshot) check(
	ctx context.Context, r *Reflector, now time.Time,
) (next time.Duration, err error) {
	if next, err = r.watchdog(now); err != nil {
		return 0, err
	}
	if err = s.stalled(r, now); err != nil {
		return 0, err
	}
	quiet := now.Sub(s.progress)
	if deadline := r.opts.WatchListDeadline; deadline > 0 {
		next = min(next, deadline-quiet)
	}
	if quiet >= bookmarkWarning && now.Sub(s.warned) >= bookmarkWarning {
		s.warned = now
		r.log(ctx).Info("Streaming list is waiting for the bookmark that ends the initial events",
			"count", len(s.index), "quiet", quiet)
	}
	return min(next, bookmarkWarning), nil
}

// list returns the objects in the order in which they came. The snapshot is used up.
func (s *snapshot) list() []any {
	return slices.DeleteFunc(s.items, func(obj any) bool { return obj == nil })
}
