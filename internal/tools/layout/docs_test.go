// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"flag"
	"fmt"
	"go/ast"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	inlineCode = regexp.MustCompile("`([^`\n]+)`")
	reference  = regexp.MustCompile(
		`^([a-z]+(?:/[a-z]+)*)\.([A-Z]\w*(?:\.[A-Z]\w*)?)(?:\[[^\]]*\])?(?:\(\))?$`)
	testName   = regexp.MustCompile(`\b(?:Test|Example|Benchmark|Fuzz)[A-Z]?\w*\b`)
	link       = regexp.MustCompile(`\]\(([^)#\s]+)(?:#[^)]*)?\)`)
	symbolLink = regexp.MustCompile("\\[`([^`\n]+)`\\]\\(([^)\\s]+\\.go)\\)")
	goFence    = regexp.MustCompile("(?s)<!-- ([a-z0-9/]+)\\.([A-Za-z_.]+) -->\n```go\n(.*?)```")
	anyGoFence = regexp.MustCompile("(?m)^[ \\t]*(?:```|~~~)[ \\t]*[gG]o")
	fenced     = regexp.MustCompile("(?s)```.*?```")
	command    = regexp.MustCompile(`^go (?:-C (\S+) )?test .*?((?: \./?[a-z/]*)+)$`)
)

// documents are the Markdown files by path relative to the root.
func documents(t *testing.T) map[string]string {
	t.Helper()
	docs := map[string]string{}
	require.NoError(t, walk(func(p string) error {
		if strings.HasSuffix(p, ".md") {
			text, err := os.ReadFile(filepath.Join(root, p))
			docs[filepath.ToSlash(p)] = string(text)
			return err
		}
		return nil
	}))
	require.NotEmpty(t, docs)
	return docs
}

// Every `package.Symbol` and every test name in the docs exists.
func TestDocs_PointAtCodeThatExists(t *testing.T) {
	folders := declarations(tree(t))
	tests := map[string]bool{}
	for _, d := range folders {
		for name := range d.tests {
			tests[name] = true
		}
	}
	for file, text := range documents(t) {
		for _, code := range inlineCode.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""),
			-1) {
			if ref := reference.FindStringSubmatch(code[1]); ref != nil {
				if d, ours := folders[packageFolder(folders, ref[1])]; ours {
					assert.True(t, d.symbols[ref[2]] || d.tests[ref[2]], "%s: `%s` does not exist",
						file, code[1])
					continue
				}
			}
			for _, name := range testName.FindAllString(code[1], -1) {
				if !strings.ContainsAny(code[1], "/ ") || strings.HasPrefix(code[1], "go test") {
					assert.True(t, tests[name] || isTestPattern(name, tests),
						"%s: `%s` names no test of this module", file, code[1])
				}
			}
		}
	}
}

// packageFolder is the folder of the package that the docs call name. Packages of compat, of e2e
// and of the commands may have names of other packages: the docs call them by their whole path.
func packageFolder(folders map[string]declared, name string) string {
	for folder := range folders {
		if path.Base(folder) == name && !strings.HasPrefix(folder, "compat/") &&
			!strings.HasPrefix(folder, "e2e/") && !isCommand(folder) {
			return folder
		}
	}
	return name
}

// isCommand reports whether a folder has code of a program's commands, not of the laboratory.
func isCommand(folder string) bool {
	return strings.HasPrefix(folder+"/", "realserver/cmd/") ||
		strings.HasPrefix(folder+"/", "cmd/informerstack/") && folder != "cmd/informerstack/lab"
}

// isTestPattern accepts the beginning of a test's name, as "go test -run" does.
func isTestPattern(prefix string, tests map[string]bool) bool {
	for name := range tests {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// A command in the docs that runs tests by name names a folder that has them.
func TestDocs_CommandsNameTheRightFolder(t *testing.T) {
	folders := declarations(tree(t))
	for file, text := range documents(t) {
		for _, code := range inlineCode.FindAllStringSubmatch(text, -1) {
			words := command.FindStringSubmatch(code[1])
			if words == nil {
				continue
			}
			tests := map[string]bool{}
			for _, folder := range strings.Fields(words[2]) {
				maps.Copy(tests, folders[path.Join(words[1], folder)].tests)
			}
			for _, name := range testName.FindAllString(code[1], -1) {
				assert.True(t, isTestPattern(name, tests),
					"%s: `%s`: no %s there", file, code[1], name)
			}
		}
	}
}

func TestDocs_LinksLeadSomewhere(t *testing.T) {
	for file, text := range documents(t) {
		for _, target := range link.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
			if strings.Contains(target[1], "://") {
				continue
			}
			_, err := os.Stat(filepath.Join(root, path.Dir(file), target[1]))
			assert.NoError(t, err, "%s links to %s", file, target[1])
		}
	}
}

// A link with the text `package.Symbol` leads to the file that declares the symbol.
func TestDocs_SymbolsLeadToTheirFiles(t *testing.T) {
	declares := map[string]bool{}
	for _, f := range tree(t) {
		for _, name := range declaredNames(f.ast) {
			declares[filepath.ToSlash(f.path)+" "+name] = true
		}
	}
	for file, text := range documents(t) {
		for _, found := range symbolLink.FindAllStringSubmatch(text, -1) {
			if ref := reference.FindStringSubmatch(found[1]); ref != nil {
				target := path.Join(path.Dir(file), found[2])
				assert.True(t, declares[target+" "+ref[2]], "%s: `%s` is not in %s", file, found[1],
					target)
			}
		}
	}
}

// A link to a heading of a document names one that exists, by GitHub's rules: lower case, hyphens
// for spaces, no punctuation.
func TestDocs_AnchorsExist(t *testing.T) {
	docs := documents(t)
	anchors := map[string]bool{}
	for file, text := range docs {
		for _, b := range blocksOf(text) {
			if title, ok := strings.CutPrefix(b.text, b.kind+" "); ok {
				title = notInAnchors.ReplaceAllString(strings.ToLower(title), "")
				anchors[file+"#"+strings.ReplaceAll(title, " ", "-")] = true
			}
		}
	}
	for file, text := range docs {
		for _, target := range anchorLink.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""),
			-1) {
			page := file
			if target[1] != "" {
				page = path.Join(path.Dir(file), target[1])
			}
			if _, ok := docs[page]; ok {
				assert.True(t, anchors[page+"#"+target[2]], "%s: %s has no heading #%s", file, page,
					target[2])
			}
		}
	}
}

var (
	anchorLink   = regexp.MustCompile(`\]\(([^)#\s]*)#([^)]*)\)`)
	notInAnchors = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

var update = flag.Bool("update", false, "copy the quoted declarations into the docs")

// A Go fence under a comment <!-- package.Name --> equals that declaration, byte for byte. With
// -update the fence is replaced by it.
func TestDocs_QuoteTheSource(t *testing.T) {
	files := tree(t)
	folders := declarations(files)
	for file, text := range documents(t) {
		updated := goFence.ReplaceAllStringFunc(text, func(quoted string) string {
			fence := goFence.FindStringSubmatch(quoted)
			folder := packageFolder(folders, fence[1])
			want, ok := declaration(files, folder, fence[2])
			if !assert.True(t, ok, "%s quotes %s.%s, which does not exist", file, fence[1],
				fence[2]) {
				return quoted
			}
			if !*update {
				assert.Equal(t, want+"\n", fence[3], "%s quotes %s.%s", file, fence[1], fence[2])
			}
			return fmt.Sprintf("<!-- %s.%s -->\n```go\n%s\n```", fence[1], fence[2], want)
		})
		if *update && updated != text {
			require.NoError(t, os.WriteFile(filepath.Join(root, file), []byte(updated), 0o644))
		}
	}
}

// Each Go fence is a quote, so it compiles. A quoted Example runs, and its output is compared,
// unless it is for a program in a cluster.
func TestDocs_GoFencesAreQuotes(t *testing.T) {
	for file, text := range documents(t) {
		quotes := goFence.FindAllStringSubmatch(text, -1)
		lines := linesFence.FindAllString(text, -1)
		assert.Equal(t, len(anyGoFence.FindAllString(text, -1)), len(quotes)+len(lines),
			"%s: a Go fence has no comment <!-- package.Name --> in the line before", file)
		for _, quote := range quotes {
			if strings.HasPrefix(quote[2], "Example") &&
				!strings.Contains(quote[3], "InClusterConfig") {
				assert.Contains(t, quote[3], "// Output:", "%s: %s does not run", file, quote[2])
			}
		}
	}
}

// declaration finds the named declaration of a folder as the source has it.
func declaration(files []goFile, folder, name string) (string, bool) {
	for _, f := range files {
		if f.folder() != folder {
			continue
		}
		for _, decl := range f.ast.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok {
				full := fn.Name.Name
				if fn.Recv != nil {
					full = receiver(fn) + "." + full
				}
				if full == name {
					return sourceText(f, fn), true
				}
			}
			if gen, ok := decl.(*ast.GenDecl); ok && len(gen.Specs) == 1 &&
				len(specNames(gen.Specs[0])) > 0 &&
				specNames(gen.Specs[0])[0] == name {
				return sourceText(f, gen), true
			}
		}
	}
	return "", false
}

// sourceText is the declaration as the file has it, without its doc comment.
func sourceText(f goFile, decl ast.Decl) string {
	return f.text[f.fset.Position(decl.Pos()).Offset:f.fset.Position(decl.End()).Offset]
}
