// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestClockReading_Since(t *testing.T) {
	start := time.Now()
	earlier := clockReading{mono: start, suspended: time.Hour, wall: start.Round(0)}
	for name, row := range map[string]struct {
		later clockReading
		want  time.Duration
	}{
		"awake": {
			clockReading{mono: start.Add(time.Second), suspended: time.Hour}, time.Second,
		},
		"suspended": {
			clockReading{
				mono: start.Add(time.Second), suspended: 2 * time.Hour,
			}, time.Hour + time.Second,
		},
		"a moment between two system calls": {
			clockReading{
				mono: start.Add(time.Second), suspended: time.Hour + leastSuspend - 1,
			}, time.Second,
		},
		"the shortest suspension": {
			clockReading{
				mono: start.Add(time.Second), suspended: time.Hour + leastSuspend,
			}, time.Second + leastSuspend,
		},
		"the clock is no longer there": {
			clockReading{mono: start.Add(time.Second)}, time.Second,
		},
		"the wall clock was set": {
			clockReading{
				mono: start.Add(time.Second), suspended: time.Hour, wall: start.Add(-time.Hour),
			},
			time.Second,
		},
	} {
		assert.Equal(t, row.want, row.later.since(earlier), name)
	}
}

// The machine's clocks in a bubble: time that passes there is no suspend.
func TestReadClocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := readClocks()
		assert.GreaterOrEqual(t, before.suspended, -time.Second)
		assert.WithinDuration(t, before.mono, before.wall, 0)
		time.Sleep(1000 * time.Hour)
		assert.Equal(t, 1000*time.Hour, readClocks().since(before).Round(time.Hour))
	})
}
