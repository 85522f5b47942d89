// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/informerstack/internal/tools/transcript"
	"example.com/informerstack/leaderelection/resourcelock"
)

// After the leader is cut off, the next one leads sooner than with client-go, because a candidate
// tries when the lease expires by its own clock. No two lead at the same time.
func TestStory_TheGapIsShorterThanClientGos(t *testing.T) {
	ours, client := meanGap(t, transcript.Ours), meanGap(t, "client-go")
	t.Logf("without a leader: ours %v, client-go %v", ours, client)
	assert.Less(t, ours, client)
}

// meanGap cuts off the leader of three candidates, many times, and returns the mean time from the
// end of its term to the beginning of the next.
func meanGap(t *testing.T, impl string) (mean time.Duration) {
	const trials = 60
	random := rand.New(rand.NewPCG(1, 1))
	var sum time.Duration
	for range trials {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, impl)
			defer w.end()
			for _, name := range []string{"a", "b", "c"} {
				c := w.candidate(name)
				if c.LeaderElector != nil {
					c.jitter = rand.New(rand.NewPCG(random.Uint64(), 1)).Float64
				}
				c.runs()
				time.Sleep(time.Duration(random.Int64N(int64(4 * time.Second))))
			}
			w.after(time.Minute)
			leader := w.candidates[0]
			time.Sleep(time.Duration(random.Int64N(int64(10 * time.Second))))
			leader.api("hangs")
			for w.leads() == leader {
				w.after(50 * time.Millisecond)
			}
			stopped := time.Now()
			for w.leads() == nil {
				w.after(50 * time.Millisecond)
			}
			sum += time.Since(stopped)
		})
	}
	return sum / trials
}

// renewedLock is a lock that another holder, with a short lease, renews all the time.
type renewedLock struct {
	resourcelock.Interface
	reads int
}

func (l *renewedLock) Identity() string { return "a" }
func (l *renewedLock) Describe() string { return "lease" }

func (l *renewedLock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.reads++
	return &resourcelock.LeaderElectionRecord{HolderIdentity: "b", LeaseDurationSeconds: 1},
		[]byte(strconv.Itoa(l.reads)), nil
}

// Update is refused: the holder has renewed since.
func (l *renewedLock) Update(context.Context, resourcelock.LeaderElectionRecord) error {
	return apierrors.NewConflict(leases, "lease", errors.New("changed"))
}

// A candidate tries once in RetryPeriod at most, even if the holder's lease is shorter than that.
func TestCandidate_AHolderWithAShortLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lock := &renewedLock{}
		e, err := NewLeaderElector(LeaderElectionConfig{
			Lock: lock, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second,
			RetryPeriod: 2 * time.Second, Callbacks: LeaderCallbacks{
				OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() {},
			},
		})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(quiet(), time.Hour)
		defer cancel()
		e.Run(ctx)
		assert.LessOrEqual(t, lock.reads, 1801)
		assert.Greater(t, lock.reads, 1000)
	})
}

// leads returns the candidate between its OnStartedLeading and its OnStoppedLeading, or nil.
func (w *world) leads() *candidate {
	for _, c := range w.candidates {
		c.mu.Lock()
		started, stopped := c.started, c.stopped
		c.mu.Unlock()
		if started > stopped {
			return c
		}
	}
	return nil
}
