// SPDX-License-Identifier: Apache-2.0

package leaderelection

import "time"

// clockReading is one look at a machine's clocks. None of them need agree with another machine's.
type clockReading struct {
	// mono counts evenly, also while the process is stopped, but not while the machine is
	// suspended.
	mono time.Time
	// suspended is the time that the machine has been suspended since it was started.
	suspended time.Duration
	// wall is the time of day, which people and time servers set. It is only written into the
	// lease's record.
	wall time.Time
}

// leastSuspend is the shortest difference of the two clocks that counts as a suspension of the
// machine. A smaller one is the time between two system calls.
const leastSuspend = 100 * time.Millisecond

// since returns how much time has passed since an earlier reading, time of suspension included.
func (r clockReading) since(earlier clockReading) time.Duration {
	passed := r.mono.Sub(earlier.mono)
	if suspended := r.suspended - earlier.suspended; suspended >= leastSuspend {
		passed += suspended
	}
	return passed
}

// readClocks reads the machine's clocks, mono last, so that a pause between the two shows in mono.
func readClocks() clockReading {
	suspended := suspendedTime()
	now := time.Now()
	return clockReading{mono: now, suspended: suspended, wall: now.Round(0)}
}
