// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	chineseFolder = "docs/zh/"
	// translatedFile has one line for each English paragraph as it was when it was translated: its
	// page, a hash, and its first words.
	translatedFile = chineseFolder + "translated.txt"
)

// renamed are the pages that docs/zh has under another path than docs.
var renamed = map[string]string{"README.md": "README.md", "docs/README.md": "docs.md"}

// translationOf returns the path that the Chinese page of an English page has, or "".
func translationOf(original string) string {
	if name, ok := renamed[original]; ok {
		return chineseFolder + name
	}
	name, ok := strings.CutPrefix(original, "docs/")
	if !ok || strings.HasPrefix(original, chineseFolder) {
		return ""
	}
	return chineseFolder + name
}

// originalOf returns the path of the English page of a Chinese page.
func originalOf(chinese string) string {
	name := strings.TrimPrefix(chinese, chineseFolder)
	for original, translation := range renamed {
		if translation == name {
			return original
		}
	}
	return "docs/" + name
}

// A page of docs/zh has the blocks of its English page in the same order: headings of the same
// level, the same fences, and paragraphs, list items and table rows with the same code and links.
// Both link to each other below their titles.
func TestChinese_PagesHaveTheBlocksOfTheEnglishPages(t *testing.T) {
	docs := documents(t)
	for file := range docs {
		if strings.HasPrefix(file, chineseFolder) {
			for _, difference := range compare(docs, originalOf(file), file) {
				t.Error(difference)
			}
		}
	}
}

// An English paragraph that has changed since its translation is reported. With -update the present
// paragraphs are recorded as translated.
func TestChinese_PagesTranslateThePresentParagraphs(t *testing.T) {
	docs := documents(t)
	file := filepath.Join(root, translatedFile)
	if *update {
		record := strings.Join(recordOf(docs), "\n") + "\n"
		require.NoError(t, os.WriteFile(file, []byte(record), 0o644))
	}
	record, err := os.ReadFile(file)
	require.NoError(t, err)
	changed := outdated(docs, strings.Split(string(record), "\n"))
	for _, paragraph := range changed {
		t.Error(paragraph)
	}
	if len(changed) > 0 {
		t.Log("Translate them, then run: go test ./internal/tools/layout -run Chinese -update")
	}
}

// A browser shows a line break as a space, which does not belong between two Chinese characters. A
// line fits 120 columns; a Chinese character takes two, and code and link targets do not count.
func TestChinese_LinesBreakAfterPunctuation(t *testing.T) {
	for file, text := range documents(t) {
		if !strings.HasPrefix(file, chineseFolder) {
			continue
		}
		for _, b := range blocksOf(text) {
			if b.kind == "fence" || b.kind == "row" {
				continue
			}
			for i, line := range strings.Split(b.text, "\n") {
				prose := notProse.ReplaceAllString(line, "")
				assert.LessOrEqual(t, chineseColumns(prose), 120, "%s:%d", file, b.line+i)
			}
			broken := breakInText.FindString(b.text)
			assert.Empty(t, broken, "%s:%d: break the line elsewhere", file, b.line)
		}
	}
}

var breakInText = regexp.MustCompile(`\p{Han}\n\s*\p{Han}`)

// chineseColumns counts the columns of a text, two for each Chinese character or punctuation mark.
func chineseColumns(text string) int {
	columns := utf8.RuneCountInString(text)
	for _, r := range text {
		if r >= '\u2e80' {
			columns++
		}
	}
	return columns
}

// compare lists the differences between an English page and the Chinese page file.
func compare(docs map[string]string, original, file string) []string {
	english, chinese := blocksOf(docs[original]), blocksOf(docs[file])
	var found []string
	for i := range max(len(english), len(chinese)) {
		switch {
		case i >= len(chinese) || i < len(english) && english[i].kind != chinese[i].kind:
			return append(found, fmt.Sprintf("%s:%d: %s has no %s here", original, english[i].line,
				file, english[i].kind))
		case i >= len(english):
			return append(found, fmt.Sprintf("%s:%d: %s has no %s here", file, chinese[i].line,
				original, chinese[i].kind))
		}
		var difference string
		if i == 1 {
			difference = compareLanguageLinks(original, file, english[i], chinese[i])
		} else {
			difference = compareBlocks(docs, original, file, english[i], chinese[i])
		}
		if difference != "" {
			found = append(found, fmt.Sprintf("%s:%d, %s:%d: %s", original, english[i].line, file,
				chinese[i].line, difference))
		}
	}
	return found
}

// compareLanguageLinks returns an error unless the blocks below the titles link to each other.
func compareLanguageLinks(original, file string, english, chinese block) string {
	if want := languageLink("中文", original, file); english.text != want {
		return "the line below the English title must be " + want
	}
	if want := languageLink("English", file, original); chinese.text != want {
		return "the line below the Chinese title must be " + want
	}
	return ""
}

func languageLink(language, from, to string) string {
	rel, err := filepath.Rel(path.Dir(from), to)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf("[%s](%s)", language, filepath.ToSlash(rel))
}

// compareBlocks returns how two blocks of the same kind differ, or "".
func compareBlocks(docs map[string]string, original, file string, english, chinese block) string {
	if english.kind == "fence" {
		if english.text != chinese.text {
			return "the fences differ"
		}
		return ""
	}
	if !slices.Equal(english.code(), chinese.code()) {
		return fmt.Sprintf("the code differs: %q, %q", english.code(), chinese.code())
	}
	targets := resolve(docs, english.links(), original)
	if got := resolve(docs, chinese.links(), file); !slices.Equal(targets, got) {
		return fmt.Sprintf("the links differ: %q, %q", targets, got)
	}
	return ""
}

// resolve returns the set of paths that the links of a page lead to. A link of an English page to a
// translated page counts as one to its translation, so a Chinese page must link to that.
func resolve(docs map[string]string, links []string, file string) []string {
	var targets []string
	for _, target := range links {
		if !strings.Contains(target, "://") {
			target = path.Join(path.Dir(file), target)
		}
		translation := translationOf(target)
		if _, ok := docs[translation]; ok && !strings.HasPrefix(file, chineseFolder) {
			target = translation
		}
		targets = append(targets, target)
	}
	slices.Sort(targets)
	return slices.Compact(targets)
}

// translatedBlocks calls visit with each block of English text that has a translation.
func translatedBlocks(docs map[string]string, visit func(original string, b block)) {
	var originals []string
	for file := range docs {
		if strings.HasPrefix(file, chineseFolder) {
			originals = append(originals, originalOf(file))
		}
	}
	slices.Sort(originals)
	for _, original := range originals {
		for _, b := range blocksOf(docs[original]) {
			if b.kind != "fence" {
				visit(original, b)
			}
		}
	}
}

// recordOf returns the lines of translatedFile for the present English pages.
func recordOf(docs map[string]string) []string {
	lines := []string{
		"# The English paragraphs that docs/zh translates. After a translation, run:",
		"# go test ./internal/tools/layout -run Chinese -update",
	}
	translatedBlocks(docs, func(original string, b block) {
		lines = append(lines, recordLine(original, b))
	})
	return lines
}

func recordLine(original string, b block) string {
	hash := sha256.Sum256([]byte(b.words()))
	return fmt.Sprintf("%s %x %s", original, hash[:6], b.beginning())
}

// outdated lists the English paragraphs that the record does not have.
func outdated(docs map[string]string, record []string) []string {
	recorded := map[string]bool{}
	for _, line := range record {
		recorded[line] = true
	}
	var found []string
	translatedBlocks(docs, func(original string, b block) {
		if !recorded[recordLine(original, b)] {
			found = append(found, fmt.Sprintf("%s:%d: changed since its translation: %s", original,
				b.line, b.beginning()))
		}
	})
	return found
}

func TestChinese_ComparisonFindsEachDifference(t *testing.T) {
	const (
		english = "# Store\n\n[中文](zh/store.md)\n\nSee `store.Indexer`, [informer](informer.md)." +
			"\n\n```go\nx\n```\n\n## End\n\n- [key](../store/key.go)\n"
		chinese = "# 存储\n\n[English](../store.md)\n\n见 [informer](informer.md)、`store.Indexer`。" +
			"\n\n```go\nx\n```\n\n## 结尾\n\n- [键](../../store/key.go)\n"
	)
	for _, test := range []struct{ old, new, want string }{
		{"", "", ""},
		{"## 结尾", "### 结尾", "has no ## here"},
		{"- [键](../../store/key.go)\n", "", "has no item here"},
		{"## 结尾", "多一段。\n\n## 结尾", "has no ## here"},
		{"key.go)\n", "key.go)\n\n多一段。\n", "docs/store.md has no paragraph here"},
		{"\nx\n", "\ny\n", "the fences differ"},
		{"`store.Indexer`", "`store.Store`", "the code differs"},
		{"](informer.md)", "](../informer.md)", "the links differ"},
		{"../../store/key.go", "../../store/cache.go", "the links differ"},
		{"[English](../store.md)", "[English](../informer.md)", "must be [English](../store.md)"},
	} {
		docs := map[string]string{
			"docs/store.md": english, "docs/zh/informer.md": "",
			"docs/zh/store.md": strings.Replace(chinese, test.old, test.new, 1),
		}
		got := strings.Join(compare(docs, "docs/store.md", "docs/zh/store.md"), "\n")
		if test.want == "" {
			assert.Empty(t, got)
		} else {
			assert.Contains(t, got, test.want, "%q", test.new)
		}
	}
}

func TestChinese_ChangedParagraphsAreListed(t *testing.T) {
	docs := map[string]string{
		"docs/store.md": "# Store\n\nOne\nline.\n\n- Two.\n", "docs/zh/store.md": "# 存储\n",
		"docs/design.md": "Not translated.\n",
	}
	record := recordOf(docs)
	assert.Empty(t, outdated(docs, record))
	docs["docs/store.md"] = "# Store\n\nOne line.\n\n- Two!\n"
	assert.Equal(t, []string{"docs/store.md:5: changed since its translation: - Two!"},
		outdated(docs, record))
}
