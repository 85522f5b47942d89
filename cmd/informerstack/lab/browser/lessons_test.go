// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/cmd/informerstack/lab"
)

// lesson is what a reader sees of a lesson.
type lesson struct {
	ID    string
	Title text
	Alone bool // it plays in slow motion
	Steps []struct {
		Text     text
		After    text
		Question *question
		Task     *task
		Watch    []string
	}
	Links []struct{ Kind string }
}

type question struct {
	Ask     text
	Where   string          // the right card, if the reader answers with one
	Why     map[string]text // why another card is wrong
	Options []option
	Answer  text
}

type option struct {
	Text, Why text
	Right     bool
}

// task is what a reader does.
type task struct {
	Ask, Hint text
	Wrong     []struct{ Because text }
	Solution  []command
}

// command is a line of a solution.
type command struct {
	Do, Key, Fault, Name, ID string
	WatchList                *bool
	On                       bool
	Names                    []string
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

// Every lesson can be played to its end, half of them in each language, and what the page shows is
// the text of that language. Each lesson is played on one of the sizes of screen. Without the flag
// -every-lesson, one in thirteen is played with motion, which takes twice as long.
func TestLessons_PlayToTheirEnd(t *testing.T) {
	t.Parallel()
	for i, l := range start(t, "run", "--rate", "0").lessons() {
		t.Run(l.ID, func(t *testing.T) {
			size := sizes[i/2%len(sizes)]
			size.moving = i%13 == 0 || *everyLesson
			s := newScene(t, size)
			s.use("lessons")
			if i%2 == 0 {
				s.click(button("z"))
				s.playLesson(i, l, "zh")
			} else {
				s.playLesson(i, l, "en")
			}
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
		if l.Alone && n == 0 && language == "zh" { // this reader is in a hurry
			s.until("slow motion", func(f lab.Frame) bool { return f.Mode == lab.Slow })
			s.choose(`input[type="range"]`, "0")
		}
		if step.Question != nil {
			if n == 0 {
				s.until("the lesson has its own world", func(f lab.Frame) bool {
					return f.Lesson != nil && f.Lesson.ID == l.ID && f.Lesson.Step == -1
				})
			}
			s.answer(step.Question, language)
		}
		if step.Task != nil {
			s.await("it is the reader's turn", element(".task.yours"))
			s.goAstray(l.ID, n, step.Task, language)
			s.doTask(step.Task, language)
		}
		s.endStep(l.ID, n, language, func() { s.click(proceed) })
		if len(step.After) > 0 {
			s.shows(".lesson .text:not([aria-live] *)", step.After, language)
		}
		s.pointsAt(step.Watch)
		links := `.lesson .links a[href^="read/"]`
		if s.program == nil { // nothing serves the files
			links = ".lesson .links code"
		}
		assert.Len(s.t, s.texts(links), len(l.Links), "links of lesson %s", l.ID)
		s.fits(fmt.Sprintf("step %d of lesson %s", n, l.ID))
		s.click(".lesson .steps .primary")
	}
	s.await("the lesson is marked as done",
		element(entry+" small")+`?.textContent.startsWith("✓")`)
}

// openQuestion opens a lesson that begins with a question with options.
func (s *scene) openQuestion(use func(selector string)) {
	s.t.Helper()
	s.await("the list of lessons", element(".lessons li"))
	at := slices.IndexFunc(s.program.lessons(), func(l lesson) bool {
		q := l.Steps[0].Question
		return q != nil && q.Where == ""
	})
	use(fmt.Sprintf(".lessons li:nth-child(%d) button", at+1))
	s.await("a question", element(".question"))
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
	require.True(s.t, evaluate[bool](s.tab, element(".lesson .steps .primary")+".disabled"),
		"a reader answers before the next step")
	if q.Where != "" {
		s.predict(q, language)
		return
	}
	right := slices.IndexFunc(q.Options, func(o option) bool { return o.Right })
	require.GreaterOrEqual(s.t, right, 0, "the question has a right answer")
	if wrong := (right + 1) % len(q.Options); language == "en" {
		tried := s.option(q.Options[wrong].Text.shown(language))
		s.click(tried)
		s.await("the wrong option is marked", element(tried+".wrong"))
		s.says("✕ " + q.Options[wrong].Why.shown(language))
		s.await("the right option is not", "!"+element(".option.right"))
	}
	chosen := s.option(q.Options[right].Text.shown(language))
	s.click(chosen)
	s.await("the right option is marked", element(chosen+".right"))
	s.says(q.Answer.shown(language))
}

// says waits until the page says this about an answer.
func (s *scene) says(want string) {
	s.t.Helper()
	s.await("the page says "+want,
		element(".question [role=status]")+"?.textContent === "+quoted(want))
}

// predict clicks the card that a question asks for, perhaps after a wrong one. Nothing gives the
// answer away.
func (s *scene) predict(q *question, language string) {
	s.t.Helper()
	assert.Len(s.t, s.texts(".card .pick"), 8, "each card is an answer")
	assert.Empty(s.t, s.texts(".pointed"), "no card is marked")
	if language == "en" {
		piece := slices.Sorted(maps.Keys(q.Why))[0]
		s.click("#card-" + piece + " .pick")
		s.says("✕ " + q.Why[piece].shown(language))
		assert.Len(s.t, s.texts(".card .pick"), 8, "the reader tries again")
	}
	s.click("#card-" + q.Where + " .pick")
	s.says(q.Answer.shown(language))
	s.await("no card asks any more", "!"+element(".pick"))
}

// option returns the selector of the option with a text: the page shuffles them.
func (s *scene) option(text string) string {
	s.t.Helper()
	i := evaluate[int](s.tab, `[...document.querySelectorAll(".question .option span:last-child")]
		.findIndex((span) => span.textContent === `+quoted(text)+`)`)
	require.GreaterOrEqual(s.t, i, 0, "no option %q", text)
	return fmt.Sprintf(".question .option:nth-of-type(%d)", i+1)
}

// wrongWays are the keys that take the wrong ways of each task, by lesson and step.
var wrongWays = sync.OnceValues(func() (map[string][]string, error) {
	content, err := os.ReadFile("../testdata/ways.json")
	if err != nil {
		return nil, err
	}
	var ways []struct {
		Lesson string
		Step   int
		Wrong  []string
	}
	err = json.Unmarshal(content, &ways)
	byTask := map[string][]string{}
	for _, way := range ways {
		byTask[fmt.Sprint(way.Lesson, way.Step)] = way.Wrong
	}
	return byTask, err
})

// choices are the lists of the page and their entries, by the capital letters of ways.json.
var choices = map[rune][2]string{
	'T': {indexList, "label:team"},
	'E': {limiterList, "Exponential"},
	'B': {limiterList, "Bucket"},
}

const (
	indexList   = ".index select"
	limiterList = ".limiter select"
)

// goAstray takes each wrong way of a task. The page says why it does not count, and the task begins
// again.
func (s *scene) goAstray(id string, step int, t *task, language string) {
	s.t.Helper()
	ways, err := wrongWays()
	require.NoError(s.t, err)
	require.Len(s.t, ways[fmt.Sprint(id, step)], len(t.Wrong))
	for i, keys := range ways[fmt.Sprint(id, step)] {
		for _, key := range keys {
			rv := s.frames.now().Server.RV
			if choice, ok := choices[key]; ok {
				s.choose(choice[0], choice[1])
				continue
			}
			switch key {
			case 'u':
				s.followKey("default/lesson")
			case 'U':
				s.followKey("default/lesson-2")
			}
			s.press(strings.ToLower(string(key)))
			if len(keys) > 1 {
				s.frames.until("a change", func(f lab.Frame) bool { return f.Server.RV != rv })
			}
		}
		s.shows(".task .hot", t.Wrong[i].Because, language)
		s.frames.until("the task begins again", func(f lab.Frame) bool {
			return f.Lesson.State == "yours" && f.Lesson.Wrong == i+1
		})
		s.await("it is the reader's turn again", element(".task.yours"))
	}
}

// doTask does a task with the controls of the page, as its solution says.
func (s *scene) doTask(t *task, language string) {
	s.t.Helper()
	s.await("the task is shown",
		element(".task [role=status]")+"?.textContent.endsWith("+quoted(t.Ask.shown(language))+")")
	for _, c := range t.Solution {
		s.perform(c)
	}
}

// perform uses the control for a command, and waits for its effect.
func (s *scene) perform(c command) {
	s.t.Helper()
	before := s.frames.now()
	if c.Key != "" && c.Do != "create" {
		s.followKey(c.Key)
	}
	key := map[string]string{
		"create": "n", "change": "u", "delete": "d", "compact": "k", "handler": "h",
		"settings": "w", "watch cut": "c", "watch stall": "t", "watch expire": "e",
		"reconcile hang": "g", "reconcile fail": "f", "leader pause": "y", "leader resume": "y",
		"define": "5", "namespaces": "6",
		"own": "m", "restart": "s", "leader release": "1", "leader cut": "2",
		"reconcile none": map[lab.Fault]string{"hang": "g", "fail": "f"}[before.Workers.Fault],
	}[strings.TrimSpace(c.Do+" "+c.Fault)]
	switch c.Do {
	case "":
		return // it waits for what the command before has done
	case "index":
		s.choose(indexList, c.Name)
		return
	case "limiter":
		s.choose(limiterList, c.Name)
		return
	case "code":
		s.use("code")
		s.await("the code is shown", element("#change-"+c.ID))
		s.toggle(c.ID, false)
		s.use("lessons")
		return
	}
	if len(before.Election.CutNames) > 0 && c.Do == "leader" {
		key = "2" // resume
	}
	require.NotEmpty(s.t, key, "no control for %+v", c)
	hangs := before.Workers.Fault == "hang" // if not, a reconcile may end before it is seen
	busy := len(before.Workqueue.Processing) >= before.Workers.Count
	s.press(key)
	s.frames.until(fmt.Sprintf("the effect of %+v", c), func(f lab.Frame) bool {
		switch {
		case c.Do == "watch" && c.Fault == "stall":
			return f.Server.Fault == "stall"
		case c.Do == "watch" && c.Fault == "cut":
			return f.Reflector.Phase == "watching" &&
				f.Reflector.WatchSince.After(*before.Reflector.WatchSince)
		case c.Do == "compact":
			return f.Server.Compacted != before.Server.Compacted
		case c.Do == "namespaces":
			return len(f.Reflector.Namespaces) == len(c.Names)
		case c.Do == "define":
			return f.Reflector.Kind.Phase == "serving" == c.On
		case c.Do == "own":
			return f.Store.RV != before.Store.RV
		case c.Do == "reconcile":
			return string(f.Workers.Fault) == c.Fault
		case c.Do == "delete":
			return f.Server.Objects < before.Server.Objects
		case c.Do == "change" && hangs &&
			(busy || slices.Contains(before.Workqueue.Processing, c.Key)):
			return slices.Contains(f.Workqueue.Dirty, c.Key)
		case c.Do == "change" && hangs && !f.Queue.Hold:
			return slices.Contains(f.Workqueue.Processing, c.Key)
		case c.Do == "change":
			return f.Server.RV != before.Server.RV
		}
		return true
	})
}

// followKey follows a key of the lesson's text, unless it is followed.
func (s *scene) followKey(key string) {
	s.t.Helper()
	if evaluate[string](s.tab, element(".following .chip")+`?.dataset.key ?? ""`) != key {
		s.click(".task .chip[data-key=" + quoted(key) + "]")
	}
	s.await("the key is followed",
		element(".following .chip")+"?.dataset.key === "+quoted(key))
}

// A task has a hint, and the program shows how it is done.
func TestLessons_ShowATask(t *testing.T) {
	s := newScene(t, desktop)
	s.openAt("tombstones", 0)
	s.await("it is the reader's turn", element(".task.yours"))
	s.click(".task .btn:first-of-type")
	s.await("the hint is shown", `document.querySelectorAll(".task p").length === 3`)
	s.click(".task .btn:last-of-type")
	s.await("the program shows it",
		element(".lesson .steps .primary")+`?.getAttribute("aria-disabled") === "false"`)
	assert.Empty(t, s.frames.now().Lesson.Error)
}

// A step that fails says so in one sentence, and is offered again.
func TestLessons_OfferAFailedStepAgain(t *testing.T) {
	s := newScene(t, desktop)
	s.openAt("lease", 0)
	s.click(".question .btn")
	s.until("the leader's clock is ahead", func(f lab.Frame) bool {
		return f.Lesson.State == "running" && f.Election.RenewedMs < -3_000_000
	})
	s.press("x") // no candidate can take over
	s.click(proceed)
	f := s.until("the step has failed", func(f lab.Frame) bool { return f.Lesson.Error != "" })
	s.await("the page says so", element(".lesson .hot")+`?.textContent === "This step did not work."`)
	assert.NotContains(t, s.texts(".lesson")[0], f.Lesson.Error)
	s.click(".lesson .again")
	s.until("the step begins again", func(f lab.Frame) bool { return f.Lesson.Error == "" })
	s.endStep("lease", 0, "en", func() { s.click(proceed) })
	s.await("the next step is offered",
		element(".lesson .steps .primary")+`?.getAttribute("aria-disabled") === "false"`)
}

// A reader who loads the page again in the middle of a task resumes it, and another page too.
func TestLessons_KeepATaskAcrossPages(t *testing.T) {
	t.Parallel()
	p := start(t, "run", "--objects", "6", "--rate", "0")
	s := &scene{program: p, frames: p.frames(), used: map[string]bool{}}
	s.tab = open(t, p.url+"/#lesson=ownwrite", desktop)
	yours := element(".task.yours")
	s.await("it is the reader's turn", yours)
	s.press("t")
	s.until("stalled", func(f lab.Frame) bool { return f.Server.Fault == "stall" })
	s.run(chromedp.Reload())
	s.await("the page was loaded again", shownFrame+` > 0`)
	s.await("it is the reader's turn again", yours)
	other := open(t, p.url+"/#lesson=ownwrite", desktop)
	other.await("it is the turn of both pages", yours)
	assert.Equal(t, "stall", s.frames.now().Server.Fault, "the step has not begun again")
	other.press("u")
	for _, page := range []*tab{s.tab, other} {
		page.await("the task is done", "!"+yours+" && "+
			element(".lesson .steps .primary")+`?.getAttribute("aria-disabled") === "false"`)
	}
	s.click(".lesson .steps .primary")
	s.await("the next step", element(".question"))
	s.click(".lesson .steps .btn:first-child")
	s.await("the task that is done", element(".task")+`?.textContent.startsWith("✓")`)
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
	s := newScene(t, desktop, "--faults")
	badge := func(want string) {
		s.await("the page says: "+want, `[...document.querySelectorAll(".state .badge")].some(
			(badge) => badge.textContent === `+quoted(want)+`)`)
	}
	badge("random faults")
	s.playLesson(1, s.program.lessons()[1], "en")
	badge("random faults")
	s.click(".lessons li:first-child button")
	badge("random faults pause during a lesson")
	s.click(button(","))
	s.click(".settings [name=faults]")
	s.click(".settings [type=submit]")
	s.until("no random faults", func(f lab.Frame) bool { return f.Settings.Faults == "off" })
}
