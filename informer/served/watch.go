// SPDX-License-Identifier: Apache-2.0

package served

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/reflector"
)

const (
	// drain is how long a watch stays open after its kind is gone: the server deletes the objects
	// first, so their events may be on their way. Usually it ends the watch itself.
	drain = 2 * time.Second
	// renewal is how often a waiting watch looks whether the definitions are current as of a
	// later time.
	renewal = 10 * time.Second
	// firstRetry is the wait after a 404 of a kind that has just begun to be served, and maxRetry
	// the longest one: an API server may learn it a moment later than another.
	firstRetry, maxRetry = 100 * time.Millisecond, 2 * time.Second
	// pageSize bounds a list beside a waiting watch.
	pageSize    = 500
	listTimeout = time.Minute
	forever     = time.Duration(math.MaxInt64)
)

// servedWatch is a watch of the server, which is stopped when its kind is gone. Its events pass
// through no code of this package.
type servedWatch struct {
	watch.Interface
	lw    *listWatch
	epoch int
	stop  sync.Once
	ended chan struct{}
}

// guard stops the watch when its kind is gone, or another one.
func (w *servedWatch) guard() {
	for {
		v := w.lw.kind.view()
		if !v.Phase.isGone() && v.epoch == w.epoch {
			select {
			case <-v.changed:
				continue
			case <-w.ended:
				return
			}
		}
		timer := time.NewTimer(drain)
		defer timer.Stop()
		select {
		case <-timer.C:
			w.Interface.Stop()
		case <-w.ended:
		}
		return
	}
}

// Stop implements watch.Interface.
func (w *servedWatch) Stop() {
	w.stop.Do(func() { close(w.ended) })
	w.Interface.Stop()
}

// Quiet implements reflector.Quieter. A watch that does not know says so with a zero time.
func (w *servedWatch) Quiet() (arrived time.Time, largest int, ok bool) {
	if inner, isQuieter := w.Interface.(reflector.Quieter); isQuieter {
		return inner.Quiet()
	}
	return time.Time{}, 0, true
}

// Reselected implements reflector.Reselector.
func (w *servedWatch) Reselected() *reflector.Selection {
	if inner, ok := w.Interface.(reflector.Reselector); ok {
		if selection := inner.Reselected(); selection != nil {
			return selection
		}
	}
	v := w.lw.kind.look()
	if !v.Phase.isGone() {
		return nil
	}
	return w.lw.selectNothing(v)
}

// selectNothing returns a selection that empties the store. The version is the reflector's: the
// store has every change up to it, and later ones.
func (lw *listWatch) selectNothing(v view) *reflector.Selection {
	lw.show(nothing, v.asOf)
	return &reflector.Selection{ResourceVersion: lw.version(), AsOf: v.asOf, Inferred: v.err()}
}

// waitingWatch is a watch without a server. It ends when it has another content for the store, and
// hands that over as a reflector.Selection:
//
//	nothing      if the reflector has objects of a kind that is gone, and again when the
//	             definitions are current as of a later time
//	the objects  once the kind is served
//
// If the objects cannot be listed, or are many, it ends with an error, after which the reflector
// lists, with its own waits and limits.
type waitingWatch struct {
	lw      *listWatch
	ctx     context.Context
	cancel  context.CancelFunc
	timeout time.Duration
	events  chan watch.Event

	// Set before events is closed.

	isEmpty   bool
	gone      view                 // if isEmpty
	selection *reflector.Selection // otherwise, or nil
	epoch     int                  // of the selection
}

// wait returns a waitingWatch, which runs.
func (lw *listWatch) wait(ctx context.Context, options metav1.ListOptions) *waitingWatch {
	ctx, cancel := context.WithCancel(ctx)
	w := &waitingWatch{
		lw: lw, ctx: ctx, cancel: cancel, timeout: forever, events: make(chan watch.Event, 1),
	}
	if options.TimeoutSeconds != nil {
		w.timeout = time.Duration(*options.TimeoutSeconds) * time.Second
	}
	go w.run()
	return w
}

// ResultChan implements watch.Interface.
func (w *waitingWatch) ResultChan() <-chan watch.Event { return w.events }

// IsUnanswered says that no server has granted the watch.
func (w *waitingWatch) IsUnanswered() bool { return true }

// Stop implements watch.Interface. It does not wait.
func (w *waitingWatch) Stop() { w.cancel() }

func (w *waitingWatch) run() {
	defer utilruntime.HandleCrashWithContext(w.ctx)
	defer close(w.events)
	expired := time.NewTimer(w.timeout)
	defer expired.Stop()
	retry := firstRetry
	for {
		v := w.lw.kind.look()
		wait := renewal
		if v.Phase.isGone() {
			if retry = firstRetry; w.lw.isNewer(v.asOf) {
				w.isEmpty, w.gone = true, v
				return
			}
		} else {
			isOver := w.list(v, retry >= maxRetry)
			if isOver {
				return
			}
			wait, retry = retry, min(2*retry, maxRetry)
		}
		next := time.NewTimer(wait)
		select {
		case <-v.changed:
		case <-next.C:
		case <-expired.C: // the reflector expects an end
			w.isEmpty, w.gone = v.Phase.isGone(), v
		case <-w.ctx.Done():
		}
		next.Stop()
		if w.isEmpty || w.ctx.Err() != nil {
			return
		}
	}
}

// isNewer reports whether the reflector has objects, or has nothing as of a time before asOf.
func (lw *listWatch) isNewer(asOf time.Time) bool {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	return lw.shown != nothing || asOf.After(lw.asOf)
}

var errLarge = errors.New("its list has several pages")

// list lists the objects of a kind that is served. It returns false if the watch continues, because
// the answer is a 404, and this is not the last try.
func (w *waitingWatch) list(v view, isLast bool) (isOver bool) {
	ctx, cancel := context.WithTimeout(w.ctx, listTimeout)
	defer cancel()
	selection := &reflector.Selection{AsOf: time.Now()}
	collect := func(obj runtime.Object) error {
		selection.Items = append(selection.Items, obj)
		return nil
	}
	m, err := reflector.ListPage(ctx, w.lw.inner, w.lw.example,
		metav1.ListOptions{Limit: pageSize}, collect)
	if err == nil && m.Continue != "" {
		err = errLarge
	}
	switch {
	case err == nil:
		selection.ResourceVersion = m.ResourceVersion
		w.selection, w.epoch = selection, v.epoch
	case apierrors.IsNotFound(err) && !isLast:
		return false
	case w.ctx.Err() == nil:
		expired := apierrors.NewResourceExpired(fmt.Sprintf(
			"%s is served now, and must be listed: %v", v.Resource.GroupResource(), err))
		w.events <- watch.Event{Type: watch.Error, Object: &expired.ErrStatus}
	}
	return true
}

// Reselected implements reflector.Reselector.
func (w *waitingWatch) Reselected() *reflector.Selection {
	switch {
	case w.isEmpty:
		return w.lw.selectNothing(w.gone)
	case w.selection != nil:
		w.lw.listed(list{content: content(w.epoch), version: w.selection.ResourceVersion})
	}
	return w.selection
}
