// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"testing"
	"time"
)

// shrinkFor is how long shrink looks for a shorter script.
const shrinkFor = 20 * time.Second

// shrink removes steps and processes from a script that failed, as long as it still breaks the same
// invariant: half of the steps, then smaller parts, down to single ones. It returns the shortest
// script, and what happened in it.
func shrink(t *testing.T, s script, r report) (script, report) {
	deadline := time.Now().Add(shrinkFor)
	invariant := r.violations[0].invariant
	accept := func(candidate script) bool {
		if time.Now().After(deadline) {
			return false
		}
		for range 2 { // goroutines may run in another order
			found := run(t, candidate)
			if len(found.violations) > 0 && found.violations[0].invariant == invariant {
				s, r = candidate, found
				return true
			}
		}
		return false
	}
	for size := (len(s.steps) + 1) / 2; size > 0; size /= 2 {
		for at := 0; at < len(s.steps); {
			end := min(at+size, len(s.steps))
			removed := slices.Delete(slices.Clone(s.steps), at, end)
			if !accept(script{s.impl, s.setups, removed}) {
				at = end
			}
		}
	}
	for at := len(s.setups) - 1; at >= 0 && len(s.setups) > 1; at-- {
		fewer := slices.Delete(slices.Clone(s.setups), at, at+1)
		accept(script{s.impl, fewer, s.steps})
	}
	return s, r
}

// A script reads back as what was written, and is the same each time that it is made from a seed.
func TestScript_ReadsBack(t *testing.T) {
	for n := range uint64(20) {
		s := generate(n)
		again, err := parse(s.String())
		if err != nil || again.String() != s.String() || generate(n).String() != s.String() {
			t.Errorf("seed %d: %v\n%s", n, err, again)
		}
	}
}
