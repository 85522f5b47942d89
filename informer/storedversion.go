// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// ErrStopped reports that an informer has stopped.
var ErrStopped = errors.New("the informer has stopped")

// storedVersion is the resourceVersion up to which the store holds every change. Callers can wait
// for it.
//
//	V1  every change up to version is in the store
//	V2  moved is open until version is set again; it is nil if no caller has waited since
//	V3  stopped is closed when the informer has stopped, and version no longer changes
//	V4  incomplete is true from the loss of a change until a later list is stored
type storedVersion struct {
	bookmark func(resourceVersion string) // method of the indexer without its wrapper
	stopped  chan struct{}

	mu      sync.Mutex
	version string    // "" before the first list
	asOf    time.Time // a time at which the server's collection was at version
	moved   chan struct{}

	incomplete bool
}

// set is the queue's ReachedFunc. It notes the version in the store, then wakes all waiters.
func (v *storedVersion) set(resourceVersion string, asOf time.Time) {
	if resourceVersion != "" {
		v.bookmark(resourceVersion)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.incomplete = false
	if resourceVersion != "" {
		v.version = resourceVersion
	}
	if !asOf.IsZero() {
		v.asOf = asOf
	}
	if v.moved != nil {
		close(v.moved)
		v.moved = nil
	}
}

// lose notes that a change was lost.
func (v *storedVersion) lose() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.incomplete = true
}

func (v *storedVersion) get() (resourceVersion string, asOf time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.version, v.asOf
}

// wait blocks until done returns true or an error. It calls done under mu. It fails when ctx is
// done or the informer has stopped, unless done returns true by then.
func (v *storedVersion) wait(ctx context.Context, done func() (bool, error)) error {
	var ended error
	for {
		v.mu.Lock()
		ok, err := done()
		if v.moved == nil {
			v.moved = make(chan struct{})
		}
		moved := v.moved
		v.mu.Unlock()
		switch {
		case ok || err != nil:
			return err
		case ended != nil:
			return ended
		}
		select {
		case <-moved:
		case <-ctx.Done():
			ended = context.Cause(ctx)
		case <-v.stopped:
			ended = ErrStopped
		}
	}
}

func (s *sharedIndexInformer) WaitForResourceVersion(
	ctx context.Context, resourceVersion string,
) error {
	if _, err := resourceversion.CompareResourceVersion(resourceVersion, "1"); err != nil {
		return fmt.Errorf("wait for resourceVersion %q in %s: %w", resourceVersion, s.name, err)
	}
	err := s.stored.wait(ctx, func() (bool, error) {
		if s.stored.version == "" {
			return false, nil
		}
		order, err := resourceversion.CompareResourceVersion(s.stored.version, resourceVersion)
		return order >= 0, err
	})
	if err == nil {
		return nil
	}
	has, _ := s.stored.get()
	return &BehindError{
		Informer: s.name, Want: resourceVersion, Have: has, Cause: err, Err: s.Err(),
	}
}

// BehindError reports that an informer did not reach a resourceVersion in time.
type BehindError struct {
	// Informer is the name of the informer.
	Informer string
	// Want is the argument of WaitForResourceVersion. Have is the version up to which the store
	// held every change when the wait ended; "" before the first list.
	Want, Have string
	// Cause is why the wait ended: the context's cause, ErrStopped, or an error that says that the
	// server's resourceVersions are not numbers.
	Cause error
	// Err is the informer's Err at that time.
	Err error
}

// Error names the informer and both resourceVersions.
func (e *BehindError) Error() string {
	text := fmt.Sprintf("wait for resourceVersion %q in %s, which holds everything up to %q: %v",
		e.Want, e.Informer, e.Have, e.Cause)
	if e.Err != nil {
		text += fmt.Sprintf(" (last error: %v)", e.Err)
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
