// SPDX-License-Identifier: Apache-2.0

//go:build unix

package measure

import (
	"syscall"
	"time"
)

// ProcessorTime is the time that this process has used the processors.
func ProcessorTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err) // a wrong argument
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
