// SPDX-License-Identifier: Apache-2.0

package swapped_test

import (
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	excludedPackage = regexp.MustCompile(`(?m)^## (.*)$`)
	excludedRow     = regexp.MustCompile(`(?m)^\| ([A-Z]\w*) \| (.*) \| (.*) \|$`)
	excludedHelpers = regexp.MustCompile(`(?m)^Removed with them: (.*)$`)
	majorVersion    = regexp.MustCompile(`/v\d+$`)
	quoted          = regexp.MustCompile("`([^`]+)`")
)

// exclusion is a section of excluded.md: the functions to remove from the tests of a package.
type exclusion struct {
	names map[string]bool   // tests and helpers; methods as Type.name
	tests map[string]string // the tests, and what asserts the same
}

// excluded reads excluded.md, by package.
func excluded(t *testing.T) map[string]exclusion {
	t.Helper()
	text, err := os.ReadFile("clientgo/excluded.md")
	require.NoError(t, err)
	sections := map[string]exclusion{}
	headings := excludedPackage.FindAllSubmatch(text, -1)
	for i, section := range excludedPackage.Split(string(text), -1)[1:] {
		e := exclusion{names: map[string]bool{}, tests: map[string]string{}}
		for _, row := range excludedRow.FindAllStringSubmatch(section, -1) {
			e.names[row[1]], e.tests[row[1]] = true, row[3]
		}
		for _, line := range excludedHelpers.FindAllString(section, -1) {
			for _, helper := range quoted.FindAllStringSubmatch(line, -1) {
				e.names[helper[1]] = true
			}
		}
		sections[string(headings[i][1])] = e
	}
	return sections
}

// remaining returns the test files in a folder, by name, without the functions that are excluded.
func (e exclusion) remaining(folder string) (map[string][]byte, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		return nil, err
	}
	texts, missing := map[string][]byte{}, maps.Clone(e.names)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if texts[filepath.Base(file)], err = e.without(text, missing); err != nil {
			return nil, fmt.Errorf("remove functions from %s: %w", file, err)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("excluded.md names functions that are not in the tests in %s; "+
			"delete them there: %v", folder, slices.Sorted(maps.Keys(missing)))
	}
	return texts, nil
}

// without returns the text of a test file without the functions that are excluded and the imports
// that only they use. It deletes what it finds from missing.
func (e exclusion) without(text []byte, missing map[string]bool) ([]byte, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var gone []ast.Node
	usedHere, usedThere := map[string]bool{}, map[string]bool{} // in what stays, in what goes
	for _, decl := range file.Decls {
		used := usedHere
		if fn, ok := decl.(*ast.FuncDecl); ok && e.names[nameOf(fn)] {
			delete(missing, nameOf(fn))
			used, gone = usedThere, append(gone, fn)
			if fn.Doc != nil {
				gone = append(gone, fn.Doc)
			}
		}
		ast.Inspect(decl, func(node ast.Node) bool {
			if selector, ok := node.(*ast.SelectorExpr); ok {
				used[types.ExprString(selector.X)] = true
			}
			return true
		})
	}
	for _, spec := range file.Imports {
		name := path.Base(majorVersion.ReplaceAllString(strings.Trim(spec.Path.Value, `"`), ""))
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if usedThere[name] && !usedHere[name] {
			gone = append(gone, spec)
		}
	}
	for _, node := range gone {
		part := text[fset.Position(node.Pos()).Offset:fset.Position(node.End()).Offset]
		for i := range part {
			if part[i] != '\n' {
				part[i] = ' '
			}
		}
	}
	return format.Source(text)
}

// nameOf returns the name of a function, or Type.name of a method.
func nameOf(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return fn.Name.Name
	}
	receiver, _, _ := strings.Cut(types.ExprString(fn.Recv.List[0].Type), "[")
	return strings.TrimPrefix(receiver, "*") + "." + fn.Name.Name
}

// excluded.md names functions that exist, and tests of ours that exist.
func TestClientGo_Excluded(t *testing.T) {
	for path, section := range excluded(t) {
		assert.Contains(t, clientGoSwapped, path)
		_, err := section.remaining(clientGoFolder(t, "off", path))
		assert.NoError(t, err)
		for test, assertedBy := range section.tests {
			assert.NotEmpty(t, assertedBy, test)
			for _, ref := range quoted.FindAllStringSubmatch(assertedBy, -1) {
				assert.NoError(t, findTest(ref[1]), test)
			}
		}
	}
}

// findTest looks up a test of this repository, as folder.Test or folder.Test/transcript.
func findTest(ref string) error {
	folder, name, ok := strings.Cut(ref, ".")
	if !ok {
		return fmt.Errorf("%s is no folder.Test", ref)
	}
	name, transcript, _ := strings.Cut(name, "/")
	if transcript != "" {
		transcript = filepath.Join("../../testdata", folder, transcript+".txt")
		if _, err := os.Stat(transcript); err != nil {
			return err
		}
	}
	files, err := filepath.Glob(filepath.Join("../..", folder, "*_test.go"))
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if strings.Contains(string(text), "\nfunc "+name+"(t *testing.T)") {
			return nil
		}
	}
	return fmt.Errorf("there is no test %s in %s", name, folder)
}
