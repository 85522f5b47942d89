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
	var covered []string
	for kind := range contestKinds {
		covered = append(covered, "step "+kind)
	}
	comparePairs(t, generateContest, covered...).checkElections(t)
}
