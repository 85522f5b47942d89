// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"testing"
	"time"
)

// shrinkFor is how long shrink looks for a shorter script.
const shrinkFor = 20 * time.Second

// shrink returns the shortest script that still breaks the same invariant, and what happened in it.
func shrink(t *testing.T, s script, r report) (script, report) {
	invariant := r.violations[0].invariant
	s = shorten(s, func(candidate script) bool {
		found := run(t, candidate)
		if len(found.violations) == 0 || found.violations[0].invariant != invariant {
			return false
		}
		r = found
		return true
	})
	return s, r
}

// shorten removes steps and processes from a script that fails, as long as it still does: half of
// the steps, then smaller parts, down to single ones.
func shorten(s script, fails func(script) bool) script {
	deadline := time.Now().Add(shrinkFor)
	accept := func(candidate script) {
		for range 2 { // goroutines may run in another order
			if time.Now().Before(deadline) && fails(candidate) {
				s = candidate
				return
			}
		}
	}
	for size := (len(s.steps) + 1) / 2; size > 0; size /= 2 {
		for at := 0; at < len(s.steps); {
			end := min(at+size, len(s.steps))
			removed := slices.Delete(slices.Clone(s.steps), at, end)
			if accept(script{s.impl, s.setups, removed}); len(s.steps) != len(removed) {
				at = end
			}
		}
	}
	for at := len(s.setups) - 1; at >= 0 && len(s.setups) > 1; at-- {
		fewer := slices.Delete(slices.Clone(s.setups), at, at+1)
		accept(script{s.impl, fewer, s.steps})
	}
	return s
}

// A script reads back as what was written, and is the same each time that it is made from a seed.
func TestScript_ReadsBack(t *testing.T) {
	for n := range uint64(20) {
		for i, s := range scripts(n) {
			again, err := parse(s.String())
			if err != nil || again.String() != s.String() || scripts(n)[i].String() != s.String() {
				t.Errorf("seed %d: %v\n%s", n, err, again)
			}
		}
	}
}
