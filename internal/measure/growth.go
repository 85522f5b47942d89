// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"math"
	"testing"
	"time"
)

// Growth fails if run takes more than about linear time in n. It compares n with 8n: linear growth
// makes that 8 times as long, quadratic growth 64 times. The shortest of several runs counts, and
// the limit is far from both, so that a busy machine does not decide.
func Growth(t testing.TB, n int, run func(n int)) {
	t.Helper()
	const factor, limit, attempts = 8, 24, 5
	shortest := func(n int) time.Duration {
		best := time.Duration(math.MaxInt64)
		for range attempts {
			start := time.Now()
			run(n)
			best = min(best, time.Since(start))
		}
		return best
	}
	small, large := shortest(n), shortest(factor*n)
	if large > limit*max(small, time.Microsecond) {
		t.Errorf("%d times as much took %v instead of %v: not linear", factor, large, small)
	}
}
