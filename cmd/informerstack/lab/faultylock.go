// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"example.com/informerstack/leaderelection/resourcelock"
)

// faultyLock is a candidate's lock. Its requests wait while it is paused, as those of a process
// that the kernel has stopped. The times that it writes are those of a clock with a skew.
type faultyLock struct {
	resourcelock.Interface

	mu      sync.Mutex
	resumed chan struct{} // closed by resume; nil while not paused
	skew    time.Duration
	renewed time.Time // the renewTime that was written last

	read     []byte    // the record that was read last; nil after a write
	observed time.Time // when the record was first read, or was written: the elector's observedTime
}

func (l *faultyLock) pause() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.resumed == nil {
		l.resumed = make(chan struct{})
	}
}

func (l *faultyLock) resume() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.resumed != nil {
		close(l.resumed)
		l.resumed = nil
	}
}

func (l *faultyLock) isPaused() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.resumed != nil
}

func (l *faultyLock) setSkew(skew time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.skew = skew
}

// renewTime returns the time in the record that was written last.
func (l *faultyLock) renewTime() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.renewed
}

// observedTime returns when the record that is known was first read, or was written.
func (l *faultyLock) observedTime() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.observed
}

// skewed returns the record with the time of the skewed clock.
func (l *faultyLock) skewed(
	record resourcelock.LeaderElectionRecord,
) resourcelock.LeaderElectionRecord {
	l.mu.Lock()
	defer l.mu.Unlock()
	record.RenewTime.Time = record.RenewTime.Add(l.skew)
	l.renewed = record.RenewTime.Time
	return record
}

// wait returns when the lock is not paused, or ctx is done.
func (l *faultyLock) wait(ctx context.Context) error {
	l.mu.Lock()
	resumed := l.resumed
	l.mu.Unlock()
	if resumed == nil {
		return nil
	}
	select {
	case <-resumed:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the candidate is paused: %w", ctx.Err())
	}
}

// Get reads the lock when it is not paused.
func (l *faultyLock) Get(
	ctx context.Context,
) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if err := l.wait(ctx); err != nil {
		return nil, nil, err
	}
	record, raw, err := l.Interface.Get(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil && !bytes.Equal(raw, l.read) {
		l.read, l.observed = raw, time.Now()
	}
	return record, raw, err
}

// wrote notes a write that the server has accepted, and returns the write's error.
func (l *faultyLock) wrote(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.read, l.observed = nil, time.Now()
	}
	return err
}

// Create writes the lock when it is not paused.
func (l *faultyLock) Create(
	ctx context.Context, record resourcelock.LeaderElectionRecord,
) error {
	if err := l.wait(ctx); err != nil {
		return err
	}
	return l.wrote(l.Interface.Create(ctx, l.skewed(record)))
}

// Update writes the lock when it is not paused.
func (l *faultyLock) Update(
	ctx context.Context, record resourcelock.LeaderElectionRecord,
) error {
	if err := l.wait(ctx); err != nil {
		return err
	}
	return l.wrote(l.Interface.Update(ctx, l.skewed(record)))
}

// UID returns the UID of the lock object, for the fencing token.
func (l *faultyLock) UID() types.UID {
	if identified, ok := l.Interface.(resourcelock.Identified); ok {
		return identified.UID()
	}
	return ""
}
