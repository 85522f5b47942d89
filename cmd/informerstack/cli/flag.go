// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// unknownFlag adds the next step to an error of the flags: the flag that was meant, and the help.
func unknownFlag(cmd *cobra.Command, err error) error {
	help := fmt.Sprintf("see %s --help", cmd.CommandPath())
	name, unknown := strings.CutPrefix(err.Error(), "unknown flag: --")
	if unknown {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if distance(f.Name, name) <= 2 || strings.HasPrefix(f.Name, name) {
				help = fmt.Sprintf("did you mean --%s? %s", f.Name, help)
			}
		})
	}
	return Fail(Usage, "%w (%s)", err, help)
}

// distance is the Levenshtein distance: the number of letters to add, drop or replace.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(diagonal+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
