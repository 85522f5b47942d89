// SPDX-License-Identifier: Apache-2.0

package suites_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// reportFile has a row for each suite:
//
//	| suite | tests that pass on realserver | tests that pass on apitest |
//
// and one for each test that fails, on "apitest", "realserver" or "both":
//
//	| suite | `test` | server | reason |
//
// If a test ends in "…", the row is for all that begin so.
const reportFile = "../../docs/reports/suites.md"

// readRows returns the cells of the rows of all tables in the report, by suite.
func readRows(t *testing.T) map[string][][]string {
	t.Helper()
	content, err := os.ReadFile(reportFile)
	require.NoError(t, err)
	rows := map[string][][]string{}
	for line := range strings.Lines(string(content)) {
		line, isRow := strings.CutPrefix(strings.TrimSpace(line), "| ")
		if !isRow {
			continue
		}
		cells := strings.Split(strings.TrimSuffix(line, " |"), " | ")
		rows[cells[0]] = append(rows[cells[0]], cells[1:])
	}
	return rows
}

// expected is what the report says about a suite.
type expected struct {
	counts   []string            // of the tests that pass, on realserver and on apitest
	failures map[string][]string // the tests that fail, by server
}

func read(t *testing.T, rows [][]string) expected {
	t.Helper()
	e := expected{failures: map[string][]string{}}
	for _, row := range rows {
		if len(row) == 2 {
			e.counts = row
			continue
		}
		require.Len(t, row, 3, "%q", row)
		for _, server := range []string{"realserver", "apitest"} {
			if row[1] == server || row[1] == "both" {
				e.failures[server] = append(e.failures[server], strings.Trim(row[0], "`"))
			}
		}
	}
	return e
}

// unlike returns the tests that failed and are not in want, and those of want that did not fail.
func unlike(want, failed []string) []string {
	var unlike []string
	for _, name := range failed {
		if !slices.ContainsFunc(want, func(w string) bool { return matches(w, name) }) {
			unlike = append(unlike, "fails: "+name)
		}
	}
	for _, w := range want {
		if !slices.ContainsFunc(failed, func(name string) bool { return matches(w, name) }) {
			unlike = append(unlike, "passes: "+w)
		}
	}
	return unlike
}

func matches(want, name string) bool {
	if prefix, more := strings.CutSuffix(want, "…"); more {
		return strings.HasPrefix(name, prefix)
	}
	return name == want
}

// A report that claims too much or too little is wrong.
func TestUnlike(t *testing.T) {
	failed := []string{"TestA/x", "TestB: a", "TestB: b"}
	assert.Empty(t, unlike([]string{"TestA/x", "TestB: …"}, failed))
	assert.Equal(t, []string{"fails: TestA/x", "passes: TestC"},
		unlike([]string{"TestB: …", "TestC"}, failed))
}
