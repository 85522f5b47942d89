// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"testing"
	"time"
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
	recoveries := map[string][]time.Duration{}
	requests := map[string]int{}
	counts := map[string]int{}
	for n := *first; n < *first+*seeds; n++ {
		ran := map[string]report{}
		for _, impl := range []string{comparable, clientGo} {
			s := compared(generate(n), impl)
			r := run(t, s)
			if len(r.violations) > 0 {
				t.Error(explain(t, n, s, r))
			}
			ran[impl] = r
			requests[impl] += r.requests
			recoveries[impl] = append(recoveries[impl], r.recoveries...)
			for what, n := range r.coverage {
				counts[what+" "+impl] += n
			}
		}
		if len(ran[comparable].violations)+len(ran[clientGo].violations) > 0 {
			continue
		}
		for i, h := range ran[comparable].histories {
			for _, d := range compareHistories(h, ran[clientGo].histories[i]) {
				t.Errorf("seed %d: %s", n, d)
			}
		}
		fmt.Println(n, ran[comparable].requests, ran[clientGo].requests)
	}
	for impl, all := range recoveries {
		slices.Sort(all)
		t.Log(impl, requests[impl], len(all), all[len(all)/2], all[len(all)*9/10], all[len(all)-1])
	}
	for what, n := range counts {
		t.Log(n, what)
	}
}
