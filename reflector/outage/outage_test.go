// SPDX-License-Identifier: Apache-2.0

package outage

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// waits are members of a Group that wait.
type waits struct {
	t       *testing.T
	group   *Group
	members []*Member
	wakes   []<-chan time.Time
}

// fail lets a new member fail and wait for d.
func (w *waits) fail(d, retryAfter time.Duration) *Member {
	m := &Member{Group: w.group}
	w.members = append(w.members, m)
	w.wakes = append(w.wakes, nil)
	m.Failed(retryAfter)
	w.wait(len(w.members)-1, d)
	return m
}

func (w *waits) wait(i int, d time.Duration) {
	wake, leave := w.members[i].Wait(d)
	w.wakes[i] = wake
	w.t.Cleanup(leave)
}

// woken sleeps for d and returns the members that were woken since the last time.
func (w *waits) woken(d time.Duration) (which []int) {
	time.Sleep(d)
	synctest.Wait()
	for i, wake := range w.wakes {
		if len(wake) == 1 {
			<-wake
			which = append(which, i)
		}
	}
	return which
}

func bubble(t *testing.T, body func(w *waits)) {
	synctest.Test(t, func(t *testing.T) { body(&waits{t: t, group: &Group{}}) })
}

// A member that waits alone waits as long as without a Group, but not shorter than the server
// wants.
func TestGroup_OneMember(t *testing.T) {
	bubble(t, func(w *waits) {
		m := w.fail(time.Minute, 0)
		for _, d := range []time.Duration{time.Minute, time.Second, time.Hour} {
			assert.Empty(t, w.woken(d-1))
			assert.Equal(t, []int{0}, w.woken(1))
			w.wait(0, time.Second)
			assert.Equal(t, []int{0}, w.woken(time.Second))
			m.Failed(10 * time.Second)
			w.wait(0, time.Second)
			assert.Empty(t, w.woken(10*time.Second-1))
			assert.Equal(t, []int{0}, w.woken(1))
			if d == time.Minute {
				w.wait(0, time.Second)
			} else {
				w.wait(0, time.Hour)
			}
		}
	})
}

// Members that wait try in turn: within a second at the beginning, every 20 s later.
func TestGroup_Turns(t *testing.T) {
	bubble(t, func(w *waits) {
		for range 5 {
			w.fail(time.Minute, 0)
		}
		assert.Empty(t, w.woken(200*time.Millisecond-1))
		var turns []time.Duration
		began, last := time.Now(), time.Now()
		for time.Since(began) < 2*time.Minute {
			for _, i := range w.woken(100 * time.Millisecond) {
				turns = append(turns, time.Since(last))
				last = time.Now()
				w.wait(i, time.Minute)
			}
		}
		assert.LessOrEqual(t, turns[1], 300*time.Millisecond)
		for _, turn := range turns[len(turns)-10:] {
			assert.InDelta(t, 4*time.Second, turn, float64(200*time.Millisecond))
		}
		assert.InDelta(t, 30, len(turns), 8, "in two minutes")
	})
}

// The member with the shortest rest of its own wait is the next in turn.
func TestGroup_ShortestRestFirst(t *testing.T) {
	bubble(t, func(w *waits) {
		w.fail(50*time.Second, 0)
		w.fail(40*time.Second, 0)
		w.fail(time.Second, 5*time.Second) // the server wants 5 s
		w.fail(30*time.Second, 0)
		var order []int
		for len(order) < 4 {
			order = append(order, w.woken(10*time.Millisecond)...)
		}
		assert.Equal(t, []int{3, 1, 0, 2}, order)
	})
}

// An answer brings all others their turn soon, twice until the member's watch was well.
func TestMember_Answered(t *testing.T) {
	bubble(t, func(w *waits) {
		for range 10 {
			w.fail(time.Minute, 0)
		}
		var well Member
		well.Group = w.group
		woken := func() int { return len(w.woken(time.Second)) }
		for range 10 {
			for _, i := range w.woken(20 * time.Second) {
				w.wait(i, time.Minute)
			}
		}
		first := w.members[0]
		for range 3 {
			well.Answered() // it has not failed
			assert.Less(t, woken(), 2)
		}
		first.Answered()
		assert.Greater(t, woken(), 4)
	})
	began := func(g *Group) time.Time {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.began
	}
	answers := func(m *Member) (count int) {
		for range 5 {
			before := began(m.Group)
			time.Sleep(time.Second)
			if m.Answered(); began(m.Group).After(before) {
				count++
			}
		}
		return count
	}
	bubble(t, func(w *waits) {
		m := w.fail(time.Hour, 0)
		assert.Equal(t, 2, answers(m))
		m.Failed(0)
		assert.Zero(t, answers(m))
		m.Recovered()
		assert.Zero(t, answers(m))
		m.Failed(0)
		assert.Equal(t, 2, answers(m))
	})
}

// A member waits in the Group only after a failure, and without a Group never.
func TestMember_Wait(t *testing.T) {
	m := Member{Group: &Group{}}
	wake, leave := m.Wait(time.Minute)
	assert.Nil(t, wake)
	leave()
	m.Failed(0)
	wake, leave = m.Wait(time.Minute)
	assert.NotNil(t, wake)
	leave()
	m.Recovered()
	wake, leave = m.Wait(time.Minute)
	assert.Nil(t, wake)
	leave()

	var alone Member
	alone.Failed(0)
	wake, leave = alone.Wait(time.Minute)
	alone.Answered()
	assert.Nil(t, wake)
	leave()
}

// After a long outage all of n members have their answers within 20 s / n, and four seconds for the
// turns of the others and those after a 410.
func TestGroup_Bound(t *testing.T) {
	for members, bound := range map[int]time.Duration{
		2: 14 * time.Second, 5: 8 * time.Second,
	} {
		for seed := range uint64(50) {
			bubble(t, func(w *waits) {
				random := rand.New(rand.NewPCG(seed, 0))
				outage := time.Minute + time.Duration(random.Int64N(int64(time.Minute)))
				back := time.Now().Add(outage)
				answers := make([]int, members)
				step := func(i int) { // a request of a member, which fails or is answered
					switch m := w.members[i]; {
					case time.Now().Before(back):
						m.Failed(0)
					case answers[i] == 0: // a 410
						m.Failed(0)
						m.Answered()
						answers[i]++
					default:
						m.Answered()
						m.Recovered()
						answers[i]++
						return
					}
					w.wait(i, time.Minute)
				}
				for range members {
					w.fail(time.Minute, 0)
				}
				for slices.Min(answers) < 2 {
					for _, i := range w.woken(10 * time.Millisecond) {
						step(i)
					}
				}
				assert.Less(t, time.Since(back), bound, "%d members, seed %d", members, seed)
			})
		}
	}
}

// O1 to O3: whatever members do at the same time, nothing remains of waits that have ended.
func TestGroup_ConcurrentUse(t *testing.T) {
	g := &Group{}
	var running sync.WaitGroup
	for range 8 {
		running.Go(func() {
			m := Member{Group: g}
			for range 1000 {
				m.Failed(0)
				wake, leave := m.Wait(time.Minute)
				m.Answered()
				select {
				case <-wake:
				default:
				}
				leave()
				m.Recovered()
			}
		})
	}
	running.Wait()
	assert.Zero(t, g.waiting.Len())
	assert.Nil(t, g.timer)
}
