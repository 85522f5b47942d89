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

// Run runs the tests of a package. If -v and -run selected tests, it then prints the output of the
// examples, which go test compares but does not show, and the comments of the other tests. It
// returns the exit code, for os.Exit:
//
//	func TestMain(m *testing.M) { os.Exit(narrate.Run(m)) }
func Run(m *testing.M) int {
	code := m.Run()
	selected := flag.Lookup("test.run").Value.String()
	if code != 0 || !testing.Verbose() || selected == "" {
		return code
	}
	if err := printSelected(os.Stdout, selected, "."); err != nil {
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
	files, err := testFiles(folder)
	if err != nil {
		return nil, err
	}
	var examples []Example
	for _, e := range doc.Examples(files...) {
		if e.Output != "" {
			examples = append(examples, Example{"Example" + e.Name, e.Output})
		}
	}
	return examples, nil
}

func testFiles(folder string) ([]*ast.File, error) {
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
	return files, nil
}

// maxComments limits the comments: more tests than these were not selected for reading.
const maxComments = 10

// printSelected prints what the tests and examples of a folder show whose names match the pattern
// of -run.
func printSelected(w io.Writer, pattern, folder string) error {
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
		if selected.MatchString(e.Name) {
			printText(w, e.Name+" printed:", e.Output)
		}
	}
	tests, err := commentedTests(folder, selected)
	if err != nil || len(tests) > maxComments {
		return err
	}
	for _, test := range tests {
		printText(w, test.Name.Name+" shows:", test.Doc.Text())
	}
	return nil
}

// commentedTests returns the selected tests that have a comment.
func commentedTests(folder string, selected *regexp.Regexp) ([]*ast.FuncDecl, error) {
	files, err := testFiles(folder)
	var tests []*ast.FuncDecl
	for _, file := range files {
		for _, decl := range file.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if ok && fn.Recv == nil && fn.Doc != nil && fn.Name.Name != "TestMain" &&
				strings.HasPrefix(fn.Name.Name, "Test") && selected.MatchString(fn.Name.Name) {
				tests = append(tests, fn)
			}
		}
	}
	return tests, err
}

// Text prints a text of several lines under a title, if -v is set.
func Text(t testing.TB, title, text string) {
	if testing.Verbose() {
		printText(t.Output(), title, text)
	}
}

func printText(w io.Writer, title, text string) {
	fmt.Fprintln(w, title)
	for line := range strings.Lines(text) {
		fmt.Fprintln(w, strings.TrimRight("    "+line, " \n"))
	}
}
