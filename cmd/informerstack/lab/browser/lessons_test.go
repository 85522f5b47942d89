// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/cmd/informerstack/lab"
)

// lesson is what a reader sees of a lesson.
type lesson struct {
	ID    string
	Title text
	Steps []struct {
		Text     text
		After    text
		Question *question
		Watch    []string
	}
	Links []struct{ Kind string }
}

type question struct {
	Ask     text
	Options []struct {
		Text  text
		Right bool
	}
	Answer text
}

// text is a text by language.
type text map[string]string

// UnmarshalJSON also takes a plain string, which is the same in both languages.
func (t *text) UnmarshalJSON(data []byte) error {
	var same string
	if json.Unmarshal(data, &same) == nil {
		*t = text{"en": same, "zh": same}
		return nil
	}
	return json.Unmarshal(data, (*map[string]string)(t))
}

var (
	keyMarkup  = regexp.MustCompile(`\[\[(?:[^\]/]*/)?([^\]]+)\]\]`)
	codeMarkup = regexp.MustCompile("`([^`]+)`")
)

// shown is the text as the page shows it: a key without its namespace, and no markup.
func (t text) shown(language string) string {
	return codeMarkup.ReplaceAllString(keyMarkup.ReplaceAllString(t[language], "$1"), "$1")
}

// lessons returns the lessons of a program.
func (p *program) lessons() []lesson {
	p.t.Helper()
	answer, err := http.Get(p.url + "/lab/lessons")
	require.NoError(p.t, err)
	defer answer.Body.Close()
	var file struct{ Lessons []lesson }
	require.NoError(p.t, json.NewDecoder(answer.Body).Decode(&file))
	require.NotEmpty(p.t, file.Lessons)
	return file.Lessons
}

// Every lesson can be played to its end in both languages, and what the page shows is the text of
// that language.
func TestLessons_PlayToTheirEnd(t *testing.T) {
	t.Parallel()
	for i, l := range start(t, "run", "--rate", "0").lessons() {
		t.Run(l.ID, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, desktop)
			s.playLesson(i, l, "en")
			// A watch without an event that is cut in its first second counts as an error, and the
			// reflector lists again.
			s.until("the watch is older than a second", func(f lab.Frame) bool {
				since := f.Reflector.WatchSince
				return f.Reflector.Phase == "watching" && f.Time.Sub(*since) > 1100*time.Millisecond
			})
			s.click(button("z"))
			s.playLesson(i, l, "zh")
		})
	}
}

// playLesson plays a lesson. A reader of English guesses wrong, a reader of Chinese is right.
func (s *scene) playLesson(i int, l lesson, language string) {
	s.t.Helper()
	entry := fmt.Sprintf(".lessons li:nth-child(%d) button", i+1)
	s.shows(entry+" span", l.Title, language)
	s.click(entry)
	for n, step := range l.Steps {
		s.shows(".lesson h2", l.Title, language)
		s.shows(".lesson .text", step.Text, language)
		if step.Question != nil {
			s.answer(step.Question, language)
		}
		f := s.until(fmt.Sprintf("step %d of lesson %s is played", n, l.ID),
			func(f lab.Frame) bool {
				return f.Lesson != nil && f.Lesson.ID == l.ID && f.Lesson.Step == n &&
					f.Lesson.State == "done"
			})
		require.Empty(s.t, f.Lesson.Error, "step %d of lesson %s", n, l.ID)
		if len(step.After) > 0 {
			s.shows(".lesson .text:not([aria-live] *)", step.After, language)
		}
		s.await("the page marks the pieces", fmt.Sprintf(
			`[...document.querySelectorAll(".card.pointed")].map((card) => card.dataset.piece)
				.sort().join() === %s.sort().join()`, list(step.Watch)))
		assert.Len(s.t, s.texts(`.lesson .links a[href^="/read/"]`), len(l.Links),
			"links of lesson %s", l.ID)
		s.click(".lesson .steps .primary")
	}
	s.await("the lesson is marked as done",
		element(entry+" small")+`?.textContent.startsWith("✓")`)
}

// openQuestion plays a lesson until its first question.
func (s *scene) openQuestion(use func(selector string)) {
	s.t.Helper()
	s.await("the list of lessons", element(".lessons li"))
	for i, l := range s.program.lessons() {
		for n, step := range l.Steps[:2] {
			if step.Question == nil {
				continue
			}
			use(fmt.Sprintf(".lessons li:nth-child(%d) button", i+1))
			if n == 1 {
				s.until("the first step is played", func(f lab.Frame) bool {
					return f.Lesson != nil && f.Lesson.State == "done"
				})
				use(".lesson .steps .primary")
			}
			s.await("a question", element(".question"))
			return
		}
	}
	require.Fail(s.t, "no lesson begins with a question")
}

// shows waits until an element has exactly the text of a language.
func (s *scene) shows(selector string, want text, language string) {
	s.t.Helper()
	require.NotEmpty(s.t, want[language], "the text of %s in %s", selector, language)
	s.await(selector+" shows its text",
		element(selector)+"?.textContent === "+quoted(want.shown(language)))
}

// answer chooses an option of a question and checks what the page says about it.
func (s *scene) answer(q *question, language string) {
	s.t.Helper()
	s.shows(".question legend", q.Ask, language)
	right := slices.IndexFunc(q.Options, func(o struct {
		Text  text
		Right bool
	}) bool {
		return o.Right
	})
	require.GreaterOrEqual(s.t, right, 0, "the question has a right answer")
	option := func(i int) string {
		return fmt.Sprintf(".question .option:nth-of-type(%d)", i+1)
	}
	for i, o := range q.Options {
		s.shows(option(i)+" span:last-child", o.Text, language)
	}
	require.True(s.t, evaluate[bool](s.tab, element(".lesson .steps .primary")+".disabled"),
		"a reader answers before the next step")
	choice := right
	if language == "en" {
		choice = (right + 1) % len(q.Options)
	}
	s.click(option(choice))
	s.await("the right option is marked", element(option(right)+".right"))
	if choice != right {
		s.await("the wrong option is marked", element(option(choice)+".wrong"))
	}
	s.shows(".question [role=status]", q.Answer, language)
}

// list returns the JavaScript array of strings.
func list(values []string) string {
	encoded, err := json.Marshal(append([]string{}, values...))
	if err != nil {
		panic(err) // strings can be encoded
	}
	return string(encoded)
}

// The page says that requests fail at random, and that they do not during a lesson.
func TestLessons_PauseRandomFaults(t *testing.T) {
	t.Parallel()
	s := newScene(t, desktop, "--faults")
	badge := func(want string) {
		s.await("the page says: "+want, `[...document.querySelectorAll(".state .badge")].some(
			(badge) => badge.textContent === `+quoted(want)+`)`)
	}
	badge("random faults")
	l := s.program.lessons()[0]
	s.playLesson(0, l, "en")
	badge("random faults")
	s.click(".lessons li:first-child button")
	badge("random faults pause during a lesson")
	s.click(button(","))
	s.click(".settings [name=faults]")
	s.click(".settings [type=submit]")
	s.until("no random faults", func(f lab.Frame) bool { return f.Settings.Faults == "off" })
}
