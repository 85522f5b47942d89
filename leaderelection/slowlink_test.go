// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"example.com/informerstack/internal/tools/transcript"
	"example.com/informerstack/leaderelection/resourcelock"
)

// slowLinks plays three candidates behind slow links, with random faults, and returns for how long
// there was no leader, and for how long there were two. A candidate that has lost exits, and comes
// back at once under its own name.
func slowLinks(
	t *testing.T, impl string, seed uint64, link func(*rand.Rand) time.Duration,
	change func(*LeaderElectionConfig),
) (leaderless, overlap time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(t, impl)
		w.shelf.lawless = true // a write may arrive late
		defer w.end()
		enter := func(i int) *candidate {
			c := w.candidate(fmt.Sprint("p", i), change)
			jitter := rand.New(rand.NewPCG(seed, uint64(i)))
			if c.LeaderElector != nil {
				c.jitter = jitter.Float64
			}
			c.lock.link = func() time.Duration { return link(jitter) }
			return c.runs()
		}
		living := []*candidate{enter(0), enter(1), enter(2)}
		const step = 50 * time.Millisecond
		var heals [3]time.Time
		for at := time.Duration(0); at < 10*time.Minute; at += step {
			time.Sleep(step)
			synctest.Wait()
			leaders := 0
			for i, c := range living {
				if c.returned() {
					living[i] = enter(i)
					continue
				}
				if time.Now().After(heals[i]) {
					c.api("ok")
				}
				if started, stopped := c.counts(); started > stopped {
					leaders++
				}
			}
			switch {
			case leaders == 0:
				leaderless += step
			case leaders > 1:
				overlap += step
			}
			if i := random.IntN(3); random.IntN(1000) == 0 {
				living[i].api([]string{"fails", "hangs", "loses"}[random.IntN(3)])
				heals[i] = time.Now().Add(time.Duration(1+random.IntN(9)) * time.Second)
			}
		}
	})
	return leaderless, overlap
}

func (c *candidate) counts() (started, stopped int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.started, c.stopped
}

// Links that take up to 0.8 s each way, or always 0.8 s, are slow for a RenewDeadline of 2 s. There
// are never two leaders, and about as long no leader as with client-go.
func TestStory_SlowLinks(t *testing.T) {
	const slow = 800 * time.Millisecond
	for name, row := range map[string]struct {
		link  func(*rand.Rand) time.Duration
		retry time.Duration
	}{
		"always": {func(*rand.Rand) time.Duration { return slow }, 1500 * time.Millisecond},
		"up to": {func(r *rand.Rand) time.Duration { return time.Duration(r.Int64N(int64(slow))) },
			time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			none := map[string]time.Duration{}
			for _, impl := range []string{transcript.Ours, "client-go"} {
				for seed := range uint64(3) {
					without, two := slowLinks(t, impl, seed, row.link,
						func(c *LeaderElectionConfig) {
							c.LeaseDuration, c.RenewDeadline = 4*time.Second, 2*time.Second
							c.RetryPeriod = row.retry
						})
					none[impl] += without
					if impl == transcript.Ours {
						assert.Zero(t, two)
					}
				}
			}
			t.Logf("without a leader: %v", none)
			// client-go has a random jitter: its sum differs from run to run.
			assert.Less(t, none[transcript.Ours], 3*none["client-go"])
		})
	}
}

// A candidate that sees a lease expire writes it in the version that it has read: it need not read
// it again, and leads when the answer has arrived. E1 holds, since the server refuses the write if
// the holder has renewed.
func TestStory_ACandidateWritesWhatItKnows(t *testing.T) {
	for _, alive := range []bool{false, true} {
		t.Run(fmt.Sprint("alive=", alive), func(t *testing.T) {
			story(t, func(w *world) {
				w.shelf.set(&resourcelock.LeaderElectionRecord{
					HolderIdentity: "other", LeaseDurationSeconds: 15,
				})
				b := w.candidate("b")
				b.lock.link = func() time.Duration { return 800 * time.Millisecond }
				b.runs()
				w.after(16 * time.Second) // it has read the lease at 1.6 s, and at 16.6 s
				if alive {
					w.takes("other")
				}
				w.after(4 * time.Second)
				if alive {
					w.saw()
					w.holder("other")
				} else {
					w.saw("18.2s b started")
				}
			})
		})
	}
}
