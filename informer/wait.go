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

// DoneChecker reports an event that happens once. Done returns a channel that closes when it
// happens. Name is for messages.
//
// Source: tools/cache/shared_informer.go DoneChecker
type DoneChecker = deltafifo.DoneChecker

// IsDone reports whether the checker's event has happened. It does not block.
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

// WaitFor blocks until all checkers are done or ctx is done. It reports whether all checkers are
// done. If what is not empty, it logs what and the name of each checker that is done, in the order
// of the arguments, with the logger of ctx at level 0.
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
		logger.Info("Timed out waiting",
			"for", what, "cause", context.Cause(ctx), "instances", missing)
	}
	return len(missing) == 0
}

// waitForOne waits for checker or ctx. It returns true if checker is done, even if ctx is done too.
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

// WaitForSync blocks until all informers have synced or ctx is done. It returns nil if all have
// synced. Otherwise the error is a *SyncError, which names each missing informer and its Err, for
// example a missing permission or an unknown resource.
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

// SyncError reports the informers that had not synced when a wait ended.
type SyncError struct {
	// Cause is why the wait ended: the context's cause.
	Cause error
	// Missing are the informers that had not synced.
	Missing []Unsynced
}

// Unsynced is an informer that has not synced, with its Err.
type Unsynced struct {
	Name string
	Err  error
}

// Error names each missing informer with its Err.
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

// Unwrap returns Cause and the Err of each missing informer.
func (e *SyncError) Unwrap() []error {
	errs := []error{e.Cause}
	for _, u := range e.Missing {
		if u.Err != nil {
			errs = append(errs, u.Err)
		}
	}
	return errs
}
