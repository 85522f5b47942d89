// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"time"

	"golang.org/x/sys/unix"
)

// suspendedTime returns how far the clock that runs during sleep is ahead of the clock of package
// time, which does not. A pause between the two looks makes the result too small, so that a
// term that is counted from it ends too early, never too late.
func suspendedTime() time.Duration {
	var always, awake unix.Timespec
	alwaysErr := unix.ClockGettime(unix.CLOCK_MONOTONIC_RAW, &always)
	awakeErr := unix.ClockGettime(unix.CLOCK_UPTIME_RAW, &awake)
	if alwaysErr != nil || awakeErr != nil {
		return 0
	}
	return time.Duration(always.Nano() - awake.Nano())
}
