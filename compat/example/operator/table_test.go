// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// codeLines counts the lines of files that are neither empty nor a comment.
func codeLines(t *testing.T, files ...string) (count int) {
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
				count++
			}
		}
	}
	return count
}

// The table of the report has the lines of the three operators, and of their tests.
func TestTable_HasTheLinesOfTheThree(t *testing.T) {
	guide, err := os.ReadFile("../../../docs/reports/operators.md")
	require.NoError(t, err)
	for _, row := range []string{
		fmt.Sprintf("| lines of the operator | %d | %d | %d |", codeLines(t, "operator.go"),
			codeLines(t, "clientgo/operator.go", "clientgo/process.go", "api/scheme.go"),
			codeLines(t, "controllerruntime/operator.go", "api/scheme.go")),
		fmt.Sprintf("%d lines of stories and %d lines of their world",
			codeLines(t, "stories_test.go"), codeLines(t, "world_test.go")),
	} {
		assert.Contains(t, strings.Join(strings.Fields(string(guide)), " "), row)
	}
}
