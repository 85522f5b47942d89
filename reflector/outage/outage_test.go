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
	g.Recovered() // without members
	first, leaveFirst := g.Wait()
	second, leaveSecond := g.Wait()
	third, leaveThird := g.Wait()
	fourth, leaveFourth := g.Wait()
	leaveSecond()
	g.Recovered()
	assert.Len(t, first, 1)
	assert.Empty(t, second)
	assert.Len(t, third, 1)
	assert.Empty(t, fourth)

	leaveFirst() // woken already
	g.Recovered()
	g.Recovered()
	assert.Len(t, fourth, 1)
	leaveThird()
	leaveFourth()
	assert.Zero(t, g.waiting.Len(), "O1")
	assert.Len(t, fourth, 1, "O2")
}

// If no member tries for a while, one of them is woken; a try begins a new silence.
func TestGroup_ProbesAfterASilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &Group{}
		var members []<-chan time.Time
		for range 20 {
			member, leave := g.Wait()
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
		time.Sleep(silencePerMember/20 - 1)
		assert.Zero(t, woken())
		_, leave := g.Wait() // another one has tried
		time.Sleep(silencePerMember/21 - 1)
		assert.Zero(t, woken())
		leave()
		time.Sleep(1)
		assert.Equal(t, 1, woken())
		time.Sleep(time.Hour)
		assert.Equal(t, 20, woken())
	})
}

func TestGroup_NilNeverWakes(t *testing.T) {
	var g *Group
	recovered, leave := g.Wait()
	g.Recovered()
	assert.Nil(t, recovered)
	leave()
}

func TestGroup_ConcurrentUse(t *testing.T) {
	g := &Group{}
	var running sync.WaitGroup
	for range 8 {
		running.Go(func() {
			for range 1000 {
				recovered, leave := g.Wait()
				g.Recovered()
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
}
