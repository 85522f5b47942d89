// SPDX-License-Identifier: Apache-2.0

// Package prune selects those of a package's own tests that also run on another package with the
// same exported names.
//
//	go list -> [types] -> declarations and what each mentions -> remaining tests
//
// A test inside a package that uses unexported names tests one implementation. All others test what
// every implementation must do. prune distinguishes them by types, not by names: a declaration of a
// test file is cut when it mentions an unexported name that the package's own files declare (a
// function, variable, constant, type, field or method), when it adds a method to one of the
// package's types, or when it mentions a declaration that is cut. The remaining files compile in
// the same package against its exported names alone.
//
// Read prune.go, graph.go, load.go; then go test -v ./internal/prune. Goroutines and locking: none.
package prune

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// Result lists the remaining and the cut tests of a package.
type Result struct {
	// the remaining text by file name, without the files that became empty
	Files map[string][]byte
	Kept  []Test // the test functions that remain
	Cut   []Test // those that are not
}

// Test is a function that go test runs: a test, a benchmark, a fuzz target or an example.
type Test struct {
	Name string
	File string // the name of the file that declares it
	// the reason for the cut: each unexported name that it needs, directly or through others, as
	// name or Type.name
	Needs []string
}

// Tests prunes the test files of a package, which the go command finds from folder by its import
// path. Nothing is written. Files of an external test package see only exported names, and stay
// unchanged.
func Tests(folder, path string) (Result, error) {
	p, err := load(folder, path)
	if err != nil {
		return Result{}, err
	}
	g, err := newGraph(p)
	if err != nil {
		return Result{}, fmt.Errorf("prune the tests of %s: %w", path, err)
	}
	cut := g.cut()
	result := Result{Files: p.external.texts, Kept: p.external.tests}
	for _, file := range p.tests {
		text, err := p.rest(file, cut)
		if err != nil {
			return Result{}, fmt.Errorf("prune %s of %s: %w", p.name(file), path, err)
		}
		if text != nil {
			result.Files[p.name(file)] = text
		}
		for _, decl := range file.Decls {
			if !isTest(decl) {
				continue
			}
			test := Test{Name: decl.(*ast.FuncDecl).Name.Name, File: p.name(file)}
			if needs, ok := cut[decl]; ok {
				test.Needs = slices.Sorted(maps.Keys(needs))
				result.Cut = append(result.Cut, test)
			} else {
				result.Kept = append(result.Kept, test)
			}
		}
	}
	return result, nil
}

// isTest reports whether go test runs the function that decl declares.
func isTest(decl ast.Decl) bool {
	fn, ok := decl.(*ast.FuncDecl)
	if !ok || fn.Recv != nil || fn.Name.Name == "TestMain" {
		return false
	}
	for _, kind := range []string{"Test", "Benchmark", "Fuzz", "Example"} {
		if rest, ok := strings.CutPrefix(fn.Name.Name, kind); ok {
			return rest == "" || !('a' <= rest[0] && rest[0] <= 'z')
		}
	}
	return false
}

func (p *source) name(file *ast.File) string {
	return filepath.Base(p.fset.Position(file.Package).Filename)
}

// rest returns a file's text without the declarations in cut and the imports that only they used,
// or nil if no declaration remains.
func (p *source) rest(file *ast.File, cut map[ast.Decl]set[string]) ([]byte, error) {
	var gone []ast.Node
	used := set[types.Object]{}
	left := false
	for _, decl := range file.Decls {
		if isImport(decl) {
			continue
		}
		if _, ok := cut[decl]; ok {
			gone = append(gone, decl)
			if doc := docOf(decl); doc != nil {
				gone = append(gone, doc)
			}
			continue
		}
		left = true
		maps.Copy(used, p.importsIn(decl))
	}
	if !left {
		return nil, nil
	}
	for _, spec := range file.Imports {
		blank := spec.Name != nil && (spec.Name.Name == "_" || spec.Name.Name == ".")
		if !blank && !used[p.declaredBy(spec)] {
			gone = append(gone, spec)
		}
	}
	return p.without(file, gone)
}

// without returns a file's text without some nodes.
func (p *source) without(file *ast.File, gone []ast.Node) ([]byte, error) {
	text := bytes.Clone(p.texts[p.name(file)])
	for _, node := range gone {
		from, to := p.fset.Position(node.Pos()).Offset, p.fset.Position(node.End()).Offset
		for i := from; i < to; i++ {
			if text[i] != '\n' {
				text[i] = ' '
			}
		}
	}
	return format.Source(text)
}

func isImport(decl ast.Decl) bool {
	gen, ok := decl.(*ast.GenDecl)
	return ok && gen.Tok == token.IMPORT
}

func docOf(decl ast.Decl) *ast.CommentGroup {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		return decl.Doc
	case *ast.GenDecl:
		return decl.Doc
	}
	return nil
}
