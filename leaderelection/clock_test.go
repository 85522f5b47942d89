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
	after := func(suspended time.Duration) clockReading {
		return clockReading{mono: start.Add(time.Second), suspended: suspended}
	}
	set := after(time.Hour)
	set.wall = start.Add(-time.Hour)
	for name, row := range map[string]struct {
		later clockReading
		want  time.Duration
	}{
		"awake":                             {after(time.Hour), time.Second},
		"suspended":                         {after(2 * time.Hour), time.Hour + time.Second},
		"a moment between two system calls": {after(time.Hour + leastSuspend - 1), time.Second},
		"the shortest suspension": {
			after(time.Hour + leastSuspend), time.Second + leastSuspend,
		},
		"the clock is no longer there": {after(0), time.Second},
		"the wall clock was set":       {set, time.Second},
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
