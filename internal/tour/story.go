// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"example.com/informerstack/internal/narrate"
)

// isStory matches the names of stories and examples.
var isStory = regexp.MustCompile("^(TestStory_|Example)")

// story is a test or example with its description.
type story struct {
	piece, synopsis string
	name            string
	file            string // relative to the root of the module
	line            int
	shows           string   // the comment above it, or its name in words
	output          []string // of an example
}

// matches reports whether a name of the command line selects the story.
func (s story) matches(name string) bool {
	return s.piece == name || !slices.Contains(pieces, name) &&
		strings.Contains(strings.ToLower(s.name), strings.ToLower(name))
}

// readAll finds all stories in teaching order.
func readAll() ([]story, error) {
	var all []story
	for _, piece := range pieces {
		stories, err := read(piece)
		if err != nil {
			return nil, err
		}
		all = append(all, stories...)
	}
	return all, nil
}

// read finds the stories of a piece: first its examples, then story_test.go, then other files.
func read(piece string) ([]story, error) {
	paths, err := filepath.Glob(filepath.Join(piece, "*.go"))
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(paths, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	examples, err := narrate.Examples(piece)
	if err != nil {
		return nil, err
	}
	outputs := map[string][]string{}
	for _, e := range examples {
		outputs[e.Name] = strings.Split(strings.TrimRight(e.Output, "\n"), "\n")
	}
	var stories []story
	synopsis := ""
	for _, path := range paths {
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		if !strings.HasSuffix(path, "_test.go") {
			if file.Doc != nil {
				synopsis = new(doc.Package).Synopsis(file.Doc.Text())
			}
			continue
		}
		for _, decl := range file.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || !isStory.MatchString(fn.Name.Name) {
				continue
			}
			output, runs := outputs[fn.Name.Name]
			if strings.HasPrefix(fn.Name.Name, "Example") && !runs {
				continue // an example without output is compiled, but not run
			}
			stories = append(stories, story{
				piece: piece, synopsis: synopsis, name: fn.Name.Name,
				file: filepath.ToSlash(path), line: files.Position(fn.Pos()).Line,
				shows: comment(fn), output: output,
			})
		}
	}
	if len(stories) == 0 {
		return nil, fmt.Errorf("no stories in %s: run this from the root of the module", piece)
	}
	return stories, nil
}

// rank orders the files of a piece: the package comment is read first.
func rank(path string) int {
	switch {
	case !strings.HasSuffix(path, "_test.go"):
		return 0
	case filepath.Base(path) == "example_test.go":
		return 1
	case filepath.Base(path) == "story_test.go":
		return 2
	}
	return 3
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
