// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"go/ast"
	"go/token"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	maxColumns = 100
	tabColumns = 4
)

// wideFolders still have longer lines. The list only shrinks: a folder without such a line must
// leave it.
var wideFolders = []string{}

// A line fits 100 columns, so that two files, or a file and a chapter, can be read side by side.
func TestLines_Fit100Columns(t *testing.T) {
	excused := newExceptions(wideFolders)
	for _, f := range tree(t) {
		if strings.Contains(f.path, "testdata/") {
			continue
		}
		unbreakable := f.unbreakableLines()
		for i, line := range strings.Split(f.text, "\n") {
			if n := columns(line); n > maxColumns && !unbreakable[i+1] &&
				!excused.covers(f.folder()) {
				t.Errorf("%s:%d: %d columns, more than %d", f.path, i+1, n, maxColumns)
			}
		}
	}
	excused.reportUnused(t, "wideFolders")
}

// columns counts the runes of a line, a tab as four.
func columns(line string) int {
	return utf8.RuneCountInString(line) + (tabColumns-1)*strings.Count(line, "\t")
}

// unbreakableLines are those that only another text would make shorter: a raw string literal
// reaches beyond the limit, or the whole line is a comment of one word, such as a URL.
func (f goFile) unbreakableLines() map[int]bool {
	unbreakable := map[int]bool{}
	lines := strings.Split(f.text, "\n")
	ast.Inspect(f.ast, func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING || lit.Value[0] != '`' {
			return true
		}
		first, last := f.position(lit.Pos()).Line, f.position(lit.End())
		for line := first; line < last.Line; line++ {
			unbreakable[line] = true
		}
		if columns(lines[last.Line-1][:last.Column-1]) > maxColumns {
			unbreakable[last.Line] = true
		}
		return true
	})
	for i, line := range lines {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "// "); ok &&
			!strings.Contains(text, " ") {
			unbreakable[i+1] = true
		}
	}
	return unbreakable
}

// exceptions are the folders and documents that a test does not hold to its rule yet.
type exceptions struct {
	listed []string
	used   map[string]bool
}

func newExceptions(listed []string) exceptions {
	return exceptions{listed: listed, used: map[string]bool{}}
}

// covers reports whether a violation at path is excused, and remembers that it was.
func (e exceptions) covers(path string) bool {
	for _, listed := range e.listed {
		if listed == path {
			e.used[path] = true
			return true
		}
	}
	return false
}

// reportUnused fails for an exception that excuses nothing.
func (e exceptions) reportUnused(t *testing.T, list string) {
	t.Helper()
	for _, listed := range e.listed {
		if !e.used[listed] {
			t.Errorf("%s follows the rule now: remove it from %s", listed, list)
		}
	}
}
