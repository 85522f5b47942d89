// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 the names that client-go deprecates are the ones to serve here

// Package watch waits for a condition on a collection. It is client-go's tools/watch, name for
// name, on the pieces of this module.
//
//	API server <- WATCH - [RetryWatcher] -> conditions
//	API server <- LIST, WATCH - [informer as a watch] -> conditions
//
// To use it, call [UntilWithSync] with a ListerWatcher and a condition: it survives every failure,
// but may miss intermediate states. [Until] starts at a resourceVersion and misses no event.
//
// Read until.go, retrywatcher.go, informerwatcher.go; then go test ./compat/watch. Goroutines: a
// RetryWatcher has one; an informer as a watch has its informer's and one that delivers events.
// Both end after Stop. Locking: the hand-over has a mutex.
//
// Source: tools/watch/until.go Until, tools/watch/retrywatcher.go RetryWatcher
package watch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"

	"example.com/informerstack/compat/cache"
)

// ErrWatchClosed is returned if a watch ends before its conditions are met.
var ErrWatchClosed = errors.New("watch closed before UntilWithoutRetry timeout")

// PreconditionFunc checks the whole collection, once. True means that there is nothing to wait for.
type PreconditionFunc func(store cache.Store) (bool, error)

// ConditionFunc checks one event. True means that the condition is met, an error ends the wait.
type ConditionFunc func(event watch.Event) (bool, error)

// UntilWithoutRetry reads events until the conditions have been met one after the other. It returns
// the last event, or nil if no event arrived. The event that meets one condition is also the first
// event that the next condition checks. It fails with the error of a condition, with
// ErrWatchClosed, or with an error that wait.Interrupted recognizes when ctx is done. It stops the
// watch.
//
// Source: tools/watch/until.go UntilWithoutRetry
func UntilWithoutRetry(ctx context.Context, watcher watch.Interface,
	conditions ...ConditionFunc) (*watch.Event, error) {
	defer watcher.Stop()
	var last *watch.Event
	for _, condition := range conditions {
		var met bool
		var err error
		if last != nil {
			met, err = condition(*last)
		}
		for !met && err == nil {
			select {
			case <-ctx.Done():
				return last, wait.ErrorInterrupted(nil)
			case event, open := <-watcher.ResultChan():
				if !open {
					return last, ErrWatchClosed
				}
				last = &event
				met, err = condition(event)
			}
		}
		if err != nil {
			return last, err
		}
	}
	return last, nil
}

// Until is UntilWithoutRetry on a RetryWatcher from initialResourceVersion: no event is missed, and
// a resourceVersion that is too old ends it.
//
// Source: tools/watch/until.go Until
func Until(ctx context.Context, initialResourceVersion string, watcherClient cache.Watcher,
	conditions ...ConditionFunc) (*watch.Event, error) {
	w, err := NewRetryWatcherWithContext(ctx, initialResourceVersion,
		cache.ToWatcherWithContext(watcherClient))
	if err != nil {
		return nil, err
	}
	return UntilWithoutRetry(ctx, w, conditions...)
}

// UntilWithSync is UntilWithoutRetry on an informer: it lists again after every failure, and so may
// miss intermediate states. The precondition, if there is one, checks the first list; if it is
// true, the event is nil. UntilWithSync returns when the informer has ended.
//
// Source: tools/watch/until.go UntilWithSync
func UntilWithSync(ctx context.Context, lw cache.ListerWatcher, objType runtime.Object,
	precondition PreconditionFunc, conditions ...ConditionFunc) (*watch.Event, error) {
	indexer, informer, watcher, ended := NewIndexerInformerWatcherWithLogger(klog.FromContext(ctx),
		lw, objType)
	defer func() {
		watcher.Stop()
		<-ended
	}()
	if precondition != nil {
		if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			return nil, fmt.Errorf("UntilWithSync: unable to sync caches: %w", ctx.Err())
		}
		if met, err := precondition(indexer); met || err != nil {
			return nil, err
		}
	}
	return UntilWithoutRetry(ctx, watcher, conditions...)
}

// ContextWithOptionalTimeout is context.WithTimeout, but 0 or less means no timeout.
//
// Source: tools/watch/until.go ContextWithOptionalTimeout
func ContextWithOptionalTimeout(parent context.Context,
	timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout < 0 {
		klog.FromContext(parent).Error(nil, "A negative timeout is taken for none", "timeout",
			timeout)
	}
	if timeout <= 0 {
		return context.WithCancel(parent)
	}
	return context.WithTimeout(parent, timeout)
}
