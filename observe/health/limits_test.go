// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/informerstack/observe/journal"
)

// A text that names a bounded number of things names the first ones, in their order, and says how
// many there are beyond them.
func TestTexts_NameTheFirst(t *testing.T) {
	for n := range 3 * maxOthers {
		var names []string
		for i := range n {
			names = append(names, fmt.Sprint("name-", i))
		}
		want := strings.Join(names[:min(n, maxOthers)], ", ")
		if n > maxOthers {
			want += fmt.Sprintf(" and %d more", n-maxOthers)
		}
		require.Equal(t, want, firstOf(names, maxOthers))
	}
	for n := range 3 * maxCalls {
		answer := Answer{Time: time.Unix(100, 0), Sentence: "It is reconciled."}
		want := "It is reconciled.\n"
		if n > 0 {
			want += "  last calls of handlers:\n"
		}
		for i := range n {
			call := journal.Call{Time: time.Unix(99, 0), Handler: fmt.Sprint("handler-", i)}
			if i%2 > 0 {
				call.Added = []string{"a", "b"}
			}
			answer.Calls = append(answer.Calls, call)
			if i < maxCalls {
				want += fmt.Sprintf("    1s ago: %s; %s\n", call,
					map[bool]string{false: "no Add was seen", true: "added a, b"}[i%2 > 0])
			}
		}
		require.Equal(t, want, answer.String())
	}
}
