// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/klog/v2/ktesting"

	"example.com/informerstack/internal/tools/transcript"
	"example.com/informerstack/leaderelection/resourcelock"
)

func releasing(c *LeaderElectionConfig)   { c.ReleaseOnCancel = true }
func abandoning(c *LeaderElectionConfig)  { c.AbandonWork = true }
func always(c *LeaderElectionConfig)      { c.AlwaysStopped = true }
func rejoining(c *LeaderElectionConfig)   { c.Rejoin = true }
func coordinated(c *LeaderElectionConfig) { c.Coordinated = true }

// The first candidate makes the lease and leads; the others wait, and look again and again.
func TestStory_TheFirstLeads(t *testing.T) {
	stories(t, func(w *world) {
		a := w.candidate("a").runs()
		w.saw("0s a started")
		b := w.candidate("b").runs()
		w.after(time.Minute)
		w.saw()
		w.holder("a")
		assert.True(t, a.isLeader())
		assert.False(t, b.isLeader())
	})
}

// logs returns the texts that the candidate will have logged since the last call.
func (c *candidate) logs() (take func() []string) {
	c.logger = ktesting.NewLogger(ktesting.NopTL{}, ktesting.NewConfig(ktesting.BufferLogs(true)))
	seen := 0
	return func() (texts []string) {
		c.w.settle()
		log := c.logger.GetSink().(ktesting.Underlier).GetBuffer().Data()
		for _, entry := range log[seen:] {
			if entry.Verbosity == 0 {
				text := fmt.Sprint(entry.Message, " ", entry.ParameterKVList)
				texts = append(texts, strings.TrimSuffix(text, " []"))
			}
		}
		seen = len(log)
		return texts
	}
}

// The log shows the waiting candidate and the leader.
func TestStory_TheLogSaysWhoLeads(t *testing.T) {
	stories(t, func(w *world) {
		for _, name := range []string{"a", "b"} {
			c := w.candidate(name)
			logs := c.logs()
			c.runs()
			log := strings.Join(logs(), "\n")
			assert.Contains(t, log, "Attempting to acquire leader lease...")
			assert.Equal(t, c.isLeader(), strings.Contains(log, "Successfully acquired lease"))
		}
	})
}

// The log says which attempt failed and what that means: a failed renewal is not a lost lease.
func TestStory_TheLogSaysWhatFailed(t *testing.T) {
	story(t, func(w *world) {
		a := w.candidate("a", releasing)
		logs := a.logs()
		a.api("fails")
		a.runs()
		assert.Equal(t, []string{"Attempting to acquire leader lease... [lock ns/lease]",
			"Attempt to acquire the leader lease failed, trying again"}, logs())
		a.api("ok")
		w.after(2 * time.Second)
		assert.Equal(t,
			[]string{"Successfully acquired lease [lock ns/lease token 0.uid1]"}, logs())
		a.api("fails")
		w.after(2 * time.Second)
		assert.Equal(t, []string{
			"Attempt to renew the leader lease failed, still leading [timeLeft 10s]"}, logs())
		a.api("ok")
		w.after(2 * time.Second)
		assert.Empty(t, logs())
		a.api("hangs")
		w.after(30 * time.Second)
		assert.Equal(t, []string{
			"Failed to renew lease, stopped leading [reason leader election lost: lease was not " +
				"renewed for 12s]",
			"Failed to release lease, it will expire",
		}, logs())
		w.take()
	})
}

// A leader that has died is not known to be dead: the others wait for a whole lease after its last
// renewal, which it made at 10 s. They looked at 9.1 s and 11.1 s, so that they have seen it at
// 11.1 s.
func TestStory_ADeadLeadersLeaseExpires(t *testing.T) {
	story(t, func(w *world) {
		a := w.candidate("a").runs()
		time.Sleep(1100 * time.Millisecond)
		w.candidate("b").runs()
		w.saw("0s a started")
		w.after(9 * time.Second)
		a.api("fails") // and it dies
		a.pause()
		w.after(time.Minute)
		w.saw("26.1s b started")
		w.holder("b")
	})
}

// A leader that ends in order and releases its lease is followed at the next look.
func TestStory_AReleasedLeaseIsTakenAtOnce(t *testing.T) {
	story(t, func(w *world) {
		a := w.candidate("a", releasing).runs()
		w.after(time.Second)
		w.candidate("b").runs()
		w.after(5 * time.Second)
		a.stop()
		w.holder("")
		w.after(2 * time.Second)
		w.saw("0s a started", "6s a stopped", "7s b started")
	})
}

// New candidates that find the lease of one long gone have no idea how old it is, and wait for a
// whole lease.
func TestStory_ANewcomerWaitsForAWholeLease(t *testing.T) {
	story(t, func(w *world) {
		a := w.candidate("a").runs()
		a.stop()
		a.gone()
		w.after(time.Hour)
		w.saw("0s a started", "0s a stopped")
		w.candidate("b").runs()
		w.after(time.Minute)
		w.saw("1h0m15s b started")
	})
}

// Several see the lease expire, and all of them write; the server takes the first write, for the
// others' version is old.
func TestStory_OneOfManyWins(t *testing.T) {
	story(t, func(w *world) {
		a := w.candidate("a").runs()
		for _, name := range []string{"b", "c", "d", "e"} {
			w.candidate(name).runs()
		}
		a.stop()
		w.saw("0s a started", "0s a stopped")
		w.after(time.Minute)
		started := w.take()
		assert.Len(t, started, 1)
		assert.Equal(t, 1, w.shelf.get().LeaderTransitions)
	})
}

// A leader that cannot renew tries for RenewDeadline, and stops before others may take the lease.
func TestStory_ALeaderThatCannotRenewStops(t *testing.T) {
	story(t, func(w *world) {
		a := w.candidate("a").runs()
		w.after(time.Second)
		w.candidate("b").runs()
		a.api("fails")
		w.after(time.Minute)
		w.saw("0s a started", "12s a stopped", "16s b started")
		assert.True(t, a.returned())
	})
}

// Every candidate is notified of each new leader, the leader too, in order.
func TestStory_EverybodyHearsOfNewLeaders(t *testing.T) {
	story(t, func(w *world) {
		hears := func(name string) func(*LeaderElectionConfig) {
			return func(c *LeaderElectionConfig) {
				c.Callbacks.OnNewLeader = func(identity string) {
					w.say("%s hears of %s", name, identity)
				}
			}
		}
		a := w.candidate("a", releasing, hears("a")).runs()
		assert.ElementsMatch(t, []string{"0s a started", "0s a hears of a"}, w.take())
		w.after(time.Second)
		w.candidate("b", hears("b")).runs()
		w.saw("1s b hears of a")
		a.stop()
		w.saw("1s a stopped")
		w.after(2 * time.Second)
		assert.ElementsMatch(t, []string{"3s b started", "3s b hears of b"}, w.take())
	})
}

// A leader that has lost the lease is notified of the next one, although Run returns.
func TestStory_ALeaderHearsOfItsSuccessor(t *testing.T) {
	stories(t, func(w *world) {
		a := w.candidate("a", func(c *LeaderElectionConfig) {
			c.Callbacks.OnNewLeader = func(identity string) { w.say("a hears of %s", identity) }
		}).runs()
		w.after(time.Second)
		w.take()
		w.takes("b")
		w.after(30 * time.Second)
		assert.True(t, a.returned())
		assert.Contains(t, strings.Join(w.take(), ", "), "a hears of b")
	})
}

// The lease is held until the work has returned, however long that takes: no other candidate can
// start before.
func TestStory_TheLeaseOutlivesTheWork(t *testing.T) {
	story(t, func(w *world) {
		a := w.candidate("a", releasing).works(40 * time.Second).runs()
		w.after(500 * time.Millisecond)
		w.candidate("b").runs()
		w.after(4500 * time.Millisecond)
		a.stop()
		w.after(39 * time.Second)
		w.holder("a")
		assert.True(t, a.IsLeader())
		token, ok := FencingTokenFromContext(a.led())
		assert.True(t, ok, "the work may write until it has returned, %v", token)
		w.after(time.Second)
		w.holder("")
		assert.True(t, a.returned())
		w.after(2 * time.Second)
		w.saw("0s a started", "45s a finished its work", "45s a stopped", "46.5s b started")
	})
}

// If the lease is lost while the work winds up, OnStoppedLeading does not wait for it: it may be
// there to exit the process.
func TestStory_LostWhileTheWorkWindsUp(t *testing.T) {
	story(t, func(w *world) {
		a := w.candidate("a", releasing).works(40 * time.Second).runs()
		w.after(5 * time.Second)
		a.stop()
		a.api("fails")
		w.after(50 * time.Second)
		w.saw("0s a started", "16s a stopped", "45s a finished its work")
		assert.True(t, a.returned())
	})
}

// One process leads, loses, waits and leads again: Rejoin.
func TestStory_RejoinsInTheSameProcess(t *testing.T) {
	story(t, func(w *world) {
		a := w.candidate("a", rejoining, releasing).works(time.Second).runs()
		a.api("fails")
		w.after(500 * time.Millisecond)
		b := w.candidate("b", releasing).runs()
		w.after(20 * time.Second)
		w.saw("0s a started", "12s a stopped", "13s a finished its work", "15.5s b started")
		a.api("ok")
		w.after(10 * time.Second)
		b.stop()
		w.after(5 * time.Second)
		w.saw("30.5s b stopped", "31s a started")
		a.stop()
		w.after(time.Second)
		w.saw("36.5s a finished its work", "36.5s a stopped")
		w.holder("")
		assert.Equal(t, 2, a.Status().Terms)
	})
}

// Run may also be called again.
func TestStory_RunAgain(t *testing.T) {
	story(t, func(w *world) {
		a := w.candidate("a", releasing).runs()
		w.after(time.Second)
		a.stop()
		a.gone()
		w.after(time.Second)
		a.runs()
		w.after(time.Second)
		w.saw("0s a started", "1s a stopped", "2s a started")
	})
}

// A blip that is shorter than RenewDeadline has no effect.
func TestStory_ABlipGoesUnnoticed(t *testing.T) {
	for _, api := range []string{
		"fails", "hangs", "loses", "update:fails", "get:fails", "there=3s", "back=3s",
	} {
		t.Run(api, func(t *testing.T) {
			stories(t, func(w *world) {
				a := w.candidate("a").runs()
				w.candidate("b").runs()
				w.after(5 * time.Second)
				a.api(api)
				w.after(4 * time.Second)
				a.api("ok")
				if api == "hangs" {
					// one request takes all there is: that is what the client's timeout is for
					return
				}
				w.after(time.Minute)
				w.saw("0s a started")
			})
		})
	}
}

// A process that was paused for longer than its lease knows it as soon as it looks: nothing that
// asks first does anything after the pause, and the lease that another one has taken meanwhile is
// left alone.
func TestStory_APausedLeaderStopsAtOnce(t *testing.T) {
	story(t, func(w *world) {
		a := w.candidate("a", releasing).runs()
		w.after(time.Second)
		w.candidate("b").runs()
		w.after(4 * time.Second)
		led := a.led()
		derived, cancel := context.WithTimeout(led, 2*time.Hour)
		defer cancel()
		_, ok := FencingTokenFromContext(derived)
		assert.True(t, ok)

		a.pause()
		w.after(time.Hour)
		w.saw("0s a started", "20s b started")
		a.resume() // and before anything else gets to run:
		_, ok = FencingTokenFromContext(derived)
		assert.False(t, ok)
		assert.ErrorIs(t, led.Err(), context.Canceled)
		assert.ErrorIs(t, derived.Err(), context.Canceled)
		assert.ErrorIs(t, context.Cause(derived), ErrLost)
		assert.False(t, a.IsLeader())
		w.saw("1h0m5s a stopped")
		w.holder("b")
	})
}

// After a pause the lease is lost even if no other candidate has taken it: one may have, for a
// while.
func TestStory_APauseEndsTheTermThoughNobodyElseLed(t *testing.T) {
	story(t, func(w *world) {
		a := w.candidate("a", rejoining).runs()
		w.after(5 * time.Second)
		led := a.led()
		a.pause()
		w.after(13 * time.Second)
		a.resume()
		w.saw("0s a started", "18s a stopped", "18s a started")
		assert.ErrorIs(t, context.Cause(led), ErrLost)
		_, ok := FencingTokenFromContext(led)
		assert.False(t, ok, "the new term is not the old one's")
	})
}

// While a machine is suspended its monotonic clock stops, and so do its timers. A leader looks
// every second how long that was.
func TestStory_ASuspendedLeaderStops(t *testing.T) {
	story(t, func(w *world) {
		a := w.candidate("a").runs()
		w.after(2500 * time.Millisecond) // the last renewal is that of 2 s
		a.sleeps(11 * time.Second)
		w.after(400 * time.Millisecond)
		w.saw("0s a started")
		assert.NoError(t, a.led().Err())
		a.sleeps(4 * time.Second)
		w.after(100 * time.Millisecond)
		w.saw("3s a stopped")
		assert.EqualError(t, context.Cause(a.led()), "leader election lost: lease was not renewed "+
			"for 16s, during which the machine was suspended for 15s")
	})
}

// Suspends that add up to less than the rest of the term are harmless: each renewal starts the
// count again.
func TestStory_ShortSuspendsGoUnnoticed(t *testing.T) {
	story(t, func(w *world) {
		a := w.candidate("a").runs()
		for range 10 {
			w.after(2 * time.Second)
			a.sleeps(9 * time.Second)
		}
		w.saw("0s a started")
	})
}

// A suspend between the write that wins the lease and the answer, or between that and the work: the
// work never has a live context.
func TestStory_ASuspendBeforeTheWorkBegins(t *testing.T) {
	for name, when := range map[string]string{
		"the answer": "create", "the answer to a write without a read": "update",
		"the work": "event",
	} {
		t.Run(name, func(t *testing.T) {
			story(t, func(w *world) {
				a := w.candidate("a", func(c *LeaderElectionConfig) {
					c.Callbacks.OnStartedLeading = func(ctx context.Context) {
						select {
						case <-ctx.Done():
							w.say("a started with a context that is done: %v", ctx.Err())
						default:
							w.say("a started")
						}
					}
				})
				var once sync.Once
				a.lock.after = func(op string) {
					if op == when {
						once.Do(func() { a.sleeps(a.config.right()) })
					}
				}
				a.lock.events = func(string) { a.lock.after("event") }
				if when == "update" {
					w.leaseOf("gone", 15)
				}
				a.runs()
				if when == "event" {
					want := []string{
						"0s a started with a context that is done: context canceled",
						"0s a stopped",
					}
					assert.ElementsMatch(t, want, w.take())
					return
				}
				w.saw()
				if when == "update" {
					w.after(15 * time.Second)
					w.holder("a")
					w.saw()
				}
				w.after(2 * time.Second) // the next try: its own lease
				w.saw(fmt.Sprint(time.Since(w.start), " a started"))
			})
		})
	}
}

// A suspend between a renewal and its answer ends the term. The lease is not renewed once more.
func TestStory_ASuspendBeforeTheAnswerToARenewal(t *testing.T) {
	story(t, func(w *world) {
		a := w.candidate("a")
		a.lock.after = func(op string) {
			if op == "update" {
				a.sleeps(15 * time.Second)
			}
		}
		a.runs()
		w.after(2 * time.Second)
		w.saw("0s a started", "2s a stopped")
		assert.Equal(t, 1, w.shelf.count("update"))
		assert.Equal(t, w.start, a.Status().LastRenewal)
	})
}

// A query need not wait for the elector's next look, whichever query it is.
func TestStory_TheClocksAreLookedAtWhenAsked(t *testing.T) {
	asks := map[string]func(c *candidate) bool{
		"IsLeader":    func(c *candidate) bool { return c.IsLeader() },
		"context.Err": func(c *candidate) bool { return c.led().Err() == nil },
		"TermContext": func(c *candidate) bool { return TermContext(c.led()).Err() == nil },
		"token": func(c *candidate) bool {
			_, ok := FencingTokenFromContext(c.led())
			return ok
		},
		"Status": func(c *candidate) bool { return c.Status().Token.UID != "" },
	}
	for name, leads := range asks {
		t.Run(name, func(t *testing.T) {
			story(t, func(w *world) {
				a := w.candidate("a").runs()
				w.after(100 * time.Millisecond)
				assert.True(t, leads(a))
				a.sleeps(12 * time.Second)
				assert.False(t, leads(a))
				w.saw("0s a started", "100ms a stopped")
			})
		})
	}
}

// A wall clock that people or time servers set, forward or back, changes nothing but the record's
// times: not for a leader, and not for a candidate. client-go's way, AbandonWork, is no different.
func TestStory_TimeServersMaySetTheClock(t *testing.T) {
	for _, options := range [][]func(*LeaderElectionConfig){{}, {abandoning, always}} {
		stories(t, func(w *world) {
			a := w.candidate("a", options...).runs()
			w.after(500 * time.Millisecond)
			b := w.candidate("b", options...).runs()
			for _, d := range []time.Duration{
				5 * time.Second, 16 * time.Second, -time.Hour, 1000 * time.Hour,
			} {
				w.after(time.Second)
				a.step(d)
				w.after(10 * time.Second)
				b.step(d)
				w.after(10 * time.Second)
			}
			w.saw("0s a started")
			assert.True(t, a.isLeader())
			renewed := w.shelf.get().RenewTime.Sub(w.start)
			assert.Greater(t, renewed, 999*time.Hour, "people read a's wall clock there")
		})
	}
}

// The record's times say nothing: clocks may be decades apart.
func TestStory_ClocksMayDiffer(t *testing.T) {
	story(t, func(w *world) {
		a := w.candidate("a")
		a.step(-50 * 365 * 24 * time.Hour)
		a.runs()
		w.after(time.Second)
		b := w.candidate("b")
		b.step(100 * 365 * 24 * time.Hour)
		b.runs()
		w.after(time.Minute)
		w.saw("0s a started")
		a.stop() // b has seen the renewal of 1m0s
		w.after(time.Minute)
		w.saw("1m1s a stopped", "1m16s b started")
		a.runs()
		w.after(time.Minute)
		w.saw()
	})
}

// Slack is what a renewal has left; a server that answers slowly eats it up.
func TestStory_SlackIsMeasured(t *testing.T) {
	story(t, func(w *world) {
		m := &metric{}
		a := w.candidate("a", func(c *LeaderElectionConfig) { c.Metrics = m }).runs()
		w.after(2 * time.Second)
		assert.Equal(t, 10*time.Second, a.Status().Slack)
		a.api("back=5s")
		w.after(7 * time.Second)
		assert.Equal(t, 5*time.Second, a.Status().Slack)
		a.api("ok")
		w.after(10 * time.Second)
		assert.Equal(t, 10*time.Second, a.Status().Slack)
		assert.Equal(t, 4250*time.Millisecond, a.Status().LeastSlack)
		// A renewal counts from when it was sent, so that the next has less time.
		assert.Equal(t, []float64{10, 5, 4.25}, m.slack[:3])
		w.saw("0s a started")
	})
}

// A deleted lease is made again with the leader's copy of the record, and the leader keeps leading.
func TestStory_ARecreatedLeaseKeepsItsTerm(t *testing.T) {
	stories(t, func(w *world) {
		w.shelf.set(&resourcelock.LeaderElectionRecord{LeaderTransitions: 6})
		a := w.candidate("a").runs()
		w.after(time.Second)
		acquired := w.shelf.get().AcquireTime
		w.shelf.set(nil)
		w.after(2 * time.Second)
		w.holder("a")
		w.saw("0s a started")
		assert.Equal(t, 7, w.shelf.get().LeaderTransitions)
		assert.Equal(t, acquired, w.shelf.get().AcquireTime)
		if w.impl == transcript.Ours {
			assert.Equal(t, FencingToken{UID: "uid2", Transitions: 7}, a.Status().Token,
				"the object is another")
		}
	})
}

// If the answer to that write is lost, the leader knows the new lease as its own by the time in it:
// it leads on, or releases the lease, even if the lock keeps no fraction of a second.
func TestStory_ARecreatedLeaseIsRecognized(t *testing.T) {
	for _, precision := range []time.Duration{time.Microsecond, time.Second} {
		for _, stops := range []bool{false, true} {
			story(t, func(w *world) {
				w.shelf.precision = precision
				w.after(300*time.Millisecond + 7)
				a := w.candidate("a", releasing).runs()
				w.after(time.Second)
				w.shelf.set(nil)
				a.api("create:loses")
				w.after(time.Second)
				w.holder("a")
				if stops {
					a.stop()
					w.after(time.Second)
					w.saw("300.000007ms a started", "2.300000007s a stopped")
					w.holder("")
					return
				}
				a.api("ok")
				w.after(time.Minute)
				w.saw("300.000007ms a started")
				w.holder("a")
			})
		}
	}
}

// How long there is no leader, by how the last leader ended. Candidates look every 2 s to 4.4 s;
// here it is 2 s.
func TestStory_Timings(t *testing.T) {
	for _, row := range []struct {
		end     string // how the leader ends, one second after a renewal at 10 s
		release bool
		gap     time.Duration // from then until the next one starts
	}{
		{"stop", true, 1500 * time.Millisecond},   // at the next look, at 12.5 s
		{"stop", false, 14500 * time.Millisecond}, // at 25.5 s: a renewal was seen at 10.5 s
		{"crash", true, 14500 * time.Millisecond}, // as without release
		{"partition", true, 14500 * time.Millisecond},
		{"suspend", true, 14500 * time.Millisecond},
	} {
		t.Run(fmt.Sprintf("%s release=%v", row.end, row.release), func(t *testing.T) {
			story(t, func(w *world) {
				a := w.candidate("a")
				a.config.ReleaseOnCancel = row.release
				a.runs()
				time.Sleep(500 * time.Millisecond)
				w.candidate("b").runs()
				w.after(10500 * time.Millisecond)
				w.saw("0s a started")
				ended := time.Now()
				switch row.end {
				case "stop":
					a.stop()
				case "crash":
					a.api("fails")
					a.pause()
				case "partition":
					a.api("hangs")
				case "suspend":
					a.pause()
				}
				for w.shelf.get().HolderIdentity != "b" {
					w.after(100 * time.Millisecond)
				}
				assert.InDelta(t, row.gap.Seconds(), time.Since(ended).Seconds(), 0.2)
				w.take()
			})
		})
	}
}

// A lease that was released, or that a candidate without a coordinator has taken, is as it was
// before there was a coordinator.
func TestStory_ALeaseWithoutACoordinatorHasNoStrategy(t *testing.T) {
	for _, released := range []bool{true, false} {
		stories(t, func(w *world) {
			record := coordinatedLease
			if released {
				w.shelf.set(&record)
				a := w.candidate("a", coordinated, releasing).runs()
				w.after(5 * time.Second)
				assert.Equal(t, coordinatedLease.Strategy, w.shelf.get().Strategy)
				a.stop()
				w.holder("")
			} else {
				record.HolderIdentity, record.PreferredHolder = "", "b"
				w.shelf.set(&record)
				w.candidate("a").runs()
				w.holder("a")
			}
			assert.Empty(t, w.shelf.get().Strategy)
			assert.Empty(t, w.shelf.get().PreferredHolder)
			w.take()
		})
	}
}

// coordinatedLease is one that a coordinator has given to a.
var coordinatedLease = resourcelock.LeaderElectionRecord{
	HolderIdentity: "a", LeaseDurationSeconds: 15, Strategy: "OldestEmulationVersion",
}

// A coordinated candidate neither makes nor takes a lease, whatever its last holder.
func TestStory_ACoordinatedCandidateWaitsToBeGivenTheLease(t *testing.T) {
	stories(t, func(w *world) {
		w.candidate("a", coordinated).runs()
		w.after(time.Minute)
		w.holder("(no lease)")
		w.leaseOf("b", 15)
		w.after(time.Minute)
		w.holder("b")
		w.saw()
		record := coordinatedLease
		w.shelf.set(&record)
		w.after(5 * time.Second)
		assert.Len(t, w.take(), 1)
		assert.Equal(t, coordinatedLease.Strategy, w.shelf.get().Strategy, "it is kept")
	})
}

// A coordinated candidate that was given the lease, and could not renew it in time, does not renew
// it later.
func TestStory_ACoordinatedCandidateKeepsNoExpiredLease(t *testing.T) {
	stories(t, func(w *world) {
		w.leaseOf("a", 15)
		a := w.candidate("a", coordinated)
		a.api("update:fails")
		a.runs()
		w.after(20 * time.Second)
		a.api("ok")
		w.after(time.Minute)
		w.saw()
		assert.Zero(t, w.shelf.count("update"))
	})
}

// A coordinated leader reads the lease before each renewal: a server that compares no versions, as
// client-go's fake clientset, keeps what the coordinator has written.
func TestStory_ACoordinatedLeaderReadsBeforeItWrites(t *testing.T) {
	stories(t, func(w *world) {
		w.leaseOf("a", 15)
		a := w.candidate("a", coordinated).runs()
		w.after(5 * time.Second)
		lease := w.shelf.get()
		lease.PreferredHolder = "b"
		w.shelf.set(&lease)
		a.lock.know(w.shelf.version, w.shelf.made) // so that a write is no conflict
		w.after(15 * time.Second)
		assert.Equal(t, "b", w.shelf.get().PreferredHolder)
		assert.True(t, a.returned())
		w.take()
	})
}
