// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sourceLine matches the tail of a comment line that names what a piece re-implements, and its
// continuation lines: a line that ends in a comma is not the last.
var sourceLine = regexp.MustCompile(`(?m)^//\s*Source:(?: |\n//\s*)((?:.+,\n//\s*)*.+)$`)

var continued = regexp.MustCompile(`\n//\s*`)

// TestSourceLines_ExistInClientGo reads every "Source: FILE SYMBOL[, FILE SYMBOL]" line. A file is
// relative to client-go's root.
func TestSourceLines_ExistInClientGo(t *testing.T) {
	clientGo := moduleDir(t, "k8s.io/client-go")
	found := 0
	for _, f := range tree(t) {
		for _, match := range sourceLine.FindAllStringSubmatch(f.text, -1) {
			for _, source := range strings.Split(continued.ReplaceAllString(match[1], " "), ",") {
				file, symbol, ok := strings.Cut(strings.TrimSpace(source), " ")
				if !assert.True(t, ok, "%s: Source line %q is not FILE SYMBOL", f.path, match[1]) {
					continue
				}
				found++
				assert.True(t,
					clientGoDeclares(t, filepath.Join(clientGo, file), strings.TrimSpace(symbol)),
					"%s: client-go's %s declares no %s", f.path, file, symbol)
			}
		}
	}
	assert.Greater(t, found, 20, "Source lines")
}

// Each piece names the source that it re-implements.
func TestPieces_HaveASourceLine(t *testing.T) {
	with := map[string]bool{}
	for _, f := range tree(t) {
		if sourceLine.MatchString(f.text) {
			with[f.folder()] = true
		}
	}
	for _, piece := range []string{"store", "deltafifo", "reflector", "informer", "workqueue"} {
		assert.True(t, with[piece], "%s has no Source line", piece)
	}
}

func clientGoDeclares(t *testing.T, path, symbol string) bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if !assert.NoError(t, err) {
		return false
	}
	return slices.Contains(declaredNames(file), symbol)
}

// moduleDir finds a module of this build in the module cache.
func moduleDir(t *testing.T, path string) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", path).Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(out))
}
