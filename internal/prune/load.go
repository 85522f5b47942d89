// SPDX-License-Identifier: Apache-2.0

package prune

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// source is a package with its tests, parsed and type-checked as one, as the go command builds
// them.
type source struct {
	fset     *token.FileSet
	own      []*ast.File       // the package's own files
	tests    []*ast.File       // the test files that belong to the package
	texts    map[string][]byte // the text of each test file, by name
	external external
	importer types.Importer
	path     string

	pkg  *types.Package
	info types.Info
}

// external is an external test package: it sees only exported names.
type external struct {
	texts map[string][]byte
	tests []Test
}

// listed is the output of go list for a package.
type listed struct {
	ImportPath, Dir, Export            string
	GoFiles, TestGoFiles, XTestGoFiles []string
}

// load finds, parses and type-checks the package of an import path as the module in folder builds
// it.
func load(folder, path string) (*source, error) {
	list, err := goList(folder, path)
	if err != nil {
		return nil, err
	}
	p := &source{fset: token.NewFileSet(), path: path, texts: map[string][]byte{},
		external: external{texts: map[string][]byte{}}}
	p.importer = importer.ForCompiler(token.NewFileSet(), "gc",
		func(path string) (io.ReadCloser, error) {
			if list[path].Export == "" {
				return nil, fmt.Errorf("open the types of %s: not listed", path)
			}
			return os.Open(list[path].Export)
		})
	found := list[path]
	if p.own, err = p.parse(found.Dir, found.GoFiles, map[string][]byte{}); err != nil {
		return nil, err
	}
	if p.tests, err = p.parse(found.Dir, found.TestGoFiles, p.texts); err != nil {
		return nil, err
	}
	files, err := p.parse(found.Dir, found.XTestGoFiles, p.external.texts)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		for _, decl := range file.Decls {
			if isTest(decl) {
				p.external.tests = append(p.external.tests,
					Test{Name: decl.(*ast.FuncDecl).Name.Name, File: p.name(file)})
			}
		}
	}
	p.info = types.Info{
		Types:     map[ast.Expr]types.TypeAndValue{},
		Uses:      map[*ast.Ident]types.Object{},
		Defs:      map[*ast.Ident]types.Object{},
		Implicits: map[ast.Node]types.Object{},
	}
	config := types.Config{Importer: p.importer}
	p.pkg, err = config.Check(path, p.fset, append(p.own[:len(p.own):len(p.own)], p.tests...),
		&p.info)
	if err != nil {
		return nil, fmt.Errorf("type-check the tests of %s: %w", path, err)
	}
	return p, nil
}

// goList describes a package and all dependencies of it and its tests. The go command compiles them
// if necessary.
func goList(folder, path string) (map[string]listed, error) {
	var stdout, stderr bytes.Buffer
	list := exec.Command("go", "list", "-export", "-deps", "-test",
		"-json=ImportPath,Dir,Export,GoFiles,TestGoFiles,XTestGoFiles", path)
	list.Dir, list.Stdout, list.Stderr = folder, &stdout, &stderr
	if err := list.Run(); err != nil {
		return nil, fmt.Errorf("go list %s: %w: %s", path, err, stderr.String())
	}
	found := map[string]listed{}
	decoder := json.NewDecoder(&stdout)
	for {
		var next listed
		err := decoder.Decode(&next)
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, fmt.Errorf("decode go list %s: %w", path, err)
		}
		found[next.ImportPath] = next
	}
}

// parse parses files and keeps their texts.
func (p *source) parse(folder string, names []string,
	texts map[string][]byte) ([]*ast.File, error) {
	var files []*ast.File
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(p.fset, filepath.Join(folder, name), text,
			parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		texts[name] = text
		files = append(files, file)
	}
	return files, nil
}
