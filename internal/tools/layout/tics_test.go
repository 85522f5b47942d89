// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"regexp"
	"strings"
	"testing"
)

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
