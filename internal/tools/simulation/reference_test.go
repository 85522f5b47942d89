// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// onlyOurs are the steps that client-go cannot take, for it lacks what they call, or holds a lock
// while a callback takes time.
var onlyOurs = []string{
	"badstore", "await", "slowpop", "slowtransform", "addindex", "inside", "takers", "lease",
	"crowd", "hours", "tenants",
}

// compared returns what client-go can run of a script, for an implementation.
func compared(s script, impl string) script {
	if s.impl = impl; s.isContest() {
		return s
	}
	s.setups = slices.Clone(s.setups)
	for i := range s.setups {
		s.setups[i].election, s.setups[i].group = "none", alone
		if s.setups[i].pages != "uncached" {
			s.setups[i].pages = "whole"
		}
	}
	s.steps = slices.DeleteFunc(slices.Clone(s.steps), func(st step) bool {
		return slices.Contains(onlyOurs, st.kind)
	})
	return s
}

// recoverWithin is the longest time after all faults until a store of ours must be current: the
// longest wait of a backoff with its jitter.
const recoverWithin = time.Minute

// pair is what one script does on ours and on client-go.
type pair struct{ ours, theirs report }

func runPair(t *testing.T, s script) pair {
	return pair{run(t, compared(s, comparable)), run(t, compared(s, clientGo))}
}

// differences returns what no rule explains. The first word of each is its kind.
func (p pair) differences() (all []string) {
	for _, v := range p.ours.violations {
		all = append(all, fmt.Sprintf("ours: %v", v))
	}
	for _, v := range p.theirs.violations {
		all = append(all, fmt.Sprintf("client-go: %v", v))
	}
	if len(all) > 0 {
		return all
	}
	for _, took := range p.ours.recoveries { // client-go sometimes waits twice
		if took > recoverWithin {
			all = append(all, fmt.Sprintf("recovery: a store needed %v", took))
		}
	}
	all = append(all, p.ours.contest.compare(p.theirs.contest)...)
	for i, h := range p.ours.histories {
		all = append(all, h.compare(p.theirs.histories[i])...)
	}
	return slices.DeleteFunc(all, p.theirs.isExplained)
}

// Histories and stores differ from those of client-go only as docs/differences.md describes.
func TestReference(t *testing.T) {
	comparePairs(t, generate).checkRecovery(t)
}

// comparePairs runs the script of each seed on both implementations, and compares the runs. They
// must have covered what they should.
func comparePairs(
	t *testing.T, generate func(seed uint64) script, covered ...string,
) *totals {
	all := &totals{coverage: coverage{counts: map[string]int{}}, known: map[string]int{}}
	t.Run("seeds", func(t *testing.T) {
		for n := *first; n < *first+*seeds; n++ {
			t.Run(fmt.Sprint("seed=", n), func(t *testing.T) {
				t.Parallel()
				s := compared(generate(n), ours)
				p := runPair(t, s)
				all.add(p)
				if found := p.differences(); len(found) > 0 {
					t.Errorf("seed %d: %s", n, explainPair(t, s, found[0]))
				}
			})
		}
	})
	all.check(t, covered...)
	return all
}

// explainPair shortens a script with runs that differ, and describes the difference.
func explainPair(t *testing.T, s script, difference string) string {
	kind, _, _ := strings.Cut(difference, " ")
	shown := difference
	small := shorten(s, func(candidate script) bool {
		for _, found := range runPair(t, candidate).differences() {
			if strings.HasPrefix(found, kind) {
				shown = found
				return true
			}
		}
		return false
	})
	return fmt.Sprintf("%s\n\n"+
		"The shortest script with such a difference, %d of %d steps, with \"on %s\" or \"on %s\"\n"+
		"before it for TestReplay -script:\n\n%s\nwhich ends in: %s",
		difference, len(small.steps), len(s.steps), comparable, clientGo, small, shown)
}

// Each known difference has a short script that shows it. One that depends on the order of
// goroutines need not show it each time.
func TestReference_Known(t *testing.T) {
	for _, d := range knownDifferences {
		t.Run(d.name, func(t *testing.T) {
			s := readScript(t, "testdata/reference/"+d.name+".txt")
			shown := 0
			for run := 0; run < 20 && shown == 0; run++ {
				p := runPair(t, s)
				assert.Empty(t, p.differences())
				shown = p.theirs.coverage["known "+d.name]
			}
			assert.Positive(t, shown)
		})
	}
}

// The runs of these scripts once differed in time only. The scripts stay as tests.
func TestReference_FoundBefore(t *testing.T) {
	eachScript(t, "testdata/same/*.txt", func(t *testing.T, s script) {
		assert.Empty(t, runPair(t, s).differences())
	})
}
