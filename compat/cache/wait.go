// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"example.com/informerstack/informer"
)

// What is the same here as in package informer.
type (
	// DoneChecker is something that happens once.
	DoneChecker = informer.DoneChecker
	// InformerSynced is an informer's, or a handler registration's, HasSynced.
	InformerSynced = informer.InformerSynced
)

// IsDone tells without blocking whether it has happened.
//
// Source: tools/cache/shared_informer.go IsDone
func IsDone(checker DoneChecker) bool { return informer.IsDone(checker) }

// WaitFor waits until all of checkers are done, and returns true, or until ctx is, and returns false if one is missing. A
// what that is not empty is logged, as the caller's, and so is each checker at the moment at which it is done: that takes
// a goroutine for each.
//
// Source: tools/cache/shared_informer.go WaitFor
func WaitFor(ctx context.Context, what string, checkers ...DoneChecker) bool {
	if what == "" {
		return informer.WaitFor(ctx, "", checkers...)
	}
	helper, logger := klog.FromContext(ctx).WithCallStackHelper()
	helper()
	if isHandedOn("WaitFor") {
		logger = logger.WithCallDepth(1)
	}
	logger.Info("Waiting", "for", what)
	type answer struct {
		name string
		done bool
	}
	answers := make(chan answer)
	for _, checker := range checkers {
		go func() { answers <- answer{checker.Name(), informer.WaitFor(ctx, "", checker)} }()
	}
	var missing []string
	for range checkers {
		if a := <-answers; a.done {
			logger.Info("Done waiting", "for", what, "instance", a.name)
		} else {
			missing = append(missing, a.name)
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		logger.Info("Timed out waiting", "for", what, "cause", context.Cause(ctx), "instances", missing)
	}
	return len(missing) == 0
}

// WaitForCacheSync waits until all of cacheSyncs are true, and returns true, or until stopCh is closed, and returns false.
//
// Source: tools/cache/shared_informer.go WaitForCacheSync
func WaitForCacheSync(stopCh <-chan struct{}, cacheSyncs ...InformerSynced) bool {
	return informer.WaitForCacheSync(wait.ContextForChannel(stopCh), cacheSyncs...)
}

// WaitForNamedCacheSync is WaitForCacheSync that logs what it does, with the name.
//
// Source: tools/cache/shared_informer.go WaitForNamedCacheSync
func WaitForNamedCacheSync(controllerName string, stopCh <-chan struct{}, cacheSyncs ...InformerSynced) bool {
	ctx := klog.NewContext(wait.ContextForChannel(stopCh), klog.LoggerWithName(klog.Background(), controllerName))
	return WaitForNamedCacheSyncWithContext(ctx, cacheSyncs...)
}

// WaitForNamedCacheSyncWithContext is WaitForCacheSync that logs what it does, with the context's logger.
//
// Source: tools/cache/shared_informer.go WaitForNamedCacheSyncWithContext
func WaitForNamedCacheSyncWithContext(ctx context.Context, cacheSyncs ...InformerSynced) bool {
	return informer.WaitForNamedCacheSync(ctx, cacheSyncs...)
}

// SyncResult says which informers of a factory have synced.
//
// Source: tools/cache/shared_informer.go SyncResult
type SyncResult struct {
	// Err is nil if all have, else why the waiting ended.
	Err error
	// Synced has every informer that was started.
	Synced map[reflect.Type]bool
}

// AsError names the informers that have not synced, and wraps Err; it is nil if all have.
func (c SyncResult) AsError() error {
	synced := make(map[informer.FactoryKey]bool, len(c.Synced))
	for objectType, ok := range c.Synced {
		synced[informer.FactoryKey{Type: objectType}] = ok
	}
	return informer.SyncResult{Err: c.Err, Synced: synced}.AsError()
}
