// SPDX-License-Identifier: Apache-2.0

package path

import (
	"flag"
	"fmt"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite docs/reports/path.md")

// docs/reports/path.md is what a run of the instrumented packages shows.
func TestPath(t *testing.T) {
	folder := t.TempDir()
	functions, err := instrument(folder)
	require.NoError(t, err)
	changes, err := traces(folder)
	require.NoError(t, err)
	for scenario, change := range changes {
		require.NotEmpty(t, change.AtOnce, "%s recorded nothing", scenario)
	}

	const file = root + "/docs/reports/path.md"
	want := page(changes, functions)
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(want), 0o644))
	}
	got, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, want, string(got), "run make update")
}

var (
	drawnText = regexp.MustCompile(`<text class="([^"]*)"[^>]*>([^<]*)</text>`)
	pageStep  = regexp.MustCompile(`(?m)^\| \d+ \|.*?\]\(\.\./\.\./([^)]*)/[^/)]*\)`)
)

// docs/pictures/path.svg is drawn by hand. It has the goroutines of docs/reports/path.md, the
// packages of each, their functions and mutexes, and the totals. Package helpers is left out.
func TestPath_IsDrawn(t *testing.T) {
	text, err := os.ReadFile(root + "/docs/reports/path.md")
	require.NoError(t, err)
	drawn, err := os.ReadFile(root + "/docs/pictures/path.svg")
	require.NoError(t, err)
	atOnce, _, _ := strings.Cut(string(text), "\n## When nothing more arrives")
	goroutines := strings.Split(atOnce, "\n## Goroutine ")
	want, got := map[string]int{}, map[string]int{} // functions by goroutine and package
	for n, goroutine := range goroutines {
		for _, step := range pageStep.FindAllStringSubmatch(goroutine, -1) {
			if !strings.HasPrefix(step[1], "internal/helpers/") {
				want[fmt.Sprint(n, " ", path.Base(step[1]))]++
			}
		}
	}
	n, folder := 0, ""
	for _, found := range drawnText.FindAllStringSubmatch(string(drawn), -1) {
		class, words := found[1], found[2]
		mutexes, locks := strings.CutPrefix(words, "locks ")
		switch {
		case strings.HasPrefix(words, "goroutine "):
			n++
			require.Less(t, n, len(goroutines), "goroutines of docs/reports/path.md")
		case class == "name":
			folder = fmt.Sprint(n, " ", words)
		case strings.Contains(words, " function") && !strings.Contains(words, " · "):
			number, _, _ := strings.Cut(words, " ")
			got[folder], err = strconv.Atoi(number)
			require.NoError(t, err)
		case locks:
			for _, mutex := range strings.Split(mutexes, ", ") {
				assert.True(t, strings.Contains(goroutines[n], "."+mutex+".mu`"), words)
			}
		case strings.HasPrefix(class, "mono"):
			name := regexp.MustCompile("[`.]" + strings.TrimSuffix(words, "…"))
			assert.True(t, name.Match(text), "the page has no function %s", words)
		case strings.Contains(words, " · "):
			for _, total := range strings.Split(words, " · ") {
				assert.True(t, strings.Contains(string(text), "\n- "+total), total)
			}
		}
	}
	assert.Equal(t, want, got, "functions by goroutine and package in docs/pictures/path.svg")
}
