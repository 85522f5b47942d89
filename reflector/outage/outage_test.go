// SPDX-License-Identifier: Apache-2.0

package outage

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestGroup_WakesTheTwoThatHaveWaitedLongest(t *testing.T) {
	g := &Group{}
	g.recovered() // without members
	first, leaveFirst := g.wait(&Member{}, time.Minute)
	second, leaveSecond := g.wait(&Member{}, time.Minute)
	third, leaveThird := g.wait(&Member{}, time.Minute)
	fourth, leaveFourth := g.wait(&Member{}, time.Minute)
	leaveSecond()
	g.recovered()
	assert.Len(t, first, 1)
	assert.Empty(t, second)
	assert.Len(t, third, 1)
	assert.Empty(t, fourth)

	leaveFirst() // woken already
	g.recovered()
	g.recovered()
	assert.Len(t, fourth, 1)
	leaveThird()
	leaveFourth()
	assert.Zero(t, g.waiting.Len(), "O1")
	assert.Zero(t, g.total, "O1")
	assert.Len(t, fourth, 1, "O2")
	assert.Nil(t, g.timer, "O3")
}

// O4: a success does not wake a member that one has just woken, for longer each time.
func TestGroup_PausesBetweenWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &Group{}
		first, second := &Member{Group: g}, &Member{Group: g}
		wakes := func(m *Member) bool {
			wake, leave := g.wait(m, time.Minute)
			defer leave()
			g.recovered()
			return len(wake) == 1
		}
		for _, seconds := range []time.Duration{3, 6, 12, 24, 30, 30} {
			assert.True(t, wakes(first))
			time.Sleep(seconds*time.Second - 1)
			assert.False(t, wakes(first))
			time.Sleep(time.Nanosecond)
		}
		assert.True(t, wakes(second))
		time.Sleep(3 * time.Second)
		assert.True(t, wakes(second))
	})
}

// If no member tries for a while, one of them is woken; a try begins a new silence.
func TestGroup_ProbesAfterASilence(t *testing.T) {
	const d = 75 * time.Second // a twentieth, and a third more: 5 s
	synctest.Test(t, func(t *testing.T) {
		g := &Group{}
		var members []<-chan time.Time
		for range 20 {
			member, leave := g.wait(&Member{}, d)
			defer leave()
			members = append(members, member)
		}
		woken := func() (n int) {
			synctest.Wait()
			for _, member := range members {
				n += len(member)
			}
			return n
		}
		time.Sleep(5*time.Second - 1)
		assert.Zero(t, woken())
		_, leave := g.wait(&Member{}, d) // another one has tried
		time.Sleep(4 * time.Second)
		assert.Zero(t, woken())
		leave()
		time.Sleep(time.Second)
		assert.Equal(t, 1, woken())
		time.Sleep(time.Hour)
		assert.Equal(t, 20, woken())
	})
}

// A member that is alone in its outage waits as long as without a Group.
func TestGroup_OneMemberIsNotWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &Group{}
		for _, d := range []time.Duration{time.Second, time.Minute, time.Hour} {
			wake, leave := g.wait(&Member{}, d)
			time.Sleep(d)
			synctest.Wait()
			assert.Empty(t, wake)
			leave()
		}
	})
}

// A member wakes others when its outage ends, and waits for them only during one.
func TestMember_TakesPartDuringAnOutage(t *testing.T) {
	g := &Group{}
	a, b := Member{Group: g}, Member{Group: g}
	wake, leave := a.Wait(time.Minute)
	assert.Nil(t, wake)
	leave()
	a.Note(true)
	a.Note(true)
	wake, leave = a.Wait(time.Minute)
	b.Note(false)
	assert.Empty(t, wake, "b is well, and was before")
	b.Note(true)
	b.Note(false)
	assert.Len(t, wake, 1)
	leave()

	var alone Member
	alone.Note(true)
	wake, leave = alone.Wait(time.Minute)
	alone.Note(false)
	assert.Nil(t, wake)
	leave()
}

func TestGroup_ConcurrentUse(t *testing.T) {
	g := &Group{}
	var running sync.WaitGroup
	for range 8 {
		running.Go(func() {
			for range 1000 {
				recovered, leave := g.wait(&Member{}, time.Minute)
				g.recovered()
				select {
				case <-recovered:
				default:
				}
				leave()
			}
		})
	}
	running.Wait()
	assert.Zero(t, g.waiting.Len(), "O1")
	assert.Zero(t, g.total, "O1")
}
