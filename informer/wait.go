// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/klog/v2"

	"example.com/informerstack/deltafifo"
)

// DoneChecker is something that happens once: a name for messages, and a channel that closes when it has happened.
//
// Source: tools/cache/shared_informer.go DoneChecker
type DoneChecker = deltafifo.DoneChecker

// IsDone tells without blocking whether it has happened.
//
// Source: tools/cache/shared_informer.go IsDone
func IsDone(checker DoneChecker) bool {
	select {
	case <-checker.Done():
		return true
	default:
		return false
	}
}

// WaitFor waits until all of checkers are done, and returns true, or until ctx is, and returns false if one is missing. A
// what that is not empty is logged, and so is the name of each checker that is done, in the order given, at level 0 of
// ctx's logger.
//
// It starts no goroutine and does not poll.
//
// Source: tools/cache/shared_informer.go WaitFor
func WaitFor(ctx context.Context, what string, checkers ...DoneChecker) bool {
	logger := klog.FromContext(ctx)
	if what != "" {
		logger.Info("Waiting", "for", what)
	}
	var missing []string
	for _, checker := range checkers {
		switch done := waitForOne(ctx, checker); {
		case !done:
			missing = append(missing, checker.Name())
		case what != "":
			logger.Info("Done waiting", "for", what, "instance", checker.Name())
		}
	}
	if what != "" && len(missing) > 0 {
		slices.Sort(missing)
		logger.Info("Timed out waiting", "for", what, "cause", context.Cause(ctx), "instances", missing)
	}
	return len(missing) == 0
}

// waitForOne is true if checker is done, even if ctx is too.
func waitForOne(ctx context.Context, checker DoneChecker) bool {
	select {
	case <-checker.Done():
	case <-ctx.Done():
	}
	return IsDone(checker)
}

// Syncer is the part of a SharedInformer that WaitForSync uses.
type Syncer interface {
	HasSyncedChecker() DoneChecker
	// Err returns the error that keeps the informer from listing or watching; nil if there is none.
	Err() error
}

// WaitForSync waits until every informer has synced, or until ctx is done. Then the error is a *SyncError, which names each
// informer that is missing and what it last failed with: a missing permission, say, or a missing resource.
func WaitForSync(ctx context.Context, informers ...Syncer) error {
	var missing []Unsynced
	for _, informer := range informers {
		if checker := informer.HasSyncedChecker(); !waitForOne(ctx, checker) {
			missing = append(missing, Unsynced{Name: checker.Name(), Err: informer.Err()})
		}
	}
	return syncError(ctx, missing)
}

func syncError(ctx context.Context, missing []Unsynced) error {
	if len(missing) == 0 {
		return nil
	}
	return &SyncError{Cause: context.Cause(ctx), Missing: missing}
}

// SyncError says what had not synced when the waiting ended.
type SyncError struct {
	// Cause is why the waiting ended: the context's cause.
	Cause error
	// Missing holds what had not synced.
	Missing []Unsynced
}

// Unsynced is an informer that has not synced, with its Err.
type Unsynced struct {
	Name string
	Err  error
}

// Error names each missing informer with its last error.
func (e *SyncError) Error() string {
	var b strings.Builder
	b.WriteString("failed to sync all caches: ")
	for i, u := range e.Missing {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(u.Name)
		if u.Err != nil {
			fmt.Fprintf(&b, " (%v)", u.Err)
		}
	}
	fmt.Fprintf(&b, ": %v", e.Cause)
	return b.String()
}

// Unwrap returns the cause and every last error.
func (e *SyncError) Unwrap() []error {
	errs := []error{e.Cause}
	for _, u := range e.Missing {
		if u.Err != nil {
			errs = append(errs, u.Err)
		}
	}
	return errs
}
