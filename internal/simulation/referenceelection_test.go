// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"testing"
)

// compare returns the steps of a calm contest that had another outcome on client-go.
func (r contestReport) compare(theirs contestReport) (differences []string) {
	for i, outcome := range r.outcomes {
		if other := theirs.outcomes[i]; outcome != other {
			differences = append(differences, fmt.Sprintf(
				"outcome: step %d, %s; on client-go %s", i+1, outcome, other))
		}
	}
	return differences
}

// Elections differ from those of client-go only as docs/differences.md describes.
func TestReferenceElections(t *testing.T) {
	all := &totals{coverage: coverage{counts: map[string]int{}}}
	t.Run("seeds", func(t *testing.T) {
		for n := *first; n < *first+*seeds; n++ {
			t.Run(fmt.Sprint("seed=", n), func(t *testing.T) {
				t.Parallel()
				s := generateContest(n)
				p := runPair(t, s)
				all.add(p)
				all.coverage.add(p.ours.coverage)
				if found := p.differences(); len(found) > 0 {
					t.Errorf("seed %d: %s", n, explainPair(t, s, found[0]))
				}
			})
		}
	})
	all.checkElections(t)
}
