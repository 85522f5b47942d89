// SPDX-License-Identifier: Apache-2.0

// Package transcript replays scripts. The output of a script is recorded below it.
//
// A file is a list of sections with blank lines between them:
//
//	# ns/a is deleted and re-created while the consumer sleeps: one Pop, three deltas.
//	added ns/a 1
//	deleted ns/a 3
//	added ns/a 4
//	pop
//	----
//	ns/a: added@1 deleted@3 added@4
//
// Lines that start with # are narration, the lines above ---- are commands, and those below it are
// their output. If client-go's output differs, the section ends with a second block, under "----
// client-go".
//
// go test -update rewrites the output.
package transcript

import (
	"flag"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the recorded output of transcripts")

// Ours is the variant with its output recorded under "----". The output of any other variant is
// recorded under "---- VARIANT" if it differs.
const Ours = "ours"

const divider = "----"

// Command is one line of a script, split at blanks.
type Command struct {
	Name string
	Args []string
	Line string // the whole line, for messages
}

// Arg returns argument i, or "" if the line has fewer arguments.
func (c Command) Arg(i int) string {
	if i < len(c.Args) {
		return c.Args[i]
	}
	return ""
}

// File is one transcript.
type File struct {
	Name     string // the base name, without .txt
	path     string
	sections []section
}

type section struct {
	head   []string // narration and commands, as written
	output map[string][]string
}

// Glob reads the files that match pattern, which is relative to the package's folder. No match
// fails the test.
func Glob(t testing.TB, pattern string) []*File {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.NotEmpty(t, paths, "no transcript matches %s", pattern)
	files := make([]*File, 0, len(paths))
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		name := strings.TrimSuffix(filepath.Base(path), ".txt")
		files = append(files, &File{Name: name, path: path, sections: parse(string(text))})
	}
	return files
}

// Play runs every command of the file in order and compares the output of each section with the one
// recorded for variant. exec returns the output of a command: "" or lines. With -v it prints the
// sections that have an output of variant.
func (f *File) Play(t *testing.T, variant string, exec func(Command) string) {
	t.Helper()
	for i := range f.sections {
		s := &f.sections[i]
		var got []string
		for _, cmd := range s.commands() {
			if out := strings.TrimRight(exec(cmd), "\n"); out != "" {
				got = append(got, strings.Split(out, "\n")...)
			}
		}
		if *update {
			s.record(variant, got)
			continue
		}
		if _, differs := s.output[variant]; differs && testing.Verbose() {
			shown := section{head: s.head, output: map[string][]string{Ours: got}}
			_, _ = io.WriteString(t.Output(), format([]section{shown})+"\n")
		}
		require.Equal(t, strings.Join(s.want(variant), "\n"), strings.Join(got, "\n"),
			"%s, after:\n%s", f.path, strings.Join(s.head, "\n"))
	}
	if *update {
		require.NoError(t, os.WriteFile(f.path, []byte(format(f.sections)), 0o644))
	}
}

func (s *section) commands() []Command {
	var cmds []Command
	for _, line := range s.head {
		if words := strings.Fields(line); len(words) > 0 && !strings.HasPrefix(line, "#") {
			cmds = append(cmds, Command{Name: words[0], Args: words[1:], Line: line})
		}
	}
	return cmds
}

func (s *section) want(variant string) []string {
	if out, ok := s.output[variant]; ok {
		return out
	}
	return s.output[Ours]
}

func (s *section) record(variant string, got []string) {
	if variant != Ours && slices.Equal(got, s.output[Ours]) {
		delete(s.output, variant)
		return
	}
	s.output[variant] = got
}

func parse(text string) []section {
	var sections []section
	for _, paragraph := range strings.Split(text, "\n\n") {
		paragraph = strings.Trim(paragraph, "\n")
		if paragraph == "" {
			continue
		}
		s := section{output: map[string][]string{}}
		variant := ""
		for _, line := range strings.Split(paragraph, "\n") {
			if rest, ok := strings.CutPrefix(line, divider); ok {
				if variant = strings.TrimSpace(rest); variant == "" {
					variant = Ours
				}
				s.output[variant] = nil
				continue
			}
			if variant == "" {
				s.head = append(s.head, line)
			} else {
				s.output[variant] = append(s.output[variant], line)
			}
		}
		sections = append(sections, s)
	}
	return sections
}

func format(sections []section) string {
	var b strings.Builder
	for i, s := range sections {
		if i > 0 {
			b.WriteString("\n")
		}
		writeLines(&b, s.head)
		if len(s.commands()) == 0 {
			continue // narration only
		}
		b.WriteString(divider + "\n")
		writeLines(&b, s.output[Ours])
		for _, variant := range slices.Sorted(maps.Keys(s.output)) {
			if variant != Ours {
				b.WriteString(divider + " " + variant + "\n")
				writeLines(&b, s.output[variant])
			}
		}
	}
	return b.String()
}

func writeLines(b *strings.Builder, lines []string) {
	for _, line := range lines {
		b.WriteString(line + "\n")
	}
}
