// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"example.com/informerstack/internal/transcript"
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
