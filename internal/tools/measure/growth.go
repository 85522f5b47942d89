// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"math"
	"runtime"
	"testing"
	"time"
)

// Growth fails if run takes more than about linear processor time in n. It compares n with 8n:
// linear growth makes that 8 times as much, quadratic growth 64 times. At least one of several
// rounds must be below a limit between both. Time that other processes take does not count.
func Growth(t testing.TB, n int, run func(n int)) {
	t.Helper()
	const factor, limit, rounds = 8, 24, 20
	took := func(n int) time.Duration {
		runtime.GC()
		start := ProcessorTime()
		run(n)
		return ProcessorTime() - start
	}
	small, large := time.Duration(0), time.Duration(math.MaxInt64)
	for range rounds {
		small, large = took(n), min(large, took(factor*n))
		if large <= limit*small {
			return
		}
	}
	t.Errorf("%d times as much took %v instead of %v: not linear", factor, large, small)
}
