// SPDX-License-Identifier: Apache-2.0

package swapped_test

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// column has the first lines of one program's answers, which docs/reports/answers.md promises.
type column struct {
	cells map[string]string // by situation
	seen  map[string]bool
}

var code = regexp.MustCompile("`([^`]+)`")

// newColumn reads a column of the table. A test that passes must have seen all its cells.
func newColumn(t *testing.T, program string) *column {
	t.Helper()
	text, err := os.ReadFile("../../docs/reports/answers.md")
	require.NoError(t, err)
	c := &column{cells: map[string]string{}, seen: map[string]bool{}}
	at := -1
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "| "), " | ")
		if cells[0] == "situation" {
			for i, cell := range cells {
				if strings.TrimSpace(cell) == program {
					at = i
				}
			}
		}
		if at < 0 || at >= len(cells) {
			continue
		}
		if match := code.FindStringSubmatch(cells[at]); match != nil {
			c.cells[strings.TrimSpace(cells[0])] = match[1]
		}
	}
	require.NotEmpty(t, c.cells, program)
	some := strings.Contains(flag.Lookup("test.run").Value.String(), "/") // of the steps
	t.Cleanup(func() {
		for situation := range c.cells {
			assert.True(t, t.Failed() || some || c.seen[situation], "not seen: %s", situation)
		}
	})
	return c
}

// says waits until the first line of the answer about a key is that of the table, and the whole
// answer matches the wants, too.
func (c *column) says(d *debugger, situation, key string, wants ...string) {
	d.t.Helper()
	require.Contains(d.t, c.cells, situation)
	c.seen[situation] = true
	parts := strings.Split(c.cells[situation], "…")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	line := `^` + strings.Join(parts, `[^\n]*`) + `\n`
	first, _, _ := strings.Cut(d.answers(key, append(wants, line)...), "\n")
	d.t.Logf("%s: %s", situation, first)
}
