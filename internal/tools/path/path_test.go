// SPDX-License-Identifier: Apache-2.0

package path

import (
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite docs/path.md")

// docs/path.md is what a run of the instrumented packages shows.
func TestPath(t *testing.T) {
	folder := t.TempDir()
	functions, err := instrument(folder)
	require.NoError(t, err)
	all, err := traces(folder)
	require.NoError(t, err)
	trace, err := usual(all)
	require.NoError(t, err)
	require.NotEmpty(t, trace, "the instrumented packages recorded nothing")

	const file = root + "/docs/path.md"
	want := page(trace, functions)
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(want), 0o644))
	}
	got, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, want, string(got), "run make update")
}
