// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// edition is a static edition.
type edition struct {
	folder  string
	lessons []lesson // with their texts, in the order of their ids
}

var embeddedRecording = regexp.MustCompile(`(?s)id="recording">(.*?)</script>`)

// committed is the edition in the repository.
var committed = sync.OnceValues(func() (edition, error) {
	folder, err := filepath.Abs(filepath.Join("..", "..", "..", "..", "docs", "lessons"))
	if err != nil {
		return edition{}, err
	}
	return readEdition(folder)
})

// twoLessons is an edition that several tests share.
var twoLessons = sync.OnceValues(func() (edition, error) {
	return exportEdition("onadd", "slowhandler")
})

// exportEdition exports the lessons, or all of them.
func exportEdition(ids ...string) (edition, error) {
	folder, err := os.MkdirTemp(filepath.Dir(shared.program), "edition-")
	if err != nil {
		return edition{}, err
	}
	args := []string{"lab", "export", folder}
	for _, id := range ids {
		args = append(args, "--lesson", id)
	}
	if output, err := exec.Command(shared.program, args...).CombinedOutput(); err != nil {
		return edition{}, fmt.Errorf("%w: %s", err, output)
	}
	return readEdition(folder)
}

// readEdition reads the lessons from the pages of an edition.
func readEdition(folder string) (edition, error) {
	e := edition{folder: folder}
	pages, err := filepath.Glob(filepath.Join(folder, "*.html"))
	for _, page := range pages {
		content, err := os.ReadFile(page)
		if err != nil {
			return edition{}, err
		}
		var embedded struct{ Lessons []lesson }
		packed := embeddedRecording.FindSubmatch(content)
		if packed == nil {
			continue // the list
		}
		recording, err := gzip.NewReader(
			base64.NewDecoder(base64.StdEncoding, bytes.NewReader(packed[1])))
		if err != nil {
			return edition{}, err
		}
		if err := json.NewDecoder(recording).Decode(&embedded); err != nil {
			return edition{}, err
		}
		for _, l := range embedded.Lessons {
			if l.ID+".html" == filepath.Base(page) {
				e.lessons = append(e.lessons, l)
			}
		}
	}
	return e, err
}

// address is the file: URL of a page.
func (e edition) address(name string) string {
	return "file://" + filepath.ToSlash(filepath.Join(e.folder, name))
}

const (
	primary   = ".lesson .steps .primary"
	nextPage  = ".lesson .nextLesson"
	stepEnded = `.lesson .steps .primary[aria-disabled="false"]:not(.proceeds)`
	solution  = ".lesson .task.yours p:last-child .btn:last-child"
	seekAt    = `document.querySelector(".seek input").valueAsNumber`
	seekEnd   = `document.querySelector(".seek input").max - 10`
	serverRV  = `document.querySelector(".card-server header b").textContent`
)

// The pages of an edition need no program: a reader answers, sees the scene move, and reads on.
func TestEdition_PlaysFromFiles(t *testing.T) {
	t.Parallel()
	e, err := twoLessons()
	require.NoError(t, err)
	for name, l := range map[string]look{
		"moving": {width: 1440, height: 900, offline: true, moving: true},
		"phone":  {width: 390, height: 844, phone: true, offline: true},
		"dark":   {width: 1440, height: 900, offline: true, dark: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &scene{tab: open(t, e.address("onadd.html"), l)}
			s.reads(e.lessons[0], "zh")
			l.moving = false // one lesson with motion shows it
			s.show(l)
			s.click(nextPage + `[href="slowhandler.html"]`)
			s.await("the next lesson", `location.pathname.endsWith("/slowhandler.html") &&
				document.querySelector(".lesson")`)
			s.reads(e.lessons[1], "en")
			s.click(primary)
			s.await("the list", `document.links.length === 4`)
			s.click(`a[href^="onadd.html"][lang]`)
			s.await("a lesson in Chinese", `document.querySelector(".lesson")
				&& document.documentElement.lang === "zh-Hans"`)
		})
	}
}

// unpack is JavaScript that keeps the recording of a page as window.recording.
const unpack = `new Response(new Blob([Uint8Array.from(
	atob(document.getElementById("recording").textContent), (c) => c.charCodeAt(0))]).stream()
	.pipeThrough(new DecompressionStream("gzip"))).json().then((all) => { window.recording = all })`

// hurries is a reader who plays five times as fast.
func (p *tab) hurries() {
	p.t.Helper()
	p.choose(".time select", "5")
}

// reads plays a lesson to its end. A reader of English guesses wrong, a reader of Chinese is right.
func (s *scene) reads(l lesson, language string) {
	s.t.Helper()
	s.await("the lesson", element(".lesson"))
	evaluate[bool](s.tab, unpack+".then(() => true)")
	s.hurries()
	if evaluate[string](s.tab, "document.documentElement.lang.slice(0, 2)") != language {
		s.press("z")
	}
	for n, step := range l.Steps {
		s.shows(".lesson h2", l.Title, language)
		s.shows(".lesson .text", step.Text, language)
		if step.Question != nil {
			if n > 0 {
				s.await("the step before has been played", seekAt+" >= "+seekEnd)
			}
			before := evaluate[string](s.tab, serverRV)
			assert.Equal(s.t, before, evaluate[string](s.tab, serverRV), "nothing plays yet")
			s.guess(*step.Question, language)
		}
		if evaluate[bool](s.tab, element(".lesson .task")+" != null") {
			s.click(solution)
		}
		if n == 0 {
			s.await("the scene moves", serverRV+` !==
				window.recording.frames[0].server.rv`)
		}
		s.continues()
		s.pointsAt(step.Watch)
		if len(step.After) > 0 {
			s.shows(".lesson .text:not([aria-live] *)", step.After, language)
		}
		assert.Empty(s.t, s.texts(".lesson [role=alert]"))
		if n < len(l.Steps)-1 {
			s.click(primary)
		}
	}
	s.await("the lesson is remembered", fmt.Sprintf(
		`localStorage.getItem("informerstack.lessons").split(" ").includes(%q)`, l.ID))
	assert.Empty(s.t, s.texts(button("n")), "nothing can be changed")
	assert.Empty(s.t, s.texts(button(",")), "there are no settings")
}

// continues waits for the end of a recorded step, and continues after each stop.
func (p *tab) continues() {
	p.t.Helper()
	for {
		p.await("the step has ended or stopped", element(stepEnded)+" || "+element(proceed))
		if !evaluate[bool](p, "Boolean("+element(proceed)+")") {
			return
		}
		assert.NotEmpty(p.t, p.texts(stopText))
		p.click(proceed)
		p.await("it continues", "!"+element(".stop"))
	}
}

// The repository has every lesson, and its page plays from the disk. Its links lead to files.
// Without the flag -every-lesson, one page in three is opened: package lab compares each with the
// lesson.
func TestEdition_HasEveryLesson(t *testing.T) {
	t.Parallel()
	e, err := committed()
	require.NoError(t, err)
	assert.Len(t, e.lessons, len(start(t, "run", "--rate", "0").lessons()))
	for i, l := range e.lessons {
		if i%3 != 0 && !*everyLesson {
			continue
		}
		t.Run(l.ID, func(t *testing.T) {
			t.Parallel()
			alone := look{width: 1440, height: 900, offline: true}
			s := &scene{tab: open(t, e.address(l.ID+".html"), alone)}
			s.reads(l, "zh")
			links := evaluate[[]string](s.tab, `[...document.querySelectorAll(".links a")]
				.map((link) => link.href)`)
			require.Len(t, links, len(l.Links))
			for _, link := range links {
				parsed, err := url.Parse(link)
				require.NoError(t, err)
				assert.Equal(t, "file", parsed.Scheme)
				assert.FileExists(t, filepath.FromSlash(parsed.Path))
			}
		})
	}
}

// The repository on a web server without any program: the list, a lesson at the slow pace with its
// captions, and the chapter that it links to.
func TestEdition_PlaysFromAWebServer(t *testing.T) {
	t.Parallel()
	e, err := committed()
	require.NoError(t, err)
	server := httptest.NewServer(http.FileServer(
		http.Dir(filepath.Join(e.folder, "..", ".."))))
	t.Cleanup(server.Close)
	s := &scene{tab: openDocument(t, server.URL+"/docs/lessons/", desktop)}
	s.click(`a[href="first.html#lang=en"]`)
	s.await("the lesson", element(".lesson"))
	s.await("a caption", element(".caption b"))
	assert.Equal(t, "1", evaluate[string](s.tab, `document.querySelector(".time select").value`))
	s.hurries()
	address := evaluate[string](s.tab, `[...document.querySelectorAll(".links a")]
		.find((link) => link.pathname.endsWith("tour.md")).href`)
	assert.Equal(t, server.URL+"/docs/tour.md", address)
}

// The lessons before a post are played in the program's reader, too.
func TestEdition_PlaysFromAPost(t *testing.T) {
	t.Parallel()
	p := start(t, "run", "--rate", "0")
	s := &scene{tab: openDocument(t, p.url+"/read/docs/zh/posts/work-queue.md", desktop)}
	s.click(`a[href$="onekey.html#step=2&lang=zh"]`)
	s.await("the lesson in Chinese", element("html[lang=zh-Hans] .lesson"))
	e, err := committed()
	require.NoError(t, err)
	at := slices.IndexFunc(e.lessons, func(l lesson) bool { return l.ID == "onekey" })
	s.guess(*e.lessons[at].Steps[1].Question, "zh")
	s.await("the decisive frame, one click after the link", element(".stop"))
	s.tab = openDocument(t, p.url+"/read/docs/lessons/index.html", desktop)
	s.click(`a[href="first.html#lang=en"]`)
	s.await("the lesson", element(".lesson"))
}

// guess chooses an option of a question: a wrong one in English, the right one in Chinese.
func (s *scene) guess(q question, language string) {
	s.t.Helper()
	s.shows(".question legend", q.Ask, language)
	if len(q.Options) == 0 { // it asks for a card
		s.click(".question .btn.quiet")
		return
	}
	var texts []string // of the options that the reader may choose
	for _, o := range q.Options {
		if o.Right == (language == "zh") {
			texts = append(texts, o.Text.shown(language))
		}
	}
	evaluate[bool](s.tab, fmt.Sprintf(`[...document.querySelectorAll(".question .option")].find(
		(option) => %s.includes(option.lastElementChild.textContent)).id = "guess", true`,
		list(texts)))
	s.click("#guess")
	mark := map[string]string{"en": ".wrong", "zh": ".right"}[language]
	s.await("the guess is marked", element(".question .option[aria-pressed=true]"+mark))
	if language == "en" {
		s.click(".question > .btn") // gives up
	}
}

// A reader without a mouse plays a lesson, moves within a step, and starts again.
func TestEdition_IsPlayedByKeyboard(t *testing.T) {
	t.Parallel()
	e, err := twoLessons()
	require.NoError(t, err)
	s := &scene{tab: open(t, e.address("onadd.html"), desktop)}
	s.await("the reader's turn", element(".task.yours"))
	s.hurries()
	s.tabTo(".task .btn:last-child")
	s.press(kb.Enter) // the solution
	s.await("the step has ended", element(stepEnded))
	s.await("it plays to the end", seekAt+" >= "+seekEnd)
	s.press(kb.ArrowLeft, kb.ArrowLeft)
	s.await("it moves back", seekAt+" < "+seekEnd)
	s.press(" ")
	s.await("it plays to the end", seekAt+" >= "+seekEnd)
	s.press(" ")
	s.await("it plays again", seekAt+" < "+seekEnd)
	s.await("the step stays ended", element(stepEnded))
	s.tabTo(primary)
	s.press(kb.Enter)
	s.await("the question", element(".question"))
	s.tabTo(".question > .btn") // shows the answer
	s.press(kb.Enter)
	s.await("the focus is not lost", "document.activeElement.matches("+quoted(primary)+")")
	s.await("it stops", "document.activeElement.matches("+quoted(proceeds)+")")
	s.press(kb.Enter)
	s.await("the step has ended", element(stepEnded))
	s.await("the focus stays", "document.activeElement.matches("+quoted(primary)+")")
	s.press("r") // no command of the program
	assert.Empty(t, s.texts(".problem"))
	s.press(kb.Tab)
	s.await("the next lesson is offered", "document.activeElement.matches("+quoted(nextPage)+")")
	s.press(kb.Enter)
	s.await("the next lesson", `location.pathname.endsWith("/slowhandler.html")`)

	evaluate[bool](s.tab, "setTimeout(() => history.back()), true") // back once: see evaluate
	s.await("the lesson is at the same step", `location.pathname.endsWith("/onadd.html") &&
		document.querySelector(".question .option:enabled")`)
	evaluate[bool](s.tab, unpack+".then(() => true)")
	assert.Equal(t, evaluate[string](s.tab, `(() => {
		const { frames, starts } = window.recording;
		return frames.slice(0, starts[1]).findLast((frame) => frame.server).server.rv;
	})()`), evaluate[string](s.tab, serverRV), "the pipeline is as before the step")
	s.click(".question > .btn")
	s.continues()
}

// axe-core finds nothing serious in an edition, in both themes.
func TestEdition_IsAccessible(t *testing.T) {
	t.Parallel()
	e, err := twoLessons()
	require.NoError(t, err)
	for name, l := range looks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &scene{tab: open(t, e.address("onadd.html"), l)}
			evaluate[bool](s.tab, axe+"; true")
			s.hurries()
			s.accessible("a step plays")
			s.click(solution)
			s.await("the step has ended", element(stepEnded))
			s.click(primary)
			s.await("the question", element(".question"))
			s.accessible("an open question")
			s.click(".question > .btn")
			s.accessible("the last step plays")
			s.await("it stops", element(stopText))
			s.accessible("a stop")
			s.continues()
			s.accessible("the end")
			s.click(".lesson > .btn.quiet")
			s.await("the list", `document.links.length === 4`)
			evaluate[bool](s.tab, axe+"; true")
			s.accessible("the list")
		})
	}
}

// A page fits into a narrow iframe of another page.
func TestEdition_FitsIntoAnIframe(t *testing.T) {
	t.Parallel()
	e, err := twoLessons()
	require.NoError(t, err)
	post := filepath.Join(e.folder, "post.html")
	require.NoError(t, os.WriteFile(post, []byte(`<!doctype html><title>A post</title>
<p>Text</p><iframe src="onadd.html#lang=zh" title="Lesson" width="380" height="700"></iframe>`),
		0o600))
	p := openDocument(t, e.address("post.html"), desktop)
	p.await("the iframe is loaded", "window[0]")
	frame := p.isolated(1)
	frame(`document.querySelector(".lesson .text") && document.documentElement.lang === "zh-Hans"`)
	frame(`document.documentElement.scrollWidth <= 380`)
	frame(`document.querySelector(".time select").value = "5"`)
	frame(`document.querySelector(".time select").dispatchEvent(
		new Event("change", { bubbles: true }))`)
	frame(`document.querySelector(` + quoted(solution) + `)?.click() === undefined &&
		document.querySelector(` + quoted(stepEnded) + `)`)
	frame(`document.querySelector(` + quoted(primary) + `).click() ?? true`)
	frame(`document.querySelector(".question > .btn").click() ?? true`)
	frame(`document.querySelector(` + quoted(proceed) + `).click() ?? true`)
	frame(`document.querySelector(` + quoted(stepEnded) + `)`)
	frame(`document.documentElement.scrollWidth <= 380`)
	frame(`[...document.querySelectorAll(".lesson *")].every(
		(e) => e.getBoundingClientRect().right <= 381 || e.closest(".hidden"))`)
}

// isolated returns a function that waits until an expression is true in the n-th iframe.
func (p *tab) isolated(n int) (awaits func(condition string)) {
	p.t.Helper()
	tree := call(p, page.GetFrameTree, cdp.Empty{}).FrameTree
	require.Len(p.t, tree.ChildFrames, n)
	world := call(p, page.CreateIsolatedWorld, page.CreateIsolatedWorldParams{
		FrameID: tree.ChildFrames[n-1].Frame.ID,
	}).ExecutionContextID
	return func(condition string) {
		p.t.Helper()
		require.Eventually(p.t, func() bool {
			answer := call(p, runtime.Evaluate, runtime.EvaluateParams{
				Expression: "Boolean(" + condition + ")", ContextID: world,
				ReturnByValue: new(true),
			})
			return string(answer.Result.Value) == "true"
		}, patience, patience/1000, condition)
	}
}
