// SPDX-License-Identifier: Apache-2.0

package outage

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
		"outage":  func(m, _ *Member) { m.Failed(0) },
	} {
		bubble(t, func(w *waits) {
			m, other := &Member{Group: w.group}, &Member{Group: w.group}
			other.Answered() // before the first failure: it raises no doubt
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
			assert.Equal(t, map[bool]int{false: maxDoubts, true: 20}[name == "outage"], early, name)
			recovered(m)
			fail(m, other)
			w.wait(0, time.Minute)
			assert.Len(t, w.woken(maxPace), 1, name)
		})
	}
}

// A member has recovered when it has not failed for some time after an answer, however many answers
// followed that. Then its failures count from the beginning.
func TestMember_Recovery(t *testing.T) {
	for name, test := range map[string]struct {
		answers []time.Duration // the times between them
		want    bool
	}{
		"none":              {nil, false},
		"just before":       {[]time.Duration{recovery - 1}, false},
		"just then":         {[]time.Duration{recovery}, true},
		"with more answers": {[]time.Duration{recovery / 2, recovery / 4, recovery / 4}, true},
	} {
		for _, refused := range []bool{false, true} {
			bubble(t, func(w *waits) {
				m, other := &Member{Group: w.group}, &Member{Group: w.group}
				recovered(m)
				for range 3 {
					other.Answered()
					m.Failed(0)
				}
				w.add(m)
				w.wait(0, time.Minute)
				other.Failed(0)
				other.Answered()
				require.Equal(t, []int{0}, w.woken(newsWindow))
				before := *m
				require.True(t, before.woken)
				if refused {
					m.Refused()
					before.failures, before.doubts = before.failures+1, before.doubts+1
				}
				for _, d := range test.answers {
					m.Answered()
					time.Sleep(d)
				}
				m.Failed(0)
				failures, doubts := before.failures+1, before.doubts+1
				if test.want {
					failures, doubts = 1, 0
				}
				assert.Equal(t, failures, m.failures, name)
				assert.Equal(t, doubts, m.doubts, name)
				assert.Equal(t, !test.want, m.woken, name)
			})
		}
	}
}

// A member that was never answered has not recovered, however long it has not failed.
func TestMember_NeverAnswered(t *testing.T) {
	bubble(t, func(w *waits) {
		m := &Member{Group: w.group}
		for range 2 {
			time.Sleep(time.Hour)
			m.Failed(0)
			assert.False(t, m.wasWell)
		}
		m.Answered()
		time.Sleep(recovery)
		m.Failed(0)
		assert.True(t, m.wasWell)

		first := &Member{Group: w.group}
		first.Answered()
		time.Sleep(recovery)
		first.Failed(0)
		assert.True(t, first.wasWell)
	})
}

// A member waits in the Group only after a failure, and without a Group never.
func TestMember_Wait(t *testing.T) {
	bubble(t, func(w *waits) {
		for _, group := range []*Group{nil, w.group} {
			m := Member{Group: group}
			for _, fail := range []func(){
				func() {}, func() { m.Failed(0) },
				func() { require.False(t, m.Refused() && group == nil) },
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
