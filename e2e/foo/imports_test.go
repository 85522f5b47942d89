// SPDX-License-Identifier: Apache-2.0

package foo_test

import (
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// swapped maps the import lines that change to their replacements.
var swapped = map[string]string{
	`"k8s.io/client-go/tools/cache"`:    `"example.com/informerstack/compat/cache"`,
	`"k8s.io/client-go/util/workqueue"`: `"example.com/informerstack/compat/workqueue"`,
}

// The import lines are the only difference: line by line, the two controllers are the same.
func TestOnlyImportsDiffer(t *testing.T) {
	files := goFiles(t, "clientgo")
	require.Equal(t, files, goFiles(t, "compat"))
	seen := map[string]bool{}
	for _, file := range files {
		lines := read(t, filepath.Join("clientgo", file))
		for _, i := range importLines(t, filepath.Join("clientgo", file)) {
			path := strings.TrimSpace(lines[i])
			if other, ok := swapped[path]; ok {
				lines[i] = strings.Replace(lines[i], path, other, 1)
				seen[path] = true
			}
		}
		assert.Equal(t, lines, read(t, filepath.Join("compat", file)), file)
	}
	assert.Len(t, seen, len(swapped), "imports of client-go's")
}

// With compat's imports the program contains no other informers: client-go's are not even linked.
// (Its work queue is, with any client of client-go's: it reloads certificates.)
func TestCompat_LinksNoOtherInformers(t *testing.T) {
	const ours, theirs = "example.com/informerstack/compat/cache", "k8s.io/client-go/tools/cache"
	for folder, want := range map[string][2]string{"./clientgo": {theirs, ours},
		"./compat": {ours, theirs}} {
		out, err := exec.Command("go", "list", "-deps", folder).Output()
		require.NoError(t, err)
		deps := strings.Fields(string(out))
		assert.Contains(t, deps, want[0], folder)
		assert.NotContains(t, deps, want[1], folder)
	}
}

func goFiles(t *testing.T, folder string) []string {
	files, err := filepath.Glob(folder + "/*.go")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for i := range files {
		files[i] = filepath.Base(files[i])
	}
	return files
}

func read(t *testing.T, file string) []string {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return strings.Split(string(text), "\n")
}

// importLines returns the indexes of the import lines.
func importLines(t *testing.T, file string) []int {
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, nil, parser.ImportsOnly)
	require.NoError(t, err)
	var lines []int
	for _, spec := range parsed.Imports {
		lines = append(lines, fset.Position(spec.Pos()).Line-1)
	}
	return lines
}
