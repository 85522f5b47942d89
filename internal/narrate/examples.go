// SPDX-License-Identifier: Apache-2.0

package narrate

import (
	"flag"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Run runs the tests of a package. If -v and -run selected examples, it then prints their output,
// which go test compares but does not show. It returns the exit code, for os.Exit:
//
//	func TestMain(m *testing.M) { os.Exit(narrate.Run(m)) }
func Run(m *testing.M) int {
	code := m.Run()
	selected := flag.Lookup("test.run").Value.String()
	if code != 0 || !testing.Verbose() || selected == "" {
		return code
	}
	if err := printExamples(os.Stdout, selected, "."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// Example is an example and the output that it was compared with.
type Example struct {
	Name   string // of its function
	Output string
}

// Examples returns the examples in the tests of a folder that have an output.
func Examples(folder string) ([]Example, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		return nil, err
	}
	var files []*ast.File
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	var examples []Example
	for _, e := range doc.Examples(files...) {
		if e.Output != "" {
			examples = append(examples, Example{"Example" + e.Name, e.Output})
		}
	}
	return examples, nil
}

// printExamples prints the output of a folder's examples whose names match the pattern of -run.
func printExamples(w io.Writer, pattern, folder string) error {
	pattern, _, _ = strings.Cut(pattern, "/")
	selected, err := regexp.Compile(pattern)
	if err != nil {
		return err
	}
	examples, err := Examples(folder)
	if err != nil {
		return err
	}
	for _, e := range examples {
		if !selected.MatchString(e.Name) {
			continue
		}
		fmt.Fprintf(w, "%s printed:\n", e.Name)
		for line := range strings.Lines(e.Output) {
			fmt.Fprintln(w, strings.TrimRight("    "+line, " \n"))
		}
	}
	return nil
}
