// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/consistencydetector"

	"example.com/informerstack/reflector"
	"example.com/informerstack/store"
)

// checkedStreams returns lw, for the reflector called name. If the environment of the process has
// KUBE_WATCHLIST_INCONSISTENCY_DETECTOR=true, which is for tests, the result compares each
// streaming list with a LIST at the same resourceVersion, and panics if they differ.
//
// Source: util/consistencydetector/data_consistency_detector.go CheckDataConsistency
func checkedStreams(lw ListerWatcherWithContext, name string) ListerWatcherWithContext {
	if !consistencydetector.IsDataConsistencyDetectionForWatchListEnabled() {
		return lw
	}
	return checkedListWatch{lw, name}
}

type checkedListWatch struct {
	ListerWatcherWithContext
	name string
}

var _ reflector.WatchListRefuser = checkedListWatch{}

// IsWatchListSemanticsUnSupported implements reflector.WatchListRefuser.
func (lw checkedListWatch) IsWatchListSemanticsUnSupported() bool {
	return refusesWatchList(lw.ListerWatcherWithContext)
}

// WatchWithContext returns a streaming list once its initial events have arrived and are checked:
// the panic of a request passes through the reflector's Run.
func (lw checkedListWatch) WatchWithContext(
	ctx context.Context, options metav1.ListOptions,
) (watch.Interface, error) {
	w, err := lw.ListerWatcherWithContext.WatchWithContext(ctx, options)
	if err != nil || w == nil || options.SendInitialEvents == nil || !*options.SendInitialEvents {
		return w, err
	}
	received, resourceVersion := initialEvents(ctx, w)
	if resourceVersion != "" {
		items := func() []runtime.Object { return stateAfter(received) }
		consistencydetector.CheckDataConsistency(ctx, lw.name, resourceVersion,
			lw.ListWithContext, nil, metav1.ListOptions{}, items)
	}
	return replay(ctx, received, w), nil
}

// initialEvents reads w up to the bookmark that ends the initial events, and returns that one's
// resourceVersion, or "" if the stream ends in another way.
func initialEvents(
	ctx context.Context, w watch.Interface,
) (received []watch.Event, resourceVersion string) {
	for {
		select {
		case <-ctx.Done():
			return received, ""
		case e, open := <-w.ResultChan():
			if !open {
				return received, ""
			}
			received = append(received, e)
			if e.Type == watch.Error {
				return received, ""
			}
			m, err := meta.Accessor(e.Object)
			if err == nil && m.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
				return received, m.GetResourceVersion()
			}
		}
	}
}

// stateAfter returns copies of the objects that exist after events: a transform may change the
// originals.
func stateAfter(events []watch.Event) []runtime.Object {
	state := map[ObjectName]runtime.Object{}
	for _, e := range events {
		name, err := store.ObjectToName(e.Object)
		switch {
		case err != nil:
		case e.Type == watch.Added || e.Type == watch.Modified:
			state[name] = e.Object.DeepCopyObject()
		case e.Type == watch.Deleted:
			delete(state, name)
		}
	}
	return slices.Collect(maps.Values(state))
}

// replay returns a watch of the events in received, and then those of w.
func replay(ctx context.Context, received []watch.Event, w watch.Interface) watch.Interface {
	events := make(chan watch.Event, len(received))
	for _, e := range received {
		events <- e
	}
	both := watch.NewProxyWatcher(events)
	go func() {
		defer close(events)
		defer w.Stop()
		for {
			select {
			case <-both.StopChan():
				return
			case <-ctx.Done():
				return
			case e, open := <-w.ResultChan():
				if !open {
					return
				}
				select {
				case events <- e:
				case <-both.StopChan():
					return
				}
			}
		}
	}()
	return both
}
