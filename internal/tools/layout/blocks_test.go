// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// block is a heading, a fence with its comment, a list item, a table row, or a paragraph of a
// Markdown document.
type block struct {
	kind string // "#" to "######", "fence", "item", "row" or "paragraph"
	line int    // of its first character
	text string
}

var (
	headingStart = regexp.MustCompile(`^(#{1,6}) `)
	itemStart    = regexp.MustCompile(`^\s*(?:[-*]|\d+\.) `)
	quoteComment = regexp.MustCompile(`^<!-- (?:lines of )?\S+ -->$`)
)

// blocksOf splits a document into its blocks.
func blocksOf(text string) []block {
	var blocks []block
	open, inFence := false, false // the last block may continue; it is in its fence
	for i, line := range strings.Split(text, "\n") {
		kind, trimmed := kindOf(line), strings.TrimSpace(line)
		fenceMark := strings.HasPrefix(trimmed, "```")
		quoted := open && fenceMark && blocks[len(blocks)-1].kind == "fence"
		switch {
		case inFence, open && kind == "" && trimmed != "", quoted:
			blocks[len(blocks)-1].text += "\n" + line
		case trimmed == "":
			open = false
		default:
			if kind == "" {
				kind = "paragraph"
			}
			blocks = append(blocks, block{kind: kind, line: i + 1, text: line})
			open = kind[0] != '#'
		}
		if fenceMark {
			inFence = !inFence
			open = inFence
		}
	}
	return blocks
}

// kindOf returns the kind of the block that a line begins, or "" for a line that may continue one.
func kindOf(line string) string {
	trimmed := strings.TrimSpace(line)
	switch {
	case headingStart.MatchString(line):
		return headingStart.FindStringSubmatch(line)[1]
	case strings.HasPrefix(trimmed, "```"), quoteComment.MatchString(trimmed):
		return "fence"
	case strings.HasPrefix(trimmed, "|"):
		return "row"
	case itemStart.MatchString(line):
		return "item"
	}
	return ""
}

// words is the text without its line breaks.
func (b block) words() string { return strings.Join(strings.Fields(b.text), " ") }

// beginning is the first words of the text.
func (b block) beginning() string {
	first := []rune(b.words())
	return strings.TrimSpace(string(first[:min(len(first), 50)]))
}

// code returns the set of texts in back quotes, sorted.
func (b block) code() []string {
	var spans []string
	for _, span := range inlineCode.FindAllStringSubmatch(b.words(), -1) {
		spans = append(spans, span[1])
	}
	slices.Sort(spans)
	return slices.Compact(spans)
}

// links returns the targets of the links as they are written, without anchors.
func (b block) links() []string {
	var targets []string
	for _, target := range link.FindAllStringSubmatch(b.words(), -1) {
		targets = append(targets, target[1])
	}
	return targets
}

func TestBlocks_SplitADocument(t *testing.T) {
	text := "# Title\nText `a\nb`,\n[c](d.md#e).\n\n- one\n  `go run`\n- two\n  1. three\n\n" +
		"<!-- p.N -->\n```go\nx\n\n# y\n```\n| a |\n|---|\n## End\n   ```\n   z\n   ```\nText"
	var kinds []string
	blocks := blocksOf(text)
	for _, b := range blocks {
		kinds = append(kinds, b.kind)
		assert.True(t, strings.HasPrefix(
			strings.Join(strings.Split(text, "\n")[b.line-1:], "\n"), b.text), "%+v", b)
	}
	assert.Equal(t, []string{"#", "paragraph", "item", "item", "item", "fence", "row", "row", "##",
		"fence", "paragraph"}, kinds)
	assert.Equal(t, []string{"a b"}, blocks[1].code())
	assert.Equal(t, []string{"d.md"}, blocks[1].links())
	assert.Equal(t, "- one `go run`", blocks[2].words())
	assert.Equal(t, "<!-- p.N -->\n```go\nx\n\n# y\n```", blocks[5].text)
}
