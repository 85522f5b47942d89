// SPDX-License-Identifier: Apache-2.0

// Tour prints the stories of the pieces in reading order: first one change with all its hops, then,
// piece by piece, every story and example with the comment above it. It runs these tests, and fails
// if one of them fails.
//
//	go run ./internal/tour [PIECE ...]
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// pieces are the packages that a change passes, in order, and leaderelection.
var pieces = []string{"trace", "reflector", "deltafifo", "store", "informer", "workqueue",
	"controller", "leaderelection"}

// storyNames matches the names of stories and examples.
const storyNames = "^(TestStory_|Example)"

var isStory = regexp.MustCompile(storyNames)

func main() {
	chosen := pieces
	if len(os.Args) > 1 {
		chosen = os.Args[1:]
	}
	for _, piece := range chosen {
		if err := show(piece); err != nil {
			fmt.Fprintf(os.Stderr, "tour: %s: %v\n", piece, err)
			os.Exit(1)
		}
	}
}

// show runs the stories of one piece and prints their output.
func show(piece string) error {
	stories, synopsis, err := read(piece)
	if err != nil {
		return err
	}
	results, err := run(piece)
	if err != nil {
		return err
	}
	fmt.Printf("\n%s: %s\n\n", piece, synopsis)
	failed := false
	for _, s := range stories {
		result := results[s.name]
		failed = failed || result.outcome != "pass"
		fmt.Printf("  %s  %s\n", mark(result.outcome),
			strings.ReplaceAll(s.shows, "\n", "\n      "))
		fmt.Printf("      go test -v -run '^%s$' ./%s\n", s.name, piece)
		for _, line := range result.logged {
			fmt.Printf("        %s\n", line)
		}
	}
	if failed {
		return errors.New("a story is not true: run it as shown")
	}
	return nil
}

func mark(outcome string) string {
	if outcome == "pass" {
		return "ok "
	}
	return "BAD"
}

// story is a test or example with its description.
type story struct {
	name  string
	shows string // the comment above it, or its name in words
}

// read finds the stories of a piece in the order of its files, and the synopsis of its package
// comment.
func read(piece string) (stories []story, synopsis string, err error) {
	paths, err := filepath.Glob(filepath.Join(piece, "*.go"))
	if err != nil {
		return nil, "", err
	}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			return nil, "", err
		}
		if !strings.HasSuffix(path, "_test.go") {
			if file.Doc != nil {
				synopsis = new(doc.Package).Synopsis(file.Doc.Text())
			}
			continue
		}
		for _, decl := range file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && isStory.MatchString(fn.Name.Name) {
				stories = append(stories, story{fn.Name.Name, comment(fn)})
			}
		}
	}
	if len(stories) == 0 {
		return nil, "", fmt.Errorf("no stories in %s: run this from the root of the module", piece)
	}
	return stories, synopsis, nil
}

func comment(fn *ast.FuncDecl) string {
	if fn.Doc != nil {
		return strings.TrimSpace(fn.Doc.Text())
	}
	if story, ok := strings.CutPrefix(fn.Name.Name, "TestStory_"); ok {
		return words(story) + "."
	}
	return "An example of " + cmp.Or(strings.TrimPrefix(fn.Name.Name, "Example"), "the package") +
		"."
}

// words splits a name at its capitals: LateHandlerGetsReplay is "Late handler gets replay".
func words(name string) string {
	var b strings.Builder
	letters := []rune(name)
	for i, r := range letters {
		beforeSmall := i+1 < len(letters) && unicode.IsLower(letters[i+1])
		if i > 0 && unicode.IsUpper(r) && (beforeSmall || unicode.IsLower(letters[i-1])) {
			b.WriteByte(' ')
			if beforeSmall {
				r = unicode.ToLower(r)
			}
		}
		b.WriteRune(r)
	}
	return b.String()
}

// result is the outcome of a test.
type result struct {
	outcome string
	logged  []string
}

// run runs the stories of a piece. A failing story is not an error.
func run(piece string) (map[string]result, error) {
	cmd := exec.Command("go", "test", "-json", "-count=1", "-run", storyNames, "./"+piece)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	results := map[string]result{}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var event struct{ Action, Test, Output string }
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			continue // not of a test
		}
		r := results[event.Test]
		switch {
		case event.Action == "output" && strings.HasPrefix(event.Output, hopMark):
			r.logged = append(r.logged,
				strings.TrimRight(strings.TrimPrefix(event.Output, hopMark), "\n"))
		case slices.Contains([]string{"pass", "fail", "skip"}, event.Action):
			r.outcome = event.Action
		}
		results[event.Test] = r
	}
	if err := cmd.Wait(); err != nil && len(results) <= 1 {
		return nil, fmt.Errorf("go test: %w", err)
	}
	return results, nil
}

// hopMark begins each line that a story prints for readers; see package trace's stories.
const hopMark = "hop: "
