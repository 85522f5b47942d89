// SPDX-License-Identifier: Apache-2.0

package served

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/internal/helpers/listwatch"
	"example.com/informerstack/reflector"
)

const (
	// patience is how long an informer waits for the first list of the definitions. Then it begins
	// without.
	patience = 10 * time.Second
	// reportAfter is how long a required kind is not served before that is an error.
	reportAfter = time.Second
	// noticeAfter is how long after a 404 the definitions may take to show that the kind is gone.
	noticeAfter = time.Second
)

// listWatch lists and watches a kind while it is served. Otherwise the list is empty, and the watch
// waits.
//
//	L1  no request is made while the kind is known to be gone
//	L2  a watch of the server is opened only if the reflector has a list of the same epoch
//	L3  shown is what the reflector's content is from, as soon as it opens a watch. A list counts
//	    then, and only if the watch begins at its version: a list beside a watch may have been
//	    given up, see package shard
//
// A reflector that has a list of another epoch, or objects of a kind that is gone, gets a
// waitingWatch, which hands over the right content: see watch.go.
type listWatch struct {
	inner   reflector.ListerWatcher
	kind    *kind
	policy  Policy
	example any
	began   time.Time
	version func() string // that the reflector has reached; set before it runs

	mu       sync.Mutex
	shown    content
	asOf     time.Time // of nothing; zero after a list of the server
	list     *list     // the newest one, if no watch was opened since
	reported string    // the newest reason for which a list has failed
}

// list is a list that was answered.
type list struct {
	content content
	version string
	asOf    time.Time // of nothing
}

// content is what a list shows: the objects of an epoch, or nothing.
type content int

const nothing content = -1 // 0 before the first list

func newListWatch(
	inner reflector.ListerWatcher, kd *kind, policy Policy, example any,
) *listWatch {
	return &listWatch{
		inner: inner, kind: kd, policy: policy, example: example, began: time.Now(),
		version: func() string { return "" },
	}
}

var (
	_ reflector.StreamLister     = (*listWatch)(nil)
	_ reflector.WatchListRefuser = (*listWatch)(nil)
)

// IsWatchListSemanticsUnSupported implements reflector.WatchListRefuser.
func (lw *listWatch) IsWatchListSemanticsUnSupported() bool {
	refuser, ok := lw.inner.(reflector.WatchListRefuser)
	return ok && refuser.IsWatchListSemanticsUnSupported()
}

// ListWithContext implements reflector.ListerWatcher. A reflector calls ListStream.
func (lw *listWatch) ListWithContext(
	ctx context.Context, options metav1.ListOptions,
) (runtime.Object, error) {
	if v := lw.kind.view(); v.Phase.isGone() {
		return nil, v.err()
	}
	return lw.inner.ListWithContext(ctx, options)
}

// ListStream lists one page.
func (lw *listWatch) ListStream(
	ctx context.Context, options metav1.ListOptions, each func(runtime.Object) error,
) (metav1.ListMeta, error) {
	isWhole := options.Continue == "" && !listwatch.IsQuestion(options)
	v := lw.kind.view()
	if isWhole {
		var err error
		if v, err = lw.admit(ctx); err != nil {
			return metav1.ListMeta{}, err
		}
	}
	switch isGone := v.Phase.isGone(); {
	case isGone && !isWhole:
		return metav1.ListMeta{}, v.err()
	case isGone:
		version := options.ResourceVersion // not older than what was asked for
		if version == "" || version == "0" {
			version = lw.version()
		}
		lw.listed(list{nothing, version, v.asOf})
		return metav1.ListMeta{ResourceVersion: version},
			&reflector.KnownEmptyError{AsOf: v.asOf, Why: v.err()}
	}
	m, err := reflector.ListPage(ctx, lw.inner, lw.example, options, each)
	if err == nil && isWhole {
		lw.listed(list{content: content(v.epoch), version: m.ResourceVersion})
	}
	return m, err
}

// known waits until the definitions are listed, but not longer than patience.
func (lw *listWatch) known(ctx context.Context) (view, error) {
	for {
		v := lw.kind.look()
		wait := time.Until(lw.began.Add(patience))
		if v.Phase != Unknown || wait <= 0 {
			return v, nil
		}
		if _, err := v.pause(ctx, wait); err != nil {
			return v, err
		}
	}
}

// admit waits until a list can be answered: with nothing if the kind is gone. A required kind that
// was never served is an error, once for each reason, so that Err of the informer has it; then the
// list waits.
func (lw *listWatch) admit(ctx context.Context) (view, error) {
	for {
		v, err := lw.known(ctx)
		if err != nil || !v.Phase.isGone() || lw.policy == Optional || lw.version() != "" {
			return v, err
		}
		wait := reportAfter
		if lw.isReported(v) {
			wait = forever
		}
		switch hasChanged, err := v.pause(ctx, wait); {
		case err != nil:
			return v, err
		case !hasChanged:
			return v, lw.report(v)
		}
	}
}

// WatchWithContext implements reflector.ListerWatcher.
func (lw *listWatch) WatchWithContext(
	ctx context.Context, options metav1.ListOptions,
) (watch.Interface, error) {
	if options.SendInitialEvents != nil && *options.SendInitialEvents {
		return lw.stream(ctx, options)
	}
	v := lw.kind.view()
	if lw.shows(options.ResourceVersion) != content(v.epoch) || v.Phase.isGone() {
		return lw.wait(ctx, options), nil
	}
	w, err := lw.open(ctx, options, v)
	switch {
	case apierrors.IsNotFound(err) && lw.goes(ctx, v):
		return lw.wait(ctx, options), nil
	case err == nil && w != nil && lw.kind.view().epoch != v.epoch: // the answer was slow
		w.Stop()
		return lw.wait(ctx, options), nil
	}
	return w, err
}

// stream opens a streaming list. If the kind is gone, the reflector tries a LIST instead.
func (lw *listWatch) stream(
	ctx context.Context, options metav1.ListOptions,
) (watch.Interface, error) {
	v, err := lw.known(ctx)
	if err != nil {
		return nil, err
	}
	if v.Phase.isGone() {
		return nil, v.err()
	}
	w, err := lw.open(ctx, options, v)
	if err == nil {
		lw.show(content(v.epoch), time.Time{})
	}
	return w, err
}

// open opens a watch of the server.
func (lw *listWatch) open(
	ctx context.Context, options metav1.ListOptions, v view,
) (watch.Interface, error) {
	inner, err := lw.inner.WatchWithContext(ctx, options)
	if err != nil || inner == nil || listwatch.IsUnreachable(inner) {
		return inner, err
	}
	w := &servedWatch{Interface: inner, lw: lw, epoch: v.epoch, ended: make(chan struct{})}
	go w.guard()
	return w, nil
}

// goes reports whether the kind turns out to be gone, or another one, soon after v.
func (lw *listWatch) goes(ctx context.Context, v view) bool {
	ctx, cancel := context.WithTimeout(ctx, noticeAfter)
	defer cancel()
	for epoch := v.epoch; !v.Phase.isGone() && v.epoch == epoch; v = lw.kind.view() {
		if _, err := v.pause(ctx, forever); err != nil {
			return false
		}
	}
	return true
}

// listed notes a list.
func (lw *listWatch) listed(l list) {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	lw.list = &l
}

// shows returns what the reflector's content is from when it opens a watch at resourceVersion.
func (lw *listWatch) shows(resourceVersion string) content {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	if lw.list != nil && lw.list.version == resourceVersion {
		lw.shown, lw.asOf = lw.list.content, lw.list.asOf
	}
	lw.list = nil
	return lw.shown
}

// show notes what the reflector gets from a stream or a selection.
func (lw *listWatch) show(c content, asOf time.Time) {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	lw.shown, lw.asOf, lw.list = c, asOf, nil
}

// report returns the error of v, and notes that the reflector gets it.
func (lw *listWatch) report(v view) error {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	lw.reported = v.Reason
	return v.err()
}

func (lw *listWatch) isReported(v view) bool {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	return lw.reported == v.Reason
}
