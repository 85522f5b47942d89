// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"example.com/informerstack/deltafifo"
	"example.com/informerstack/internal/helpers/done"
)

// ErrStopped reports that an informer has stopped.
var ErrStopped = errors.New("the informer has stopped")

// DoneChecker reports an event that happens once. Done returns a channel that closes when it
// happens. Name is for messages.
//
// Source: tools/cache/shared_informer.go DoneChecker
type DoneChecker = deltafifo.DoneChecker

// Syncer is an informer or the registration of a handler.
type Syncer interface {
	HasSyncedChecker() DoneChecker
	// Err returns the error that keeps the informer from listing or watching, or nil.
	Err() error
}

// WaitForSync blocks until all informers and handlers have synced or ctx is done. It returns nil if
// all have synced. Otherwise the error is a *SyncError, which names each that is missing and its
// Err, for example a missing permission or an unknown resource.
func WaitForSync(ctx context.Context, syncers ...Syncer) error {
	var missing []Unsynced
	for _, syncer := range syncers {
		if checker := syncer.HasSyncedChecker(); !done.Wait(ctx, checker) {
			missing = append(missing, Unsynced{Name: checker.Name(), Err: syncer.Err()})
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return &SyncError{Cause: context.Cause(ctx), Missing: missing}
}

// SyncError reports what had not synced when a wait ended.
type SyncError struct {
	// Cause is why the wait ended: the context's cause.
	Cause error
	// Missing are the informers and handlers that had not synced.
	Missing []Unsynced
}

// Unsynced is an informer or a handler that has not synced, with its Err.
type Unsynced struct {
	Name string
	Err  error
}

// Error names what is missing, each with its Err.
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

// Unwrap returns Cause and each Err.
func (e *SyncError) Unwrap() []error {
	errs := []error{e.Cause}
	for _, u := range e.Missing {
		if u.Err != nil {
			errs = append(errs, u.Err)
		}
	}
	return errs
}

func (s *sharedIndexInformer) WaitForResourceVersion(
	ctx context.Context, resourceVersion string,
) error {
	if _, err := resourceversion.CompareResourceVersion(resourceVersion, "1"); err != nil {
		return fmt.Errorf("wait for resourceVersion %q in %s: %w", resourceVersion, s.name, err)
	}
	err := s.freshness.Await(ctx, resourceVersion)
	if err == nil {
		return nil
	}
	return &BehindError{
		Informer: s.name, Want: resourceVersion, Have: s.freshness.Held().ResourceVersion,
		Cause: err, Err: s.Err(),
	}
}

// BehindError reports that an informer did not reach a resourceVersion in time.
type BehindError struct {
	// Informer is the name of the informer.
	Informer string
	// Want is the argument of WaitForResourceVersion. When the wait ended, the store held every
	// change up to Have; "" before the first list.
	Want, Have string
	// Cause is why the wait ended: the context's cause, ErrStopped, or an error that says that the
	// server's resourceVersions are not numbers, that the queue does not report all that it holds
	// (see Options.WrapQueue), or that the kind is not served (see package served).
	Cause error
	// Err is the informer's Err at that time.
	Err error
}

// Error names the informer and both resourceVersions.
func (e *BehindError) Error() string {
	text := fmt.Sprintf("wait for resourceVersion %q in %s, which holds everything up to %q: %v",
		e.Want, e.Informer, e.Have, e.Cause)
	if e.Err != nil {
		text += fmt.Sprintf(" (the informer: %v)", e.Err) // an error, or a wait for a turn
	}
	return text
}

// Unwrap returns Cause, and Err if it is not nil.
func (e *BehindError) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Cause}
	}
	return []error{e.Cause, e.Err}
}
