// SPDX-License-Identifier: Apache-2.0

// Package path derives docs/reports/path.md: every function that one change passes between the wire
// and the worker, in order.
//
// Read record/record.go (what a run records), instrument.go (how the source is rewritten),
// source.go (the run) and page.go (the page); then go test -v ./internal/tools/path. The rewritten
// source exists only in a temporary folder, as an overlay of the go command.
package path

import (
	"bytes"
	"encoding/json"
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
	"strings"

	"example.com/informerstack/internal/tools/path/record"
)

const (
	module = "example.com/informerstack"
	root   = "../../.."
)

// listed is what go list reports of a package.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// folderOf is the folder of a package of this module; other packages keep their import path.
func folderOf(importPath string) string { return strings.TrimPrefix(importPath, module+"/") }

// instrument writes the instrumented source of the core, and the overlay.json that names it, to a
// folder. It returns the functions of the core.
//
// The core is what package informer and package controller consist of: themselves and the packages
// of this module that they import.
func instrument(folder string) (map[string]function, error) {
	packages, err := list("./informer", "./controller")
	if err != nil {
		return nil, err
	}
	exports := map[string]string{}
	fset := token.NewFileSet()
	config := types.Config{Importer: importer.ForCompiler(fset, "gc",
		func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })}
	in := &instrumenter{fset: fset, functions: map[string]function{}}
	overlay := map[string]string{}
	for _, p := range packages { // imported ones first
		exports[p.ImportPath] = p.Export
		if !strings.HasPrefix(p.ImportPath, module+"/") {
			continue
		}
		var files []*ast.File
		for _, name := range p.GoFiles {
			mode := parser.ParseComments | parser.SkipObjectResolution
			file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, mode)
			if err != nil {
				return nil, err
			}
			files = append(files, file)
		}
		in.info = &types.Info{
			Defs:       map[*ast.Ident]types.Object{},
			Selections: map[*ast.SelectorExpr]*types.Selection{},
		}
		if _, err := config.Check(p.ImportPath, fset, files, in.info); err != nil {
			return nil, err
		}
		for i, name := range p.GoFiles {
			from := filepath.Join(p.Dir, name)
			text, err := os.ReadFile(from)
			if err != nil {
				return nil, err
			}
			text = in.rewrite(folderOf(p.ImportPath), name, files[i], text)
			to := strings.ReplaceAll(folderOf(p.ImportPath)+"/"+name, "/", "-")
			overlay[from] = filepath.Join(folder, to)
			if err := os.WriteFile(overlay[from], text, 0o600); err != nil {
				return nil, err
			}
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		return nil, err
	}
	return in.functions, os.WriteFile(filepath.Join(folder, "overlay.json"), text, 0o600)
}

// list describes packages and everything that they import. The go command compiles what is not
// compiled.
func list(patterns ...string) ([]listed, error) {
	args := []string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles"}
	out, err := run(exec.Command("go", append(args, patterns...)...))
	if err != nil {
		return nil, err
	}
	var packages []listed
	for decoder := json.NewDecoder(bytes.NewReader(out)); decoder.More(); {
		var next listed
		if err := decoder.Decode(&next); err != nil {
			return nil, err
		}
		packages = append(packages, next)
	}
	return packages, nil
}

// traces runs the test of package record with the instrumented source in folder. The test repeats
// the change; traces returns one trace for each.
func traces(folder string) ([]record.Trace, error) {
	file := filepath.Join(folder, "traces.json")
	// One processor: what two goroutines do at the same time has one order.
	story := exec.Command("go", "test", "-overlay", filepath.Join(folder, "overlay.json"),
		"-count=1", "-cpu=1", "-vet=off", "-run", "^TestStory_", "./internal/tools/path/record")
	story.Env = append(os.Environ(), record.FileVariable+"="+file)
	if _, err := run(story); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var all []record.Trace
	err = json.Unmarshal(text, &all)
	return all, err
}

// usual returns the trace that occurs most often: a change that meets the garbage collector or a
// busy machine may go another way.
func usual(all []record.Trace) (record.Trace, error) {
	count := map[string]int{}
	var best string
	for _, trace := range all {
		text, err := json.Marshal(trace)
		if err != nil {
			return nil, err
		}
		if count[string(text)]++; count[string(text)] > count[best] {
			best = string(text)
		}
	}
	var trace record.Trace
	err := json.Unmarshal([]byte(best), &trace)
	return trace, err
}

// run runs a command in the module's root folder and returns its output.
func run(command *exec.Cmd) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	command.Dir, command.Stdout, command.Stderr = root, &stdout, &stderr
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("%v: %w\n%s%s", command, err, stdout.String(), stderr.String())
	}
	return stdout.Bytes(), nil
}
