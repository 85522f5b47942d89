// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	linesFence = regexp.MustCompile(
		"(?s)<!-- lines of ([a-z0-9/]+)\\.([A-Za-z_.]+) -->\n```go\n(.*?)```")
	anyFence   = regexp.MustCompile("(?s)(?:^|\n)[ \t]*```([a-z]*)\n(.*?)```")
	importLine = regexp.MustCompile(`(?m)^import .*\n`)
	makeTarget = regexp.MustCompile(`(?m)^([a-z0-9-]+):`)
	ownCommand = regexp.MustCompile(
		`^(?:\$ )?(make|(?:go run \./cmd/)?informerstack) ([a-z][a-z0-9-]*)(.*)$`)
	longFlag = regexp.MustCompile(`(?:^| )--([a-z][a-z-]*)`)
)

// A Go fence under a comment <!-- lines of package.Name --> has lines of that declaration in their
// order, whatever their indentation.
func TestDocs_LinesAreOfTheSource(t *testing.T) {
	files := tree(t)
	folders := declarations(files)
	for file, text := range documents(t) {
		for _, fence := range linesFence.FindAllStringSubmatch(text, -1) {
			source, ok := declaration(files, packageFolder(folders, fence[1]), fence[2])
			assert.True(t, ok, "%s quotes %s.%s, which does not exist", file, fence[1], fence[2])
			rest := trimmedLines(source)
			for _, line := range trimmedLines(fence[3]) {
				at := slices.Index(rest, line)
				if !assert.GreaterOrEqual(t, at, 0, "%s: not in %s.%s, or not there: %s", file,
					fence[1], fence[2], line) {
					break
				}
				rest = rest[at+1:]
			}
		}
	}
}

// trimmedLines are the lines of text that are not empty.
func trimmedLines(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// isGo reports whether text is Go: declarations or statements, with or without imports.
func isGo(text string) bool {
	imports := strings.Join(importLine.FindAllString(text, -1), "")
	rest := importLine.ReplaceAllString(text, "")
	for _, source := range []string{text, "package p\n" + text,
		"package p\n" + imports + "func _() {\n" + rest + "\n}"} {
		_, err := parser.ParseFile(token.NewFileSet(), "", source, parser.SkipObjectResolution)
		if err == nil {
			return true
		}
	}
	return false
}

// Go code in a fence without a language would not be compared with the source.
func TestDocs_GoFencesSayThatTheyAreGo(t *testing.T) {
	for file, text := range documents(t) {
		for _, fence := range anyFence.FindAllStringSubmatch(text, -1) {
			assert.False(t, fence[1] == "" && isGo(fence[2]),
				"%s: a fence without a language is Go:\n%s", file, fence[2])
		}
	}
}

// The commands of the docs exist: targets of make, and commands of informerstack with their flags.
// A flag is known if the source of the command has its name as a string.
func TestDocs_CommandsExist(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	targets, names := map[string]bool{}, map[string]bool{}
	for _, target := range makeTarget.FindAllStringSubmatch(string(makefile), -1) {
		targets[target[1]] = true
	}
	for _, f := range tree(t) {
		if !isCommand(f.folder()) || f.isTest() {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING {
				name, _, _ := strings.Cut(strings.Trim(text.Value, "`\""), " ")
				names[name] = true
			}
			return true
		})
	}
	found := 0
	for file, text := range documents(t) {
		for _, line := range commandsOf(text) {
			words := ownCommand.FindStringSubmatch(line)
			if words == nil {
				continue
			}
			found++
			if words[1] == "make" {
				assert.True(t, targets[words[2]], "%s: no such target: %s", file, line)
				continue
			}
			assert.True(t, names[words[2]], "%s: no such command: %s", file, line)
			own, _, _ := strings.Cut(words[3], " -- ")
			own, _, _ = strings.Cut(own, " #")
			for _, flag := range longFlag.FindAllStringSubmatch(own, -1) {
				assert.True(t, names[flag[1]], "%s: no flag --%s: %s", file, flag[1], line)
			}
		}
	}
	assert.Greater(t, found, 50)
}

// commandsOf returns the lines in fences that are for a shell or have no language, and the code in
// back quotes.
func commandsOf(text string) []string {
	var lines []string
	for _, fence := range anyFence.FindAllStringSubmatch(text, -1) {
		if fence[1] == "sh" || fence[1] == "" {
			lines = append(lines, trimmedLines(fence[2])...)
		}
	}
	for _, code := range inlineCode.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		lines = append(lines, code[1])
	}
	return lines
}
