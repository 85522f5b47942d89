// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// rewrite changes a file of the copy of client-go, or leaves it as it is.
func (f *folder) rewrite(name string, change func(text []byte) ([]byte, error)) error {
	path := filepath.Join(f.new, copyName, filepath.FromSlash(name))
	text, err := os.ReadFile(path)
	if err == nil {
		text, err = change(text)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}

// parseFree parses a file, and rejects one that uses a name that is to be imported.
func parseFree(name string, text []byte, free ...string) (source, error) {
	file, err := parser.ParseFile(token.NewFileSet(), name, text,
		parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return source{}, err
	}
	if i := slices.IndexFunc(free, func(n string) bool { return mentions(file, n) }); i >= 0 {
		return source{}, fmt.Errorf("it has the name %s itself", free[i])
	}
	return source{text, file}, nil
}

// replaced returns the text with another one in place of a node, and with imports of this module's
// packages.
func (s source) replaced(old ast.Node, with string, packages ...string) ([]byte, error) {
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n", s.between(s.file.FileStart, s.file.Name.End()))
	for _, path := range packages {
		fmt.Fprintf(&text, "\nimport %q", stackPath+"/"+path)
	}
	fmt.Fprintf(&text, "\n%s%s%s", s.between(s.file.Name.End(), old.Pos()), with,
		s.between(old.End(), s.file.FileEnd))
	return format.Source([]byte(text.String()))
}

// mentions reports whether name is an identifier of file.
func mentions(file *ast.File, name string) (found bool) {
	ast.Inspect(file, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && id.Name == name
		return true
	})
	return found
}
