// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// phrase is a wording that a reader has to read twice.
type phrase struct {
	wordings [][]string // the words of each variant; nil for a phrase with a marker
	marker   string     // a text without it does not contain the phrase; "" without one
	pattern  *regexp.Regexp
	allowed  *regexp.Regexp // idioms that contain the phrase, or nil
	instead  string         // the plain alternative
}

// ban makes the phrase of the wordings, which are separated by bars.
func ban(wordings, instead, allowed string) phrase {
	p := phrase{instead: instead}
	var patterns []string
	for _, wording := range strings.Split(wordings, "|") {
		p.wordings = append(p.wordings, strings.Fields(wording))
		patterns = append(patterns, strings.Join(strings.Fields(wording), `\s+`))
	}
	p.pattern = regexp.MustCompile(`(?i)\b(?:` + strings.Join(patterns, "|") + `)\b`)
	if allowed != "" {
		p.allowed = regexp.MustCompile(`(?i)\b(?:` + allowed + `)\b`)
	}
	return p
}

// people are the nouns that an ordinary relative clause with "who" may follow.
const people = `(?:users?|readers?|people|authors?|operators?|person|anyone|everyone|engineers?|` +
	`developers?|maintainers?|contributors?|attackers?|administrators?|callers?)`

// banned are the wordings that occurred here and read badly. Code, text in back quotes and fences
// are not prose.
var banned = []phrase{
	ban("who|whom|whoever", "name the caller, the leader, the client, …", people+`,?\s+who`),
	ban("nobody|somebody|everybody|anybody", "no client, another process, every handler, …", ""),
	ban("tell|tells|told|telling", "report, notify, return, distinguish", ""),
	ban("stand|stands|stood|standing", "is, contains, is stored",
		`stands?[ -](?:alone|in|ins|for|by)|standing (?:for|by)|stood (?:for|in for)`),
	ban("mend|mends|mended|mending", "fix, repair, restore", ""),
	ban("go on|goes on|going on|went on|gone on", "continue, keep", `client-go\s+on`),
	ban("is none|are none|was none|were none|be none|been none",
		"does not exist, does not belong to, is a no-op",
		`there\s+(?:is|are|was|were|may be|can be|must be|has been)\s+none`),
	ban("what is found|what is left|what was left|what is there|what was there|what is told|"+
		"what was told|what is said|what is known|what is gone", "name the things", ""),
	ban("alike", "both, equally, the same", ""),
	ban("come too late|comes too late", "misses, arrives after", ""),
	ban("in vain", "without success", ""),
	ban("befall|befalls|of its own accord", "affects, by itself", ""),
	ban("means what it says|meet a person|meets a person|dearest",
		"state the meaning; a person edits it; the costliest", ""),
	{
		marker:  "Of ",
		pattern: regexp.MustCompile(`(?:^|[.;]\s+)Of\s`),
		allowed: regexp.MustCompile(`^Of\sreturns`), // the comment of a function Of
		instead: "begin with the subject",
	},
	{
		marker:  "What ",
		pattern: regexp.MustCompile(`\bWhat\s[^.?#|]*(?:[.|]|$)`), // not a question
		allowed: regexp.MustCompile(`\bWhat\s(?:if|about)\b`),
		instead: "begin with a noun: headless clauses are hard to parse",
	},
}

// Comments, messages and docs use plain words, as the Go standard library's do.
func TestProse_UsesPlainWords(t *testing.T) {
	for _, p := range passages(t) {
		words := wordsOf(p.text)
		for _, phrase := range banned {
			for _, at := range phrase.find(p.text, words) {
				quoted := strings.Fields(p.text[at[0]:min(at[1], at[0]+40)])
				t.Errorf("%s:%d: %q: write plainly: %s", p.file,
					p.line+strings.Count(p.text[:at[0]], "\n"), strings.Join(quoted, " "),
					phrase.instead)
			}
		}
	}
}

// wordsOf returns the set of words of a text, in lower case.
func wordsOf(text string) map[string]bool {
	words := map[string]bool{}
	for _, word := range strings.FieldsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_'
	}) {
		words[strings.ToLower(word)] = true
	}
	return words
}

// occurs is a quick check that spares most texts the regular expression.
func (p phrase) occurs(text string, words map[string]bool) bool {
	if p.marker != "" {
		return strings.Contains(text, p.marker)
	}
	return slices.ContainsFunc(p.wordings, func(wording []string) bool {
		return !slices.ContainsFunc(wording, func(word string) bool { return !words[word] })
	})
}

// find returns where the phrase is used in text, which has these words, except in idioms.
func (p phrase) find(text string, words map[string]bool) [][]int {
	if !p.occurs(text, words) {
		return nil
	}
	var idioms [][]int
	if p.allowed != nil {
		idioms = p.allowed.FindAllStringIndex(text, -1)
	}
	var found [][]int
	for _, at := range p.pattern.FindAllStringIndex(text, -1) {
		idiom := false
		for _, in := range idioms {
			idiom = idiom || in[0] < at[1] && at[0] < in[1]
		}
		if !idiom {
			found = append(found, at)
		}
	}
	return found
}

// passage is a piece of prose: a comment, a string of several words, or a document.
type passage struct {
	file string
	line int    // of its first character
	text string // what is not prose is blank
}

var (
	commentMarks = regexp.MustCompile(`(?m)^[ \t]*//`)
	// The titles of lessons may be clauses.
	lessonLink = `\[[^\]]*\]\([^)]*lessons/[^)]*\)`
	notProse   = regexp.MustCompile(
		"(?s)```.*?```|`[^`\n]*`|" + lessonLink + "|\\]\\([^)]*\\)|<!--.*?-->")
	headings = regexp.MustCompile(`(?m)^#.*$`)
)

// passages lists the prose of the tree, this package's own lists of words left out.
func passages(t *testing.T) []passage {
	t.Helper()
	var all []passage
	for _, f := range tree(t) {
		if f.folder() != "internal/tools/layout" && !strings.Contains(f.path, "testdata/") {
			all = append(all, f.passages()...)
		}
	}
	for file, text := range documents(t) {
		all = append(all, passage{file, 1, proseOf(text)})
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	return append(all, passage{"Makefile", 1, string(makefile)})
}

// passages lists the comments of a Go file and its string literals of more than one word.
func (f goFile) passages() []passage {
	var all []passage
	add := func(from, to token.Pos, clean func(string) string) {
		first, last := f.position(from), f.position(to)
		text := clean(f.text[first.Offset:last.Offset])
		all = append(all, passage{f.path, first.Line, text})
	}
	for _, group := range f.ast.Comments {
		add(group.Pos(), group.End(), func(text string) string {
			return strings.TrimSpace(blank(commentMarks, text))
		})
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		if ok && lit.Kind == token.STRING && strings.Contains(lit.Value, " ") {
			add(lit.Pos(), lit.End(),
				func(text string) string { return strings.Trim(text, "\"`") })
		}
		return true
	})
	return all
}

// proseOf blanks code, links and headings of a Markdown document; its lines stay where they are.
func proseOf(text string) string { return blank(headings, blank(notProse, text)) }

// blank replaces each match by spaces; line breaks stay.
func blank(pattern *regexp.Regexp, text string) string {
	return pattern.ReplaceAllStringFunc(text, func(match string) string {
		return strings.Map(func(r rune) rune {
			if r == '\n' {
				return r
			}
			return ' '
		}, match)
	})
}

func TestProse_FindsPhrases(t *testing.T) {
	for text, want := range map[string]int{
		"Nobody waits.":                                          1,
		"The user who runs it is asked.":                         0,
		"It says who leads.":                                     1,
		"A stand-alone tool stands there.":                       1,
		"0 stands for no version.":                               0,
		"If there is none, it waits.":                            0,
		"It is none of this informer's.":                         1,
		"It goes\non for an hour.":                               1,
		"What is cached is not changed.":                         1,
		"What if it fails? It retries.":                          0,
		"What happens then?":                                     0,
		"An update. Of these, one counts.":                       1,
		proseOf("`nobody` and\n# What it does\n```\nwho\n```\n"): 0,
	} {
		found := 0
		for _, phrase := range banned {
			found += len(phrase.find(text, wordsOf(text)))
		}
		assert.Equal(t, want, found, text)
	}
}

// maxTics is the number of tics per 1,000 lines of comments that a folder may have. Go's own
// packages have less than 1. One tic in a folder is always allowed.
const maxTics = 3

var (
	tics = regexp.MustCompile(`(?i)\b(?:whose|none|(?:at|of)\s+which|the\s+one\s+that|also\s+if)\b`)
	// notTics are labels of package comments, and quoted texts.
	notTics = regexp.MustCompile("(?i)(?:goroutines|locking):\\s+none\\b|\"[^\"\\n]*\"|`[^`\\n]*`")
)

// Tics are ordinary words, but prose that is full of them has to be read twice. Rewrite the whole
// sentence: a replaced tic becomes the next tic.
func TestComments_HaveFewTics(t *testing.T) {
	lines, found := map[string]int{}, map[string][]string{}
	for _, f := range tree(t) {
		for _, group := range f.ast.Comments {
			text := f.text[f.position(group.Pos()).Offset:f.position(group.End()).Offset]
			lines[f.folder()] += strings.Count(text, "\n") + 1
			for _, tic := range tics.FindAllString(blank(notTics, blank(commentMarks, text)), -1) {
				found[f.folder()] = append(found[f.folder()],
					f.position(group.Pos()).String()+": "+strings.Join(strings.Fields(tic), " "))
			}
		}
	}
	for folder, places := range found {
		n := len(places)
		if n > 1 && n*1000 > maxTics*lines[folder] {
			t.Errorf("%s: %d tics in %d lines of comments, more than %d per 1,000:\n%s",
				folder, n, lines[folder], maxTics, strings.Join(places, "\n"))
		}
	}
}
