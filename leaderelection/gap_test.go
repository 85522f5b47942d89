// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"errors"
	"fmt"
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

// Each answer takes 7 s, and a leader may act for 14.25 s after it has sent a renewal: it renews
// again as soon as an answer has arrived, and leads throughout. Others never get the lease.
func TestStory_SlowAnswersKeepTheLease(t *testing.T) {
	stories(t, func(w *world) {
		for _, name := range []string{"a", "b", "c"} {
			c := w.candidate(name)
			c.lock.link = func() time.Duration { return 3500 * time.Millisecond }
			c.runs()
			w.after(time.Second)
		}
		w.after(10 * time.Minute)
		w.saw("14s a started")
		assert.Same(t, w.candidates[0], w.leads())
	})
}

// The right to act ends before a candidate with a clock that is a twentieth faster can lead,
// however long the last answer took.
func TestStory_TheRightEndsFirst(t *testing.T) {
	long := func(c *LeaderElectionConfig) {
		c.LeaseDuration, c.RenewDeadline, c.RetryPeriod = simLease, simDeadline, simRetry
	}
	eager := func(c *LeaderElectionConfig) {
		c.Lock = fastLock{c.Lock.(*shelfLock), int(simLease/time.Second) * 19 / 20}
		c.RetryPeriod = 50 * time.Millisecond
	}
	for took := time.Duration(0); took < simDeadline; took += simDeadline / 16 {
		t.Run(took.String(), func(t *testing.T) {
			story(t, func(w *world) {
				w.shelf.early = 1.0 / 20
				a := w.candidate("a", long).runs()
				b := w.candidate("b", long, eager)
				b.lock.link = func() time.Duration { return time.Millisecond }
				b.runs()
				a.api("update:back=" + took.String())
				w.after(simRetry + time.Second) // its last renewal is under way
				a.api("fails")
				w.after(2 * simLease)
				stopped := simRetry + min(max(took, simRetry)+simDeadline, simLease*19/20)
				log := w.take()
				require.Len(t, log, 3)
				assert.Equal(t, fmt.Sprint(stopped, " a stopped"), log[1])
				assert.Contains(t, log[2], "b started")
			})
		})
	}
}

// A renewal that has lost its answer counts once a read shows it, from when it was sent. A write
// that has the time of the one before does not.
func TestStory_ALostAnswerIsRead(t *testing.T) {
	for _, row := range []struct {
		api   string
		clock time.Duration
		want  string
	}{
		{"update:loses", 0, "14s a stopped"},
		{"update:fails", 0, "12s a stopped"},
		{"update:fails", -2 * time.Second, "12s a stopped"}, // its record has the time of the last
	} {
		t.Run(fmt.Sprint(row.api, row.clock), func(t *testing.T) {
			story(t, func(w *world) {
				a := w.candidate("a").runs()
				w.after(time.Second)
				a.step(row.clock)
				a.api(row.api) // it renews at 2 s
				w.after(2 * time.Second)
				a.api("update:fails")
				w.after(time.Minute)
				w.saw("0s a started", row.want)
			})
		})
	}
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
