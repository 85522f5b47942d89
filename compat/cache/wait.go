// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"example.com/informerstack/informer"
	"example.com/informerstack/internal/helpers/done"
)

// syncedPollPeriod is the time between two checks of WaitForCacheSync.
const syncedPollPeriod = 100 * time.Millisecond

// DoneChecker is the type of package informer.
type DoneChecker = informer.DoneChecker

// InformerSynced is the HasSynced method of an informer or of a handler registration.
//
// Source: tools/cache/shared_informer.go InformerSynced
type InformerSynced func() bool

// IsDone reports whether the checker's event has happened. It does not block.
//
// Source: tools/cache/shared_informer.go IsDone
func IsDone(checker DoneChecker) bool { return done.Is(checker) }

// WaitFor blocks until all checkers are done or ctx is done. It reports whether all checkers are
// done. If what is not empty, it logs what, and each checker when that is done, with the caller's
// source position. That takes a goroutine for each checker.
//
// Source: tools/cache/shared_informer.go WaitFor
func WaitFor(ctx context.Context, what string, checkers ...DoneChecker) bool {
	if what == "" {
		all := true
		for _, checker := range checkers {
			all = done.Wait(ctx, checker) && all
		}
		return all
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
		go func() { answers <- answer{checker.Name(), done.Wait(ctx, checker)} }()
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
		logger.Info("Timed out waiting",
			"for", what, "cause", context.Cause(ctx), "instances", missing)
	}
	return len(missing) == 0
}

// WaitForCacheSync checks cacheSyncs ten times a second. It returns true when all of them are true,
// and false when stopCh is closed before that. A true result needs no wait, even if stopCh is
// closed already.
//
// Source: tools/cache/shared_informer.go WaitForCacheSync
func WaitForCacheSync(stopCh <-chan struct{}, cacheSyncs ...InformerSynced) bool {
	ticker := time.NewTicker(syncedPollPeriod)
	defer ticker.Stop()
	for {
		if !slices.ContainsFunc(cacheSyncs, func(synced InformerSynced) bool { return !synced() }) {
			return true
		}
		select {
		case <-stopCh:
			return false
		case <-ticker.C:
		}
	}
}

// WaitForNamedCacheSync is WaitForCacheSync that logs the start and the result under the name.
//
// Source: tools/cache/shared_informer.go WaitForNamedCacheSync
func WaitForNamedCacheSync(
	controllerName string, stopCh <-chan struct{}, cacheSyncs ...InformerSynced,
) bool {
	logger := klog.LoggerWithName(klog.Background(), controllerName)
	ctx := klog.NewContext(wait.ContextForChannel(stopCh), logger)
	return WaitForNamedCacheSyncWithContext(ctx, cacheSyncs...)
}

// WaitForNamedCacheSyncWithContext is WaitForCacheSync until ctx is done. It logs the start and the
// result with the logger of ctx.
//
// Source: tools/cache/shared_informer.go WaitForNamedCacheSyncWithContext
func WaitForNamedCacheSyncWithContext(ctx context.Context, cacheSyncs ...InformerSynced) bool {
	logger := klog.FromContext(ctx)
	logger.Info("Waiting for caches to sync")
	if !WaitForCacheSync(ctx.Done(), cacheSyncs...) {
		utilruntime.HandleErrorWithContext(ctx, nil, "Unable to sync caches")
		return false
	}
	logger.Info("Caches are synced")
	return true
}

// SyncResult reports which informers of a factory have synced.
//
// Source: tools/cache/shared_informer.go SyncResult
type SyncResult struct {
	// Err is nil if all have synced, otherwise the reason why the wait ended.
	Err error
	// Synced has an entry for every started informer.
	Synced map[reflect.Type]bool
}

// AsError names the informers that have not synced, and wraps Err. It is nil if Err is.
func (c SyncResult) AsError() error {
	if c.Err == nil {
		return nil
	}
	var missing []string
	for objectType, synced := range c.Synced {
		if !synced {
			missing = append(missing, objectType.String())
		}
	}
	slices.Sort(missing)
	return fmt.Errorf("failed to sync all caches: %s: %w", strings.Join(missing, ", "), c.Err)
}

// isHandedOn reports whether client-go's function of the given name called our function of that
// name. In a swapped program, client-go's function does nothing else.
func isHandedOn(name string) bool {
	var caller [1]uintptr
	runtime.Callers(3, caller[:])
	frame, _ := runtime.CallersFrames(caller[:]).Next()
	return frame.Function == "k8s.io/client-go/tools/cache."+name
}
