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
		m := w.fail(time.Second, 0)
		for range 50 {
			assert.Empty(t, w.woken(time.Second-1))
			assert.Equal(t, []int{0}, w.woken(1))
			w.wait(0, time.Minute)
			assert.Empty(t, w.woken(minPace-1))
			assert.Equal(t, []int{0}, w.woken(maxPace-minPace+1))
			m.Failed(10 * time.Second)
			w.wait(0, time.Second)
			assert.Empty(t, w.woken(10*time.Second-1))
			assert.Equal(t, []int{0}, w.woken(1))
			m.Failed(0)
			w.wait(0, time.Second)
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
	bubble(t, func(w *waits) {
		w.fail(time.Hour, 10*time.Second)
		m := w.fail(time.Hour, 0)
		m.Failed(0) // more often than the first
		w.wait(1, time.Hour)
		assert.Equal(t, []int{1}, w.woken(maxPace))
		assert.Empty(t, w.woken(10*time.Second-maxPace-1))
		assert.Equal(t, []int{0}, w.woken(maxPace))
	})
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
			for {
				woken := w.woken(10 * time.Millisecond)
				if len(woken) == 0 {
					continue
				}
				require.Len(t, woken, 1)
				i := woken[0]
				require.GreaterOrEqual(t, time.Since(last), minPace)
				require.LessOrEqual(t, time.Since(last), maxPace+10*time.Millisecond)
				last = time.Now()
				turns[i]++
				w.members[i].Failed(0)
				w.wait(i, time.Hour)
				break
			}
		}
		assert.Equal(t, [members]int{20, 20, 20, 20, 20}, turns)
	})
}

// Members that were never well, that are refused, or that have failed for long are the last in
// turn.
func TestGroup_SickMembersAreTheLastInTurn(t *testing.T) {
	bubble(t, func(w *waits) {
		never := &Member{Group: w.group}
		w.add(never)
		never.Failed(0)
		w.wait(0, time.Hour)
		long := w.fail(time.Hour, 0)
		for range 8 {
			long.Failed(0)
		}
		w.wait(1, time.Hour)
		w.fail(time.Hour, 0)
		w.fail(time.Hour, 0)
		refused := &Member{Group: w.group}
		recovered(refused)
		w.add(refused)
		refused.Refused()
		w.wait(4, time.Hour)
		var turns []int
		for len(turns) < 18 {
			for _, i := range w.woken(10 * time.Millisecond) {
				turns = append(turns, i)
				w.members[i].Failed(0)
				w.wait(i, time.Hour)
			}
		}
		assert.NotContains(t, turns, 0)
		assert.NotContains(t, turns, 4)
		assert.NotContains(t, turns[:14], 1)
		assert.Contains(t, turns, 1)
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
		news := func() {
			m.Failed(0)
			m.Answered()
		}
		m.Answered() // not news: nothing failed before
		assert.Empty(t, w.woken(newsWindow))
		news()
		assert.Equal(t, []int{0, 1, 2, 3, 4}, w.woken(newsWindow))
		assert.Equal(t, []int{5}, w.woken(3*time.Second-2*newsWindow))
		for i := range w.members {
			w.members[i].Failed(0)
			w.wait(i, time.Hour)
		}
		news()
		assert.Empty(t, w.woken(minPace-1))
		assert.Len(t, w.woken(maxPace-minPace+1), len(w.members))
	})
}

// An answer that follows a failure is news for the others, and a success that follows a refusal.
func TestGroup_WhatIsNews(t *testing.T) {
	for name, test := range map[string]struct {
		play  func(m *Member)
		wakes bool
	}{
		"failure":          {func(m *Member) { m.Failed(0) }, false},
		"failure, answer":  {func(m *Member) { m.Failed(0); m.Answered() }, true},
		"failure, refusal": {func(m *Member) { m.Failed(0); m.Refused() }, true},
		"refusals":         {func(m *Member) { m.Refused(); m.Refused() }, false},
		"refusal, answer":  {func(m *Member) { m.Refused(); m.Answered() }, true},
		"answers":          {func(m *Member) { m.Answered(); m.Answered() }, false},
	} {
		bubble(t, func(w *waits) {
			w.fail(time.Hour, 0)
			test.play(&Member{Group: w.group})
			assert.Equal(t, test.wakes, len(w.woken(newsWindow)) == 1, name)
		})
	}
}

// A member that was never well and is refused waits on its own, whatever the others do; only the
// first news may end a wait of it.
func TestMember_RefusedForGood(t *testing.T) {
	bubble(t, func(w *waits) {
		m, other := &Member{Group: w.group}, &Member{Group: w.group}
		w.add(m)
		for i := range 5 {
			m.Refused()
			w.wait(0, time.Minute)
			other.Failed(0)
			other.Answered()
			early := w.woken(time.Minute - 1)
			if i == 0 {
				require.Equal(t, []int{0}, early)
				continue
			}
			require.Empty(t, early)
			require.Equal(t, []int{0}, w.woken(1))
		}
	})
}

// A member that was well and is refused, or that fails although others are answered, is the scout
// sixteen times. Then its trouble is its own.
func TestMember_Doubts(t *testing.T) {
	for name, fail := range map[string]func(m, other *Member){
		"refused": func(m, _ *Member) { m.Refused() },
		"fails":   func(m, other *Member) { other.Answered(); m.Failed(0) },
	} {
		bubble(t, func(w *waits) {
			m, other := &Member{Group: w.group}, &Member{Group: w.group}
			recovered(m)
			w.add(m)
			early := 0
			for range 20 {
				fail(m, other)
				w.wait(0, time.Minute)
				if len(w.woken(maxPace)) == 1 {
					early++
				} else {
					require.Len(t, w.woken(time.Minute), 1, name)
				}
			}
			assert.InDelta(t, maxDoubts, early, 1, name)
			recovered(m)
			fail(m, other)
			w.wait(0, time.Minute)
			assert.Len(t, w.woken(maxPace), 1, name)
		})
	}
}

// A member waits in the Group only after a failure, and without a Group never.
func TestMember_Wait(t *testing.T) {
	bubble(t, func(w *waits) {
		for _, group := range []*Group{nil, w.group} {
			m := Member{Group: group}
			for _, fail := range []func(){
				func() {}, func() { m.Failed(0) }, func() { m.Refused() },
			} {
				fail()
				m.Answered()
				wake, leave := m.Wait(time.Minute)
				assert.Nil(t, wake)
				leave()
				fail()
				wake, leave = m.Wait(time.Minute)
				assert.Equal(t, group == nil || m.state == well, wake == nil)
				leave()
			}
		}
		assert.Empty(t, w.group.waiting)
	})
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
