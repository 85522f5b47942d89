// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"example.com/informerstack/leaderelection/resourcelock"
)

// faultyLock is a candidate's lock. Its requests wait while it is paused, as those of a process
// that the kernel has stopped, and fail while it is cut off. The times that it writes are those of
// a clock with a skew. A process that is killed does not release its lease, so this is refused
// unless a release was asked for.
type faultyLock struct {
	resourcelock.Interface
	race *startLine

	mu       sync.Mutex
	resumed  chan struct{} // closed by resume; nil while not paused
	isCut    bool
	left     chan struct{} // closed when the candidate has left the election
	releases bool          // it releases the lease when it leaves
	skew     time.Duration
	renewed  time.Time // the renewTime that was written last

	read     []byte    // the record that was read last; nil after a write
	observed time.Time // when the record was first read, or was written: the elector's observedTime
}

var (
	errCut    = errors.New("the candidate is cut off from the server")
	errKilled = errors.New("the candidate is killed")
)

// join begins a run of the candidate, which closes the result when it leaves: from then on, unless
// it releases the lease, no request is sent.
func (l *faultyLock) join() (left chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left, l.releases = make(chan struct{}), false
	return l.left
}

// release lets the candidate release the lease when it leaves.
func (l *faultyLock) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.releases = true
}

// cut makes all requests fail.
func (l *faultyLock) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isCut = true
}

// state reports whether the lock is paused, and whether it is cut off.
func (l *faultyLock) state() (paused, cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.resumed != nil, l.isCut
}

func (l *faultyLock) pause() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.resumed == nil {
		l.resumed = make(chan struct{})
	}
}

// resume ends a pause and a cut.
func (l *faultyLock) resume() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isCut = false
	if l.resumed != nil {
		close(l.resumed)
		l.resumed = nil
	}
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

// wait returns nil when a request may be sent: at once, or when the lock is resumed.
func (l *faultyLock) wait(ctx context.Context) error {
	l.mu.Lock()
	resumed, left, cut := l.resumed, l.left, l.isCut
	if l.releases {
		left = nil
	}
	l.mu.Unlock()
	if cut {
		return errCut
	}
	if resumed == nil {
		resumed = closedChannel
	}
	select {
	case <-left:
		return errKilled
	default:
	}
	select {
	case <-resumed:
		return nil
	case <-left:
		return errKilled
	case <-ctx.Done():
		return fmt.Errorf("the candidate is paused: %w", ctx.Err())
	}
}

// closedChannel is that of a lock that is not paused.
var closedChannel = func() chan struct{} {
	closed := make(chan struct{})
	close(closed)
	return closed
}()

// Get reads the lock when it is not paused. In a race, a candidate that finds no holder waits for
// the others here, so that all write to the same version.
func (l *faultyLock) Get(
	ctx context.Context,
) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if err := l.wait(ctx); err != nil {
		return nil, nil, err
	}
	record, raw, err := l.Interface.Get(ctx)
	if err == nil && record.HolderIdentity == "" {
		l.race.ready(ctx)
	}
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
	if record.HolderIdentity == "" && !l.mayRelease() {
		return errKilled
	}
	return l.wrote(l.Interface.Update(ctx, l.skewed(record)))
}

func (l *faultyLock) mayRelease() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.releases
}

// UID returns the UID of the lock object, for the fencing token.
func (l *faultyLock) UID() types.UID {
	if identified, ok := l.Interface.(resourcelock.Identified); ok {
		return identified.UID()
	}
	return ""
}

// startLine lets the candidates of a race wait for each other.
type startLine struct {
	mu      sync.Mutex
	missing int           // candidates
	start   chan struct{} // closed when no candidate is missing; nil without a race
}

// arm prepares a race of n candidates.
func (s *startLine) arm(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.missing, s.start = n, make(chan struct{})
}

// ready returns when all candidates are ready. If ctx is done before, the race ends. Without a race
// it returns at once.
func (s *startLine) ready(ctx context.Context) {
	s.mu.Lock()
	start := s.start
	s.missing--
	if start != nil && s.missing == 0 {
		s.endLocked()
	}
	s.mu.Unlock()
	if start == nil {
		return
	}
	select {
	case <-start:
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.start == start {
			s.endLocked()
		}
	}
}

func (s *startLine) endLocked() {
	close(s.start)
	s.start = nil
}
