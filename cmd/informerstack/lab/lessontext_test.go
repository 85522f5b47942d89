// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack"
)

// text is a text in both languages.
type text struct{ En, Zh string }

// A page's part of a lesson.
type shownLesson struct {
	ID    string
	Title text
	Steps []struct {
		Text, After text
		Task        *struct {
			Ask, Hint text
			Wrong     []struct{ Because text }
		}
		Question *struct {
			Ask, Answer text
			Where       string
			Why         map[string]text
			Options     []struct {
				Text, Why text
				Right     bool
			}
		}
	}
	Links []struct{ Kind, Path, Text string }
}

func shownLessons(t *testing.T) []shownLesson {
	var file struct{ Lessons []shownLesson }
	require.NoError(t, json.Unmarshal(lessonsFile, &file))
	return file.Lessons
}

// pieces are the cards of the page.
var pieces = []string{
	"server", "reflector", "queue", "store", "handlers", "workqueue", "workers", "election",
}

// The ends of a sentence in both languages.
var sentenceEnd = regexp.MustCompile(`[.?!](\s|$)|[。？！]`)

// A lesson has two to five steps of at most four sentences. In at least half of them the reader
// does a task, in the others the reader answers a question; only the first lesson begins with a
// step to look at.
func TestLessons_AreComplete(t *testing.T) {
	all := shownLessons(t)
	assert.GreaterOrEqual(t, len(all), 14)
	for _, l := range all {
		complete := func(texts ...text) {
			for _, text := range texts {
				assert.NotEmpty(t, text.En, l.ID)
				assert.NotEmpty(t, text.Zh, l.ID)
			}
		}
		complete(l.Title)
		assert.GreaterOrEqual(t, len(l.Steps), 2, l.ID)
		assert.LessOrEqual(t, len(l.Steps), 5, l.ID)
		tasks, questions := 0, 0
		for _, step := range l.Steps {
			complete(step.Text)
			shown := step.Text.En + " " + step.After.En
			assert.LessOrEqual(t, len(sentenceEnd.FindAllString(shown, -1)), 4, shown)
			shown = step.Text.Zh + step.After.Zh
			assert.LessOrEqual(t, len(sentenceEnd.FindAllString(shown, -1)), 4, shown)
			if step.Task != nil {
				tasks++
				complete(step.Task.Ask, step.Task.Hint)
				for _, way := range step.Task.Wrong {
					complete(way.Because)
				}
			}
			if step.After != (text{}) {
				complete(step.After)
			}
			if step.Question == nil {
				continue
			}
			questions++
			complete(step.After, step.Question.Ask, step.Question.Answer)
			if step.Question.Where != "" {
				assert.Contains(t, pieces, step.Question.Where)
				assert.Empty(t, step.Question.Options, l.ID)
				assert.GreaterOrEqual(t, len(step.Question.Why), 3, l.ID)
				assert.NotContains(t, step.Question.Why, step.Question.Where, l.ID)
				for piece, why := range step.Question.Why {
					assert.Contains(t, pieces, piece)
					complete(why)
				}
				continue
			}
			right := 0
			for _, option := range step.Question.Options {
				complete(option.Text)
				if option.Right {
					right++
				} else {
					complete(option.Why)
				}
			}
			assert.Equal(t, 1, right, "%s: %s", l.ID, step.Text.En)
		}
		assert.GreaterOrEqual(t, 2*tasks, len(l.Steps), l.ID)
		if l.ID != all[0].ID {
			assert.Len(t, l.Steps, tasks+questions, l.ID)
		}
	}
}

var testCommand = regexp.MustCompile(`^go test -v -run (Test\w+) \./([\w/]+)$`)

// A lesson links to a test, code, a chapter and a post, and all of them exist. The post's page
// links to the lesson.
func TestLessons_LinkToWhatExists(t *testing.T) {
	folders := map[string]string{"chapter": "docs", "post": "docs/posts"}
	for _, l := range shownLessons(t) {
		var kinds []string
		for _, link := range l.Links {
			kinds = append(kinds, link.Kind)
			file, function, _ := strings.Cut(link.Path, "#")
			content, err := informerstack.Files.ReadFile(file)
			require.NoError(t, err, l.ID)
			folder := path.Dir(file)
			if inDocs, ok := strings.CutPrefix(link.Path, "docs/"); ok {
				_, err := informerstack.Files.ReadFile("docs/zh/" + inDocs)
				assert.NoError(t, err, l.ID)
			}
			if want := folders[link.Kind]; want != "" {
				assert.Equal(t, want, folder, l.ID)
			}
			if link.Kind == "post" {
				page := `\(\.\./lessons/` + EditionName(l.ID) + `(#step=\d)?\)`
				assert.Regexp(t, page, string(content), link.Path)
			}
			if link.Kind == "test" {
				command := testCommand.FindStringSubmatch(link.Text)
				require.NotNil(t, command, "%s: %s", l.ID, link.Text)
				assert.Equal(t, folder, command[2], l.ID)
				assert.Equal(t, function, command[1], l.ID)
				assert.Contains(t, string(content), "\nfunc "+command[1]+"(t *testing.T) {", l.ID)
			}
		}
		slices.Sort(kinds)
		assert.Equal(t, []string{"chapter", "code", "post", "test"}, slices.Compact(kinds), l.ID)
	}
}

// Each name in a script is a name that the program knows.
func TestLessons_ScriptsHaveNoUnknownFields(t *testing.T) {
	var file struct {
		Lessons []struct {
			Steps []struct {
				Script []json.RawMessage
				Task   struct{ Done, Wrong, Solution []json.RawMessage }
				Watch  []string
			}
		}
	}
	require.NoError(t, json.Unmarshal(lessonsFile, &file))
	for _, l := range file.Lessons {
		for _, step := range l.Steps {
			assert.Subset(t, pieces, step.Watch)
			task := step.Task
			for _, line := range slices.Concat(step.Script, task.Done, task.Wrong, task.Solution) {
				decoder := json.NewDecoder(strings.NewReader(string(line)))
				decoder.DisallowUnknownFields()
				var known struct {
					scriptLine
					Because text // of a wrong way
				}
				assert.NoError(t, decoder.Decode(&known), string(line))
			}
		}
	}
}

// A RealFIFO is older than its gate AtomicFIFO, which makes a list one item: a text that shows
// ReplacedAll dates it by the gate.
func TestLessons_DateReplacedAll(t *testing.T) {
	shown := 0
	for _, l := range shownLessons(t) {
		for _, step := range l.Steps {
			for _, text := range []string{
				step.Text.En, step.Text.Zh, step.After.En, step.After.Zh,
			} {
				if strings.Contains(text, "ReplacedAll") {
					shown++
					assert.Contains(t, text, "AtomicFIFO", l.ID)
					assert.Contains(t, text, "1.36", l.ID)
				}
			}
		}
	}
	assert.NotZero(t, shown)
}
