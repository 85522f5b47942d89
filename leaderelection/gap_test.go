// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
				c.jitters(rand.New(rand.NewPCG(random.Uint64(), 1)))
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
	for took := time.Duration(0); took < simDeadline; took += simDeadline / 16 {
		t.Run(took.String(), func(t *testing.T) {
			story(t, func(w *world) {
				w.shelf.early = 1.0 / 20
				a := w.candidate("a", lasting(simLease, simDeadline, simRetry)).runs()
				b := w.candidate("b", lasting(simLease, simDeadline, 50*time.Millisecond))
				b.lock.fast(int(simLease/time.Second) * 19 / 20)
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

// A candidate tries once in RetryPeriod at most, even if the holder's lease is shorter than that.
// The holder has renewed it whenever a request arrives.
func TestCandidate_AHolderWithAShortLease(t *testing.T) {
	story(t, func(w *world) {
		a := w.candidate("a")
		a.jitters(rand.New(rand.NewPCG(1, 1)))
		a.lock.before = func(string) {
			w.shelf.set(&resourcelock.LeaderElectionRecord{
				HolderIdentity: "b", LeaseDurationSeconds: 1, RenewTime: metav1.Now(),
			})
		}
		a.runs()
		w.after(time.Hour)
		w.saw()
		assert.LessOrEqual(t, w.shelf.count("get"), 1801)
		assert.Greater(t, w.shelf.count("get"), 1000)
	})
}
