// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	module = "example.com/informerstack"
	root   = "../../.."
)

// goFile is one parsed file of this module; its path is relative to the root and has forward
// slashes.
type goFile struct {
	path string
	text string
	ast  *ast.File
	fset *token.FileSet
}

func (f goFile) folder() string { return filepath.ToSlash(filepath.Dir(f.path)) }
func (f goFile) isTest() bool   { return strings.HasSuffix(f.path, "_test.go") }
func (f goFile) lines() int     { return strings.Count(f.text, "\n") }

// position is a place in the file itself: line directives are ignored.
func (f goFile) position(pos token.Pos) token.Position { return f.fset.PositionFor(pos, false) }

// imports lists the paths that the file imports.
func (f goFile) imports() []string {
	paths := make([]string, 0, len(f.ast.Imports))
	for _, spec := range f.ast.Imports {
		paths = append(paths, strings.Trim(spec.Path.Value, `"`))
	}
	return paths
}

var parseTree = sync.OnceValues(func() ([]goFile, error) {
	var files []goFile
	err := walk(func(path string) error {
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			return err
		}
		fset := token.NewFileSet()
		parsed, err := parser.ParseFile(fset, path, text, parser.ParseComments)
		if err != nil {
			return err
		}
		files = append(files,
			goFile{path: filepath.ToSlash(path), text: string(text), ast: parsed, fset: fset})
		return nil
	})
	return files, err
})

// walk visits every file below the root, hidden folders and build output left out, by its path
// relative to the root.
func walk(visit func(path string) error) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if rel != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "bin") {
				return fs.SkipDir
			}
			return nil
		}
		return visit(rel)
	})
}

// tree returns every Go file below the root, those of nested modules included.
func tree(t *testing.T) []goFile {
	t.Helper()
	files, err := parseTree()
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

// declared is what the Go files of one folder declare.
type declared struct {
	symbols map[string]bool // "Name", "Type.Method" or "Type.Field"
	tests   map[string]bool // Test, Example, Benchmark and Fuzz functions
}

// declarations maps a folder to what its files declare.
func declarations(files []goFile) map[string]declared {
	folders := map[string]declared{}
	for _, f := range files {
		d, ok := folders[f.folder()]
		if !ok {
			d = declared{symbols: map[string]bool{}, tests: map[string]bool{}}
			folders[f.folder()] = d
		}
		names := d.symbols
		if f.isTest() {
			names = d.tests
		}
		for _, name := range declaredNames(f.ast) {
			names[name] = true
		}
	}
	return folders
}

// declaredNames lists the top-level names of a file, methods and fields as Type.Name.
func declaredNames(file *ast.File) []string {
	var names []string
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			name := decl.Name.Name
			if decl.Recv != nil {
				name = receiver(decl) + "." + name
			}
			names = append(names, name)
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				names = append(names, specNames(spec)...)
			}
		}
	}
	return names
}

func specNames(spec ast.Spec) []string {
	var names []string
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		for _, ident := range spec.Names {
			names = append(names, ident.Name)
		}
	case *ast.TypeSpec:
		names = append(names, spec.Name.Name)
		var fields *ast.FieldList
		switch typ := spec.Type.(type) {
		case *ast.StructType:
			fields = typ.Fields
		case *ast.InterfaceType:
			fields = typ.Methods
		default:
			return names
		}
		for _, field := range fields.List {
			for _, ident := range field.Names {
				names = append(names, spec.Name.Name+"."+ident.Name)
			}
		}
	}
	return names
}

// receiver names the type a method belongs to, without pointer and type parameters.
func receiver(decl *ast.FuncDecl) string {
	expr := decl.Recv.List[0].Type
	for {
		switch e := expr.(type) {
		case *ast.StarExpr:
			expr = e.X
		case *ast.IndexExpr:
			expr = e.X
		case *ast.IndexListExpr:
			expr = e.X
		case *ast.Ident:
			return e.Name
		default:
			return ""
		}
	}
}
