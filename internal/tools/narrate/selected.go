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

// printSelected prints the narration of a folder's tests and examples that match the pattern of
// -run.
func printSelected(w io.Writer, pattern, folder string) error {
	pattern, _, _ = strings.Cut(pattern, "/")
	selected, err := regexp.Compile(pattern)
	if err != nil {
		return err
	}
	files, err := testFiles(folder)
	if err != nil {
		return err
	}
	for _, e := range doc.Examples(files...) {
		if name := "Example" + e.Name; e.Output != "" && selected.MatchString(name) {
			printText(w, name+" printed:", e.Output)
		}
	}
	if tests := commentedTests(files, selected); len(tests) <= maxComments {
		for _, test := range tests {
			printText(w, test.Name.Name+" shows:", test.Doc.Text())
		}
	}
	return nil
}

// commentedTests returns the selected tests that have a comment.
func commentedTests(files []*ast.File, selected *regexp.Regexp) (tests []*ast.FuncDecl) {
	for _, file := range files {
		for _, decl := range file.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if ok && fn.Recv == nil && fn.Doc != nil && fn.Name.Name != "TestMain" &&
				strings.HasPrefix(fn.Name.Name, "Test") && selected.MatchString(fn.Name.Name) {
				tests = append(tests, fn)
			}
		}
	}
	return tests
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
