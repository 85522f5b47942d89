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
	"slices"
	"strings"

	"example.com/informerstack/internal/tools/path/record"
)

const (
	module = "example.com/informerstack"
	root   = "../../.."

	usesClientGo = "internal/tools/path/record/clientgo_test.go"
)

// listed is what go list reports of a package.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// folderOf is the folder of a package of this module; other packages keep their import path.
func folderOf(importPath string) string { return strings.TrimPrefix(importPath, module+"/") }

// clientGo are the packages of client-go that are counted for comparison. The go command does not
// replace files of other modules, so that they are copied.
var clientGo = []string{
	"k8s.io/client-go/tools/cache", "k8s.io/client-go/tools/cache/synctrack",
	"k8s.io/client-go/util/workqueue",
}

// instrument writes the instrumented source of the core and of client-go, and the overlay.json that
// names it, to a folder. It returns the functions.
//
// The core is what package informer and package controller consist of: themselves and the packages
// of this module that they import.
func instrument(folder string) (map[string]function, error) {
	packages, err := list(append([]string{"./informer", "./controller"}, clientGo...)...)
	if err != nil {
		return nil, err
	}
	exports := map[string]string{}
	fset := token.NewFileSet()
	config := types.Config{Importer: importer.ForCompiler(fset, "gc",
		func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })}
	in := &instrumenter{fset: fset, functions: map[string]function{}, copied: clientGo}
	overlay := map[string]string{}
	replace := func(file, name string, text []byte) error {
		overlay[file] = filepath.Join(folder, strings.ReplaceAll(name, "/", "-"))
		return os.WriteFile(overlay[file], text, 0o600)
	}
	for _, p := range packages { // imported ones first
		exports[p.ImportPath] = p.Export
		isCopied := slices.Contains(clientGo, p.ImportPath)
		if !isCopied && !strings.HasPrefix(p.ImportPath, module+"/") {
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
			if isCopied {
				from = filepath.Join(copies, p.ImportPath, name)
			}
			if err := replace(from, folderOf(p.ImportPath)+"/"+name, text); err != nil {
				return nil, err
			}
		}
	}
	in.edits = nil
	file, err := parser.ParseFile(fset, filepath.Join(root, usesClientGo), nil, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(root, usesClientGo))
	if err != nil {
		return nil, err
	}
	if err := replace(usesClientGo, usesClientGo, in.edited(file, text)); err != nil {
		return nil, err
	}
	text, err = json.Marshal(map[string]any{"Replace": overlay})
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

// traces runs the story of package record with the instrumented source in folder. It returns, for
// each scenario, the trace that occurs most often: a change that meets the garbage collector or a
// busy machine may go another way.
func traces(folder string) (map[string]record.Change, error) {
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
	var all map[string][]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	usual := map[string]record.Change{}
	for scenario, changes := range all {
		count := map[string]int{}
		var best string
		for _, change := range changes {
			if count[string(change)]++; count[string(change)] > count[best] {
				best = string(change)
			}
		}
		var change record.Change
		if err := json.Unmarshal([]byte(best), &change); err != nil {
			return nil, err
		}
		usual[scenario] = change
	}
	return usual, nil
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
