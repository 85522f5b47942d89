// SPDX-License-Identifier: Apache-2.0

package outage

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// waits are members of a Group that wait.
type waits struct {
	t       *testing.T
	group   *Group
	members []*Member
	wakes   []<-chan time.Time
	leaves  []func()
}

// fail lets a new member that was well fail and wait for d.
func (w *waits) fail(d, retryAfter time.Duration) *Member {
	m := &Member{Group: w.group}
	recovered(m)
	w.add(m)
	m.Failed(retryAfter)
	w.wait(len(w.members)-1, d)
	return m
}

// again lets member i fail and wait for long.
func (w *waits) again(i int) {
	w.members[i].Failed(0)
	w.wait(i, time.Hour)
}

// member adds a member that was never well.
func (w *waits) member() *Member {
	m := &Member{Group: w.group}
	w.add(m)
	return m
}

// recovered makes m a member that was answered some time ago, and has not failed since.
func recovered(m *Member) {
	m.Group.mu.Lock()
	defer m.Group.mu.Unlock()
	m.state, m.wellSince = well, time.Now().Add(-recovery)
}

func (w *waits) add(m *Member) {
	w.members = append(w.members, m)
	w.wakes = append(w.wakes, nil)
	w.leaves = append(w.leaves, func() {})
	w.t.Cleanup(func() { w.leaves[slices.Index(w.members, m)]() })
}

func (w *waits) wait(i int, d time.Duration) {
	w.leaves[i]()
	w.wakes[i], w.leaves[i] = w.members[i].Wait(d)
}

// woken sleeps for d and returns the members that were woken since the last time.
func (w *waits) woken(d time.Duration) (which []int) {
	time.Sleep(d)
	synctest.Wait()
	for i, wake := range w.wakes {
		select {
		case <-wake:
			w.leaves[i]()
			w.wakes[i] = nil
			which = append(which, i)
		default:
		}
	}
	return which
}

func bubble(t *testing.T, body func(w *waits)) {
	synctest.Test(t, func(t *testing.T) { body(&waits{t: t, group: &Group{}}) })
}

// A member that waits alone waits for its backoff or for the pace of scouts, whichever is shorter,
// but not shorter than the server wants.
func TestGroup_OneMember(t *testing.T) {
	bubble(t, func(w *waits) {
		m := w.member()
		for i := range 50 {
			if i == 25 {
				recovered(m)
			}
			m.Failed(0)
			w.wait(0, time.Second)
			assert.Empty(t, w.woken(time.Second-1))
			assert.Equal(t, []int{0}, w.woken(1))
			w.wait(0, time.Minute)
			assert.Empty(t, w.woken(minPace-1))
			assert.Equal(t, []int{0}, w.woken(maxPace-minPace+1))
			m.Failed(10 * time.Second)
			w.wait(0, time.Second)
			assert.Empty(t, w.woken(10*time.Second-1))
			assert.Equal(t, []int{0}, w.woken(1))
		}
	})
}

// A server may name any time for the next request; a minute counts.
func TestGroup_RetryAfterIsBounded(t *testing.T) {
	bubble(t, func(w *waits) {
		for range 2 {
			w.fail(time.Second, math.MaxInt64)
			assert.Empty(t, w.woken(time.Minute-1))
			assert.Len(t, w.woken(1), 1)
		}
	})
}

// A server that asks one member to wait does not stop the others, and a member that was asked is a
// scout when its time has come.
func TestGroup_RetryAfterOfOneMember(t *testing.T) {
	for asked := range 2 { // the place of the member that is asked
		bubble(t, func(w *waits) {
			for i := range 2 {
				w.fail(time.Hour, time.Duration(1-max(i-asked, asked-i))*10*time.Second)
				if i != asked {
					w.again(i) // more often than the other
				}
			}
			assert.Equal(t, []int{1 - asked}, w.woken(maxPace))
			assert.Empty(t, w.woken(10*time.Second-maxPace-1))
			assert.Equal(t, []int{asked}, w.woken(maxPace))
		})
	}
}

// A member that was asked to wait, but not beyond the turn of the next scout, may be that.
func TestGroup_RetryAfterUntilTheNextTurn(t *testing.T) {
	bubble(t, func(w *waits) {
		w.fail(time.Hour, 0)
		w.member()
		for len(w.woken(10*time.Millisecond)) == 0 { // until the scout: the next turn is later
		}
		w.again(1)
		w.members[0].Failed(minPace / 2)
		w.wait(0, time.Hour)
		assert.Equal(t, []int{0}, w.woken(maxPace))
	})
}

// A member that is stopped while it waits was no scout, nor was one that waits on its own: they do
// not delay the next one.
func TestGroup_NoScouts(t *testing.T) {
	for name, play := range map[string]func(w *waits, m *Member){
		"stopped": func(w *waits, m *Member) {
			recovered(m)
			m.Failed(0)
			_, leave := m.Wait(time.Hour)
			leave()
		},
		"refused": func(w *waits, m *Member) {
			m.Refused()
			wake, leave := m.Wait(time.Millisecond)
			<-wake
			leave()
		},
	} {
		bubble(t, func(w *waits) {
			w.fail(time.Hour, 0)
			w.again(0) // more often than the other
			m := &Member{Group: w.group}
			for began := time.Now(); len(w.woken(time.Second/2)) == 0; {
				play(w, m)
				require.LessOrEqual(t, time.Since(began), maxPace, name)
			}
		})
	}
}

// The members that wait are scouts in turn.
func TestGroup_Turns(t *testing.T) {
	bubble(t, func(w *waits) {
		const members = 5
		for range members {
			w.fail(time.Hour, 0)
		}
		var turns [members]int
		last := time.Now()
		for range 20 * members {
			var woken []int
			for len(woken) == 0 {
				woken = w.woken(10 * time.Millisecond)
			}
			require.Len(t, woken, 1)
			require.GreaterOrEqual(t, time.Since(last), minPace)
			require.LessOrEqual(t, time.Since(last), maxPace+10*time.Millisecond)
			last = time.Now()
			turns[woken[0]]++
			w.again(woken[0])
		}
		assert.Equal(t, [members]int{20, 20, 20, 20, 20}, turns)
	})
}

// Members that were never well, that are refused, or that have failed for long are the last in
// turn.
func TestGroup_SickMembersAreTheLastInTurn(t *testing.T) {
	bubble(t, func(w *waits) {
		w.member()
		w.again(0)
		long := w.fail(time.Hour, 0)
		for range 8 {
			long.Failed(0)
		}
		w.wait(1, time.Hour)
		w.fail(time.Hour, 0)
		w.fail(time.Hour, 0)
		refused := w.member()
		recovered(refused)
		refused.Refused()
		w.wait(4, time.Hour)
		var turns []int
		for len(turns) < 18 {
			for _, i := range w.woken(10 * time.Millisecond) {
				turns = append(turns, i)
				w.again(i)
			}
		}
		assert.NotContains(t, turns, 0)
		assert.NotContains(t, turns, 4)
		assert.NotContains(t, turns[:14], 1)
		assert.Contains(t, turns, 1)
	})
}

// A member that was well and is refused is the scout rather than one that was never well.
func TestGroup_RefusedBeforeNeverWell(t *testing.T) {
	bubble(t, func(w *waits) {
		w.member()
		refused := w.member()
		recovered(refused)
		w.again(0)
		for range 5 {
			refused.Refused()
			refused.Refused()
			w.wait(1, time.Hour)
			assert.Equal(t, []int{1}, w.woken(maxPace))
		}
	})
}

// An answer after a failure wakes all others within a second, and again no sooner than a scout.
func TestGroup_News(t *testing.T) {
	bubble(t, func(w *waits) {
		m := &Member{Group: w.group}
		for range 5 {
			w.fail(time.Hour, 0)
		}
		w.fail(time.Hour, 3*time.Second) // the server asked it to wait
		news := func() { m.Failed(0); m.Answered() }
		m.Answered() // not news: nothing failed before
		assert.Empty(t, w.woken(newsWindow))
		news()
		assert.Equal(t, []int{0, 1, 2, 3, 4}, w.woken(newsWindow))
		assert.Equal(t, []int{5}, w.woken(3*time.Second-2*newsWindow))
		for i := range w.members {
			w.again(i)
		}
		news()
		assert.Empty(t, w.woken(minPace-1))
		assert.Len(t, w.woken(maxPace-minPace+1), len(w.members))
	})
}

// News never prolong a wait, and the members that they wake do not all try at once: neither after
// the first news, nor after others, when the members have waited for long.
func TestGroup_NewsAreSpread(t *testing.T) {
	bubble(t, func(w *waits) {
		const members, brief = 60, newsWindow / 10
		for range members {
			w.fail(time.Hour, 0)
		}
		m := &Member{Group: w.group}
		for range 3 {
			m.Failed(0)
			m.Answered()
			early := len(w.woken(newsWindow / 3))
			assert.InDelta(t, members/3, early, members/4)
			assert.InDelta(t, members, early+len(w.woken(newsWindow)), 10)
			for i := range w.members {
				w.again(i)
			}
			for range 10 { // some are scouts meanwhile
				for _, i := range w.woken(time.Second) {
					w.again(i)
				}
			}
		}
		for i := range w.members {
			recovered(w.members[i])
			w.members[i].Failed(0)
			w.wait(i, brief)
		}
		m.Failed(0)
		m.Answered()
		assert.Len(t, w.woken(brief), members)
	})
}

// The pace of scouts is random: 2 to 3.5 s.
func TestPace(t *testing.T) {
	var thirds [3]int
	for range 3000 {
		thirds[(pace()-2*time.Second)/(500*time.Millisecond)]++
	}
	for _, n := range thirds {
		assert.InDelta(t, 1000, n, 200)
	}
}

// An answer that follows a failure is news for the others, and a success that follows a refusal.
func TestGroup_WhatIsNews(t *testing.T) {
	for name, test := range map[string]struct {
		play  func(m *Member)
		wakes bool
	}{
		"failure":          {func(m *Member) { m.Failed(0) }, false},
		"failure, answer":  {func(m *Member) { m.Failed(0); m.Answered() }, true},
		"failure, refusal": {func(m *Member) { m.Failed(0); require.True(t, m.Refused()) }, true},
		"refusals": {func(m *Member) {
			require.False(t, m.Refused())
			require.False(t, m.Refused())
		}, false},
		"refusal, answer": {func(m *Member) { m.Refused(); m.Answered() }, true},
		"answers":         {func(m *Member) { m.Answered(); m.Answered() }, false},
	} {
		bubble(t, func(w *waits) {
			w.fail(time.Hour, 0)
			test.play(&Member{Group: w.group})
			assert.Equal(t, test.wakes, len(w.woken(newsWindow)) == 1, name)
		})
	}
}

// The requests of a fleet are spread as evenly as without Groups.
func TestGroup_Fleet(t *testing.T) {
	const processes, informers = 200, 5
	plan := plan{length: 7 * time.Minute, outages: []span{{time.Minute, 4 * time.Minute}}}
	for range processes * informers {
		plan.members = append(plan.members, "healthy")
	}
	peak := func(newGroup func() *Group) (ratio float64) {
		var group *Group
		count := 0
		counts := map[time.Duration]int{}
		sum := 0
		for _, p := range play(t, plan, rand.New(rand.NewPCG(1, 1)), func() *Group {
			if count%informers == 0 {
				group = newGroup()
			}
			count++
			return group
		}) {
			for _, at := range p.requests {
				if at > time.Minute && at < 5*time.Minute { // after the first failure
					counts[at/(100*time.Millisecond)]++
					sum++
				}
			}
		}
		most := 0
		for _, n := range counts {
			most = max(most, n)
		}
		ratio = float64(most) / (float64(sum) / (4 * 60 * 10))
		t.Logf("%d requests, at most %d in 100 ms: %.1f times the mean", sum, most, ratio)
		return ratio
	}
	without := peak(func() *Group { return nil })
	with := peak(func() *Group { return &Group{} })
	assert.LessOrEqual(t, with, without)
}

// O1: whatever members do at the same time, nothing remains of waits that have ended.
func TestGroup_ConcurrentUse(t *testing.T) {
	g := &Group{}
	var running sync.WaitGroup
	for range 8 {
		running.Go(func() {
			m := Member{Group: g}
			for i := range 1000 {
				if i%3 == 0 {
					m.Refused()
				} else {
					m.Failed(0)
				}
				wake, leave := m.Wait(time.Duration(i%5) * time.Microsecond)
				if i%2 == 0 {
					<-wake
				}
				leave()
				m.Answered()
			}
		})
	}
	running.Wait()
	assert.Empty(t, g.waiting)
}
