// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"testing"
)

// compared returns what client-go can run of a script, for an implementation.
func compared(s script, impl string) script {
	s.impl, s.setups = impl, slices.Clone(s.setups)
	for i := range s.setups {
		s.setups[i].election, s.setups[i].pages = "none", "whole"
	}
	s.steps = slices.DeleteFunc(slices.Clone(s.steps), func(st step) bool {
		return st.kind == "badstore" || st.kind == "await"
	})
	return s
}

func TestReference(t *testing.T) {
	for n := *first; n < *first+*seeds; n++ {
		t.Run(fmt.Sprint("seed=", n), func(t *testing.T) {
			t.Parallel()
			for _, impl := range []string{comparable, clientGo} {
				r := run(t, compared(generate(n), impl))
				if len(r.violations) > 0 {
					t.Errorf("seed %d on %s: %v", n, impl, r.violations[0])
				}
			}
		})
	}
}
