// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"example.com/informerstack/internal/tools/transcript"
)

// client-go's release reads the lease and then asks its memory whether it is the holder: it wipes
// out the lease of a candidate that has taken it meanwhile.
func TestDifference_ReleaseLeavesAnothersLease(t *testing.T) {
	stories(t, func(w *world) {
		a := w.candidate("a", releasing).runs()
		w.after(time.Second)
		w.takes("b")
		a.stop()
		w.holder(either(w, "b", ""))
		w.take()
	})
}

// The same, with the other client coming between the read and the write of the release: the
// conflict makes it read again. If the other one has only labelled the lease, both release it
// (kubernetes/kubernetes#137988).
func TestDifference_ReleaseLooksAgainAfterAConflict(t *testing.T) {
	for _, row := range []struct {
		change func(w *world)
		holder string
	}{
		{func(w *world) { w.takes("b") }, "b"},
		{(*world).touch, ""},
	} {
		stories(t, func(w *world) {
			a := w.candidate("a", releasing).runs()
			w.after(time.Second)
			a.api("update:there=1s")
			a.stop()
			w.after(500 * time.Millisecond)
			row.change(w)
			w.after(2500 * time.Millisecond)
			w.holder(either(w, row.holder, ""))
			assert.True(t, a.returned())
			w.take()
		})
	}
}

// Another client changes the lease before each write of the release. client-go reads and writes it
// again without a pause, for RenewDeadline.
func TestDifference_ReleaseWaitsBetweenConflicts(t *testing.T) {
	story(t, func(w *world) {
		a := w.candidate("a", releasing).runs()
		w.after(time.Second)
		before := w.shelf.count("update")
		a.lock.before = func(op string) {
			if op == "update" {
				w.touch()
			}
		}
		a.stop()
		w.after(usual().RenewDeadline)
		assert.True(t, a.returned())
		w.holder("a")
		assert.LessOrEqual(t, w.shelf.count("update")-before, 11)
	})
}

// client-go calls OnStoppedLeading whenever Run returns, as its comment says, even if the candidate
// never led (kubernetes/kubernetes#127743). AlwaysStopped does the same.
func TestDifference_StoppedOnlyIfStarted(t *testing.T) {
	stories(t, func(w *world) {
		w.leaseOf("other", 3600)
		for _, options := range [][]func(*LeaderElectionConfig){{}, {always}} {
			a := w.candidate("a", options...).runs()
			a.stop()
			assert.True(t, a.returned())
		}
		w.saw(either(w, []string{"0s a stopped"}, []string{"0s a stopped", "0s a stopped"})...)
	})
}

// A lease that was deleted and made again, or was another's meanwhile, is another term's, even if
// it names this candidate again. client-go leads on. A release leaves it alone.
func TestDifference_AnotherLeaseOfItsNameEndsTheTerm(t *testing.T) {
	changes := map[string]func(w *world){
		"made again": func(w *world) {
			record := w.shelf.get()
			w.shelf.set(nil)
			w.shelf.set(&record)
		},
		"made again without its time": func(w *world) {
			record := w.shelf.get()
			record.RenewTime.Time = time.Time{}
			w.shelf.set(nil)
			w.shelf.set(&record)
		},
		"another's": func(w *world) { w.takes("b"); w.takes("a") },
	}
	for name, change := range changes {
		// If the clock is set back, the renewal at 2 s has the time of the first write.
		for _, clock := range []time.Duration{0, -2 * time.Second} {
			t.Run(fmt.Sprint(name, clock), func(t *testing.T) {
				stories(t, func(w *world) {
					a := w.candidate("a", releasing).runs()
					w.after(time.Second)
					a.step(clock)
					change(w)
					w.after(time.Minute)
					w.saw(either(w, []string{"0s a started", "2s a stopped"},
						[]string{"0s a started"})...)
					w.holder("a")
				})
			})
		}
	}
}

// A renewal counts from when it was sent. client-go counts from when the answer came: if one answer
// is slow and the next never comes, it leads on after its lease has expired for all others.
func TestDifference_ARenewalCountsFromWhenItWasSent(t *testing.T) {
	stories(t, func(w *world) {
		a := w.candidate("a").runs()
		w.after(time.Second)
		a.api("update:back=9s") // renews at 2 s, hears of it at 11 s
		w.after(time.Second)
		renewed := time.Now()
		w.after(8 * time.Second)
		a.api("fails")
		w.after(6500 * time.Millisecond)
		assert.Less(t, time.Since(renewed), 15*time.Second)
		if w.impl == transcript.Ours {
			w.saw("0s a started", "16.25s a stopped")
			return
		}
		w.after(3 * time.Second)
		assert.Greater(t, time.Since(renewed), 15*time.Second)
		w.saw("0s a started") // and still leads
	})
}

// The price of that: a server that always takes half of LeaseDuration, less a twentieth, costs the
// lease. A request of a client made by NewFromKubeconfig fails sooner in either case.
func TestDifference_ASlowServerCostsTheLease(t *testing.T) {
	for _, slow := range []time.Duration{7 * time.Second, 7500 * time.Millisecond} {
		stories(t, func(w *world) {
			a := w.candidate("a").runs()
			w.after(time.Second)
			a.api("back=" + slow.String())
			w.after(time.Minute)
			want := []string{"0s a started"}
			if w.impl == transcript.Ours && slow > 7*time.Second {
				want = append(want, "16.25s a stopped")
			}
			w.saw(want...)
		})
	}
}

// A leader never leads for longer than the others wait, whatever the config. client-go tries for
// RenewDeadline after the next renewal was due, which may be later.
func TestDifference_TheTermEndsWithTheLease(t *testing.T) {
	stories(t, func(w *world) {
		a := w.candidate("a", lasting(15*time.Second, 14*time.Second, 2*time.Second)).runs()
		w.after(time.Second)
		a.api("fails")
		w.after(time.Minute)
		w.saw("0s a started", either(w, "14.25s a stopped", "16s a stopped"))
	})
}

// After a loss client-go tries to release the lease before it says so: with a server that does not
// answer that takes RenewDeadline once more, and the work's process lives on.
func TestDifference_StoppedIsCalledBeforeTheRelease(t *testing.T) {
	stories(t, func(w *world) {
		a := w.candidate("a", releasing).runs()
		w.after(time.Second)
		a.api("hangs")
		w.after(time.Minute)
		w.saw("0s a started", either(w, "12s a stopped", "22s a stopped"))
	})
}

// A candidate's request that is never answered is given up after RenewDeadline. client-go's
// candidate waits for ever, unless its client has a timeout.
func TestDifference_ACandidatesRequestsAreBounded(t *testing.T) {
	stories(t, func(w *world) {
		a := w.candidate("a")
		a.api("hangs")
		a.runs()
		w.after(time.Minute)
		a.api("ok")
		w.after(time.Minute)
		assert.Len(t, w.take(), either(w, 1, 0))
	})
}

// A candidate that is stopped while its write is under way, or after an error that leaves open
// whether the write was done, may have got the lease without knowing. It is released.
func TestDifference_AnUnknownLeaseIsReleased(t *testing.T) {
	for _, answer := range []string{"back=5s", "loses", "loses=500", "loses=504", "loses=409"} {
		t.Run(answer, func(t *testing.T) {
			stories(t, func(w *world) {
				a := w.candidate("a", releasing)
				a.api("create:" + answer)
				a.runs()
				w.after(time.Second)
				a.stop()
				w.after(time.Second)
				w.holder(either(w, "", "a"))
				w.take()
			})
		})
	}
}

// A lease of less than a second is recorded as one second. client-go writes 0: no candidate has to
// wait for it, and the API server refuses it in a Lease.
func TestDifference_LeaseDurationIsRoundedUp(t *testing.T) {
	stories(t, func(w *world) {
		const ms = time.Millisecond
		w.candidate("a", lasting(500*ms, 300*ms, 100*ms)).runs()
		assert.Equal(t, either(w, 1, 0), w.shelf.get().LeaseDurationSeconds)
		w.take()
	})
}

// A term that has ended in order is no reason to restart the process. client-go's check fails for
// ever once a leader has stopped without releasing its lease, until another one's is seen.
func TestDifference_CheckForgetsATermThatHasEnded(t *testing.T) {
	stories(t, func(w *world) {
		a := w.candidate("a").runs()
		w.after(time.Second)
		a.stop()
		w.after(time.Hour)
		assert.Equal(t, either(w, false, true), a.check(time.Second) != nil)
		w.take()
	})
}

// New leaders are reported one after the other. client-go starts a goroutine for each, and which
// comes first is chance.
func TestDifference_NewLeadersAreToldInOrder(t *testing.T) {
	story(t, func(w *world) {
		var notified []string
		var calls atomic.Int64
		w.leaseOf("first", 15)
		want := []string{"first"}
		w.candidate("a", func(c *LeaderElectionConfig) {
			c.Callbacks.OnNewLeader = func(identity string) {
				// A slow listener delays nothing.
				time.Sleep(time.Duration(30-calls.Add(1)) * time.Minute)
				notified = append(notified, identity)
			}
		}).runs()
		for i := range 20 {
			want = append(want, fmt.Sprintf("other%d", i))
			w.leaseOf(want[i+1], 15)
			w.after(2 * time.Second)
		}
		w.after(24 * time.Hour)
		assert.Equal(t, append(want, "a"), notified)
		w.take()
	})
}

// client-go renews right after it has acquired the lease. One write is enough.
func TestDifference_TheFirstRenewalWaits(t *testing.T) {
	stories(t, func(w *world) {
		w.candidate("a").runs()
		w.after(time.Second)
		assert.Equal(t, either(w, 0, 1), w.shelf.count("update"))
		w.take()
	})
}
