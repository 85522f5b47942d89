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

// ErrStopped says that an informer has stopped.
var ErrStopped = errors.New("the informer has stopped")

// storedVersion is the resourceVersion up to which the store holds every change. Callers can wait
// for it.
//
//	V1  every change up to version is in the store
//	V2  moved is open until version is set again; it is nil while no caller waits
//	V3  stopped is closed when the informer has stopped, and version does not change any more
type storedVersion struct {
	stopped chan struct{}

	mu      sync.Mutex
	version string    // "" before the first list
	asOf    time.Time // when the server's collection was at version
	moved   chan struct{}
}

// set is the queue's ReachedFunc. It wakes all waiters.
func (v *storedVersion) set(resourceVersion string, asOf time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.version = resourceVersion
	if !asOf.IsZero() {
		v.asOf = asOf
	}
	if v.moved != nil {
		close(v.moved)
		v.moved = nil
	}
}

func (v *storedVersion) get() (resourceVersion string, asOf time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.version, v.asOf
}

// next returns the version, and a channel that closes when it is set again.
func (v *storedVersion) next() (resourceVersion string, moved <-chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.moved == nil {
		v.moved = make(chan struct{})
	}
	return v.version, v.moved
}

// waitFor blocks until the version is want or newer, ctx is done, or the informer has stopped.
func (v *storedVersion) waitFor(ctx context.Context, want string) error {
	var ended error
	for {
		has, moved := v.next()
		if has != "" {
			order, err := resourceversion.CompareResourceVersion(has, want)
			if err != nil || order >= 0 {
				return err
			}
		}
		if ended != nil {
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

// WaitForResourceVersion implements SharedInformer.
func (s *sharedIndexInformer) WaitForResourceVersion(ctx context.Context, resourceVersion string) error {
	if _, err := resourceversion.CompareResourceVersion(resourceVersion, "1"); err != nil {
		return fmt.Errorf("wait for resourceVersion %q in %s: %w", resourceVersion, s.name, err)
	}
	err := s.stored.waitFor(ctx, resourceVersion)
	if err == nil {
		return nil
	}
	has, _ := s.stored.get()
	return &BehindError{
		Informer: s.name, Want: resourceVersion, Have: has, LastError: s.LastError(), Err: err,
	}
}

// BehindError reports that an informer did not reach a resourceVersion in time.
type BehindError struct {
	// Informer is its name.
	Informer string
	// Want is the resourceVersion that was waited for. Have is the one up to which the store held
	// every change when the wait ended; "" before the first list.
	Want, Have string
	// LastError is the reason why the informer's last attempt to list or watch failed; nil if it
	// did not.
	LastError error
	// Err is why the wait ended: the context's cause, ErrStopped, or that the server's
	// resourceVersions are not numbers.
	Err error
}

// Error names the informer and both resourceVersions.
func (e *BehindError) Error() string {
	text := fmt.Sprintf("wait for resourceVersion %q in %s, which holds everything up to %q: %v",
		e.Want, e.Informer, e.Have, e.Err)
	if e.LastError != nil {
		text += fmt.Sprintf(" (last error: %v)", e.LastError)
	}
	return text
}

// Unwrap returns why the wait ended, and the informer's last error.
func (e *BehindError) Unwrap() []error {
	if e.LastError == nil {
		return []error{e.Err}
	}
	return []error{e.Err, e.LastError}
}
