// SPDX-License-Identifier: Apache-2.0

// Tour runs the stories and examples of the pieces in teaching order: first one change with all its
// hops, then piece by piece. It shows each with its file and line, the comment above it and what it
// prints. On a terminal it shows one at a time; otherwise it shows all. It fails if one of them
// fails.
//
//	go run ./internal/tour [PIECE | NAME ...]
//
// A piece selects its stories, a name those that contain it: go run ./internal/tour Tombstone.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"
)

// pieces are the packages that a change passes, in order, and then those around them.
var pieces = []string{"trace", "reflector", "deltafifo", "store", "informer", "workqueue",
	"controller", "leaderelection", "apitest", "metrics", "health"}

func main() {
	t := tour{out: os.Stdout, run: runPiece}
	if term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stdout.Fd())) {
		t.in = bufio.NewScanner(os.Stdin)
	}
	if err := t.start(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "tour: %v\n", err)
		os.Exit(1)
	}
}

// tour shows stories.
type tour struct {
	in  *bufio.Scanner // the reader's commands, or nil without a terminal
	out io.Writer
	run func(piece string, stories []story) (map[string]result, error)

	stories []story
	results map[string]map[string]result // by piece and name; a piece runs when it is reached
}

// start shows the selected stories.
func (t *tour) start(names []string) error {
	all, err := readAll()
	if err != nil {
		return err
	}
	if t.stories, err = choose(all, names); err != nil {
		return err
	}
	t.results = map[string]map[string]result{}
	failed := false
	for i := 0; i < len(t.stories); {
		passed, err := t.show(i)
		if err != nil {
			return err
		}
		failed = failed || !passed
		i = t.next(i)
	}
	if failed {
		return errors.New("a story failed: run it as shown")
	}
	return nil
}

// choose returns the stories that a name selects, in teaching order, or all without names.
func choose(all []story, names []string) ([]story, error) {
	if len(names) == 0 {
		return all, nil
	}
	for _, name := range names {
		if !slices.ContainsFunc(all, func(s story) bool { return s.matches(name) }) {
			return nil, fmt.Errorf("no piece and no story matches %q; the pieces are %s", name,
				strings.Join(pieces, ", "))
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(s story) bool {
		return !slices.ContainsFunc(names, s.matches)
	}), nil
}

// show runs story i, with the others of its piece, and prints it.
func (t *tour) show(i int) (passed bool, err error) {
	s := t.stories[i]
	if t.results[s.piece] == nil {
		ofPiece := slices.DeleteFunc(slices.Clone(t.stories), func(other story) bool {
			return other.piece != s.piece
		})
		if t.results[s.piece], err = t.run(s.piece, ofPiece); err != nil {
			return false, fmt.Errorf("run %s: %w", s.piece, err)
		}
	}
	result := t.results[s.piece][s.name]
	if i == 0 || t.stories[i-1].piece != s.piece {
		fmt.Fprintf(t.out, "\n%s\n", s.synopsis)
	}
	fmt.Fprintf(t.out, "\n%d/%d %s:%d %s\n\n", i+1, len(t.stories), s.file, s.line, s.name)
	fmt.Fprintf(t.out, "    %s\n\n", strings.ReplaceAll(s.shows, "\n", "\n    "))
	for _, line := range append(result.printed, s.output...) {
		fmt.Fprintf(t.out, "    %s\n", line)
	}
	passed = result.outcome == "pass"
	mark := "ok"
	if !passed {
		mark = "FAILED"
	}
	fmt.Fprintf(t.out, "\n    %s: go test -v -run '^%s$' ./%s\n", mark, s.name, s.piece)
	return passed, nil
}

// next returns the story after i that the reader asks for.
func (t *tour) next(i int) int {
	if t.in == nil || i+1 == len(t.stories) {
		return i + 1
	}
	for {
		fmt.Fprintf(t.out, "\nEnter: %s. A name or a piece: go there. q: quit. > ",
			t.stories[i+1].name)
		if !t.in.Scan() {
			return len(t.stories)
		}
		switch name := strings.TrimSpace(t.in.Text()); name {
		case "":
			return i + 1
		case "q":
			return len(t.stories)
		default:
			for k := range t.stories {
				if at := (i + 1 + k) % len(t.stories); t.stories[at].matches(name) {
					return at
				}
			}
			fmt.Fprintf(t.out, "no story matches %q\n", name)
		}
	}
}
