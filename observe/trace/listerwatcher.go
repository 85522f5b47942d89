// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/internal/helpers/listwatch"
	"example.com/informerstack/reflector"
)

// ListerWatcher traces the requests to the server and the events of its watches. The result can
// stream lists if lw can.
func ListerWatcher(lw reflector.ListerWatcher, sink Sink) reflector.ListerWatcher {
	traced := listerWatcher{lw, sink}
	if streamer, ok := lw.(reflector.StreamLister); ok {
		return streamLister{traced, streamer}
	}
	return traced
}

type listerWatcher struct {
	reflector.ListerWatcher
	sink Sink
}

// ListWithContext traces the LIST when it returns.
func (lw listerWatcher) ListWithContext(
	ctx context.Context, options metav1.ListOptions,
) (runtime.Object, error) {
	list, err := lw.ListerWatcher.ListWithContext(ctx, options)
	detail := request(options)
	resourceVersion := ""
	if err == nil {
		detail += ", " + items(meta.LenList(list))
		if m, metaErr := meta.ListAccessor(list); metaErr == nil {
			resourceVersion = m.GetResourceVersion()
		}
	}
	lw.answered(ctx, "LIST", resourceVersion, detail, err)
	return list, err
}

// answered traces a request, unless it failed because ctx has ended.
func (lw listerWatcher) answered(
	ctx context.Context, what, resourceVersion, detail string, err error,
) {
	if err == nil || ctx.Err() == nil {
		lw.sink.collection(Server, what, resourceVersion, detail, err)
	}
}

// WatchWithContext traces the start of the watch, and each of its events. A watch that package rest
// made because it could not reach the server is returned as it is: a reflector recognizes it.
func (lw listerWatcher) WatchWithContext(
	ctx context.Context, options metav1.ListOptions,
) (watch.Interface, error) {
	w, err := lw.ListerWatcher.WatchWithContext(ctx, options)
	lw.answered(ctx, "WATCH", options.ResourceVersion, request(options), err)
	if err != nil || w == nil || listwatch.IsUnreachable(w) {
		return w, err
	}
	return newTracedWatch(w, func(event watch.Event) { lw.event(ctx, event) }), nil
}

// event traces an event of a watch. A client reports the end of ctx as an ERROR event.
func (lw listerWatcher) event(ctx context.Context, event watch.Event) {
	switch event.Type {
	case watch.Error:
		lw.answered(ctx, string(event.Type), "", "", errorOf(event.Object))
	case watch.Bookmark:
		lw.sink.collection(Server, string(event.Type), version(event.Object), "", nil)
	default:
		lw.sink.about(Server, string(event.Type), event.Object, "", nil)
	}
}

// IsWatchListSemanticsUnSupported returns the answer of the traced ListerWatcher, or false if it
// lacks the method.
func (lw listerWatcher) IsWatchListSemanticsUnSupported() bool {
	refuser, ok := lw.ListerWatcher.(reflector.WatchListRefuser)
	return ok && refuser.IsWatchListSemanticsUnSupported()
}

// tracedWatch passes on the events of a watch. (apimachinery's watch.Filter leaks its goroutine if
// the watch is stopped while an event is undelivered.)
type tracedWatch struct {
	watch.Interface
	events  chan watch.Event
	stop    sync.Once
	stopped chan struct{}
}

func newTracedWatch(inner watch.Interface, trace func(watch.Event)) *tracedWatch {
	w := &tracedWatch{Interface: inner, events: make(chan watch.Event),
		stopped: make(chan struct{})}
	go w.forward(trace)
	return w
}

// forward traces and delivers the events until the traced watch ends, or this one is stopped.
func (w *tracedWatch) forward(trace func(watch.Event)) {
	defer close(w.events)
	for {
		select {
		case event, open := <-w.Interface.ResultChan():
			if !open {
				return
			}
			trace(event)
			select {
			case w.events <- event:
			case <-w.stopped:
				return
			}
		case <-w.stopped:
			return
		}
	}
}

// ResultChan returns the events. It is closed when the traced watch ends.
func (w *tracedWatch) ResultChan() <-chan watch.Event { return w.events }

// Stop stops the traced watch. After it returns, no event is traced. It may be called more than
// once.
func (w *tracedWatch) Stop() {
	w.stop.Do(func() { close(w.stopped) })
	w.Interface.Stop()
	for range w.events { // until forward has returned
	}
}

type streamLister struct {
	listerWatcher
	streamer reflector.StreamLister
}

// ListStream traces the LIST when it has been read to its end.
func (lw streamLister) ListStream(
	ctx context.Context, options metav1.ListOptions, each func(runtime.Object) error,
) (metav1.ListMeta, error) {
	n := 0
	list, err := lw.streamer.ListStream(ctx, options, func(obj runtime.Object) error {
		n++
		return each(obj)
	})
	detail := request(options) + ", " + items(n) + " as they arrived"
	lw.answered(ctx, "LIST", list.ResourceVersion, detail, err)
	return list, err
}

// items describes the length of a list.
func items(n int) string {
	if n == 1 {
		return "1 item"
	}
	return strconv.Itoa(n) + " items"
}

// InitialEvents is in the Detail of a WATCH that sends all objects before their changes.
const InitialEvents = "initial events first"

// request describes the options of a LIST or WATCH.
func request(options metav1.ListOptions) string {
	text := "from " + strconv.Quote(options.ResourceVersion)
	if options.SendInitialEvents != nil && *options.SendInitialEvents {
		text += ", " + InitialEvents
	}
	if options.Limit > 0 {
		text += fmt.Sprintf(", at most %d", options.Limit)
	}
	if options.Continue != "" {
		text += ", next page"
	}
	return text
}

// errorOf returns the error in an error event of a watch.
func errorOf(obj runtime.Object) error {
	if status, ok := obj.(*metav1.Status); ok {
		return fmt.Errorf("%d %s: %s", status.Code, status.Reason, status.Message)
	}
	return fmt.Errorf("%T in an error event", obj)
}
