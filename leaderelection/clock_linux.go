// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"time"

	"golang.org/x/sys/unix"
)

// suspendedTime returns how far the clock that counts all time since boot is ahead of the monotonic
// clock, which package time uses and which stops while the machine is suspended. A pause between
// the two looks makes the result too small, so that a term that is counted from it ends too early,
// never too late.
func suspendedTime() time.Duration {
	var boot, mono unix.Timespec
	bootErr := unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot)
	monoErr := unix.ClockGettime(unix.CLOCK_MONOTONIC, &mono)
	if bootErr != nil || monoErr != nil {
		return 0
	}
	return time.Duration(boot.Nano() - mono.Nano())
}
