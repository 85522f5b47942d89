// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// ErrStopped says that an informer has stopped.
var ErrStopped = errors.New("the informer has stopped")

// progress wakes who waits for the reflector to move on. While nobody waits it costs one atomic load a change.
//
//	N1  a waiter counts itself, then gets moved, then looks; the reflector moves, then looks for waiters: none sleeps
//	    through what it waits for
//	N2  moved is open until the next move; stopped is closed once, when the informer has stopped
type progress struct {
	waiters atomic.Int32
	stopped chan struct{}

	mu    sync.Mutex
	moved chan struct{} // nil until somebody waits
}

// move says that the reflector has moved on.
func (p *progress) move() {
	if p.waiters.Load() == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.moved != nil {
		close(p.moved)
		p.moved = nil
	}
}

// next returns what closes at the next move.
func (p *progress) next() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.moved == nil {
		p.moved = make(chan struct{})
	}
	return p.moved
}

// until waits for done to be true, which it asks after each move.
func (p *progress) until(ctx context.Context, done func() (bool, error)) error {
	p.waiters.Add(1)
	defer p.waiters.Add(-1)
	for {
		moved := p.next()
		if ok, err := done(); ok || err != nil {
			return err
		}
		if err := p.wait(ctx, moved); err != nil {
			return err
		}
	}
}

// wait waits for a channel to be closed, unless ctx or the informer ends first.
func (p *progress) wait(ctx context.Context, closed <-chan struct{}) error {
	select {
	case <-closed: // whatever else has happened
		return nil
	default:
	}
	select {
	case <-closed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-p.stopped:
		return ErrStopped
	}
}

// moved is told each resourceVersion that the reflector reaches.
func (s *sharedIndexInformer) moved(resourceVersion string) {
	s.progress.move()
	if s.options.Reflector.Progress != nil {
		s.options.Reflector.Progress(resourceVersion)
	}
}

// processed closes when what is queued now has been processed.
func (s *sharedIndexInformer) processed() <-chan struct{} {
	s.mu.Lock()
	queue := s.queue
	s.mu.Unlock()
	return queue.Processed()
}

// WaitForResourceVersion implements SharedInformer.
//
// What the reflector has passed on is in the queue or through it. So this waits until the reflector has come as far, then
// until what is queued at that moment is through. (The newest resourceVersion in the store would not do: a DeltaFIFO keeps
// the order of each object's changes, not that of all.)
func (s *sharedIndexInformer) WaitForResourceVersion(ctx context.Context, resourceVersion string) error {
	if _, err := resourceversion.CompareResourceVersion(resourceVersion, "1"); err != nil {
		return fmt.Errorf("wait for resourceVersion %q in %s: %w", resourceVersion, s.name, err)
	}
	err := s.progress.until(ctx, func() (bool, error) {
		has := s.LastSyncResourceVersion()
		if has == "" {
			return false, nil // nothing was listed yet
		}
		order, err := resourceversion.CompareResourceVersion(has, resourceVersion)
		return order >= 0, err
	})
	if err == nil {
		err = s.progress.wait(ctx, s.processed())
	}
	if err == nil {
		return nil
	}
	return &BehindError{Informer: s.name, Want: resourceVersion, Have: s.LastSyncResourceVersion(), LastError: s.LastError(), Err: err}
}

// BehindError says that an informer did not come as far as it was waited for.
type BehindError struct {
	// Informer is its name.
	Informer string
	// Want is the resourceVersion that was waited for, Have the one up to which the informer had received everything when
	// the waiting ended; "" before the first list.
	Want, Have string
	// LastError is why the informer's last attempt to list or watch failed; nil if it did not.
	LastError error
	// Err is why the waiting ended: the context's cause, ErrStopped, or that the server's resourceVersions are no numbers.
	Err error
}

// Error names the informer and both resourceVersions.
func (e *BehindError) Error() string {
	text := fmt.Sprintf("wait for resourceVersion %q in %s, which has received up to %q: %v", e.Want, e.Informer, e.Have, e.Err)
	if e.LastError != nil {
		text += fmt.Sprintf(" (last error: %v)", e.LastError)
	}
	return text
}

// Unwrap returns why the waiting ended, and the informer's last error.
func (e *BehindError) Unwrap() []error {
	if e.LastError == nil {
		return []error{e.Err}
	}
	return []error{e.Err, e.LastError}
}
