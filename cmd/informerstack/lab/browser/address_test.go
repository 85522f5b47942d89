// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"

	"example.com/informerstack/cmd/informerstack/lab"
)

// An address leads to a step of a lesson, in a language and at a speed. A reader who loads the page
// again, or follows another address, finds the same.
func TestAddress_LeadsToAStep(t *testing.T) {
	t.Parallel()
	p := start(t, "run", "--objects", "6", "--rate", "2")
	frames := p.frames()
	s := open(t, p.url+"/#lesson=resume&step=3&lang=zh&speed=full", desktop)
	s.await("the page is Chinese", `document.documentElement.lang === "zh-Hans"`)
	ready := `[...document.querySelectorAll(".lesson .progress .done")].length === %d &&
		document.querySelector(".lesson .task.yours") != null`
	s.await("the third step is the reader's turn", strings.Replace(ready, "%d", "3", 1))
	f := frames.now()
	assert.Equal(t, "resume", f.Lesson.ID)
	assert.Equal(t, 2, f.Lesson.Step)
	assert.Empty(t, f.Lesson.Error)

	s.run(chromedp.Reload())
	s.await("the page was loaded again", shownFrame+` > 0`)
	s.await("the step is shown", strings.Replace(ready, "%d", "3", 1))
	assert.Equal(t, f.Lesson, frames.now().Lesson, "it is not played again")

	evaluate[bool](s, `location.hash = "lesson=onadd&lang=zh", true`)
	s.await("another lesson begins", strings.Replace(ready, "%d", "1", 1))
	assert.Equal(t, "onadd", frames.now().Lesson.ID)
	s.click(".lesson .steps .btn:first-child")
	s.await("the address has no lesson", `location.hash === "#lang=zh"`)
	frames.until("the load continues", func(f lab.Frame) bool { return f.Settings.Rate == 2 })
}

// An address that leads to a question shows the pipeline as the question describes it.
func TestAddress_LeadsToAQuestion(t *testing.T) {
	t.Parallel()
	p := start(t, "run", "--objects", "6", "--rate", "0")
	frames := p.frames()
	s := open(t, p.url+"/#lesson=onekey&step=2", desktop)
	s.await("each card is an answer", element(".card .pick"))
	frames.until("the call hangs", func(f lab.Frame) bool {
		return f.Lesson != nil && f.Lesson.State == "done" && f.Workers.Fault == "hang"
	})
	s.click("#card-workqueue .pick")
	s.click(proceed)
	f := frames.until("the step is played", func(f lab.Frame) bool {
		return f.Lesson.Step == 1 && f.Lesson.State == "done"
	})
	assert.Empty(t, f.Lesson.Error)
}

// Two pages of one program: the one that does not play any more says so, and plays again.
func TestAddress_TwoPages(t *testing.T) {
	t.Parallel()
	p := start(t, "run", "--objects", "6", "--rate", "0")
	one := open(t, p.url+"/#lesson=onadd", desktop)
	yours := element(".lesson .task.yours")
	one.await("the step is played", yours)
	two := open(t, p.url+"/#lesson=resume", desktop)
	two.await("the other step is played", yours)
	one.await("the first page says that it does not play", element(".lesson p .btn"))
	one.click(".lesson p .btn")
	one.await("it plays again", yours)
	two.await("the second page says that it does not play", element(".lesson p .btn"))
}

// A teacher's page has large type, and turns its steps with the arrow keys: they also show the
// solution of a task, and the answer of a question.
func TestAddress_Teacher(t *testing.T) {
	t.Parallel()
	p := start(t, "run", "--objects", "6", "--rate", "0")
	frames := p.frames()
	s := open(t, p.url+"/#lesson=onadd&teach", desktop)
	s.await("the first step is a task", element(".lesson .task.yours"))
	large := evaluate[string](s,
		`getComputedStyle(document.querySelector(".lesson .text")).fontSize`)
	assert.Equal(t, "20px", large)
	s.press(kb.ArrowRight)
	s.await("the task is done",
		element(".lesson .steps .primary")+`?.getAttribute("aria-disabled") === "false"`)
	s.press(kb.ArrowRight)
	s.await("the question is asked", element(".question .option:enabled"))
	s.press(kb.ArrowRight)
	s.await("the answer is shown", element(".question .option.right"))
	s.await("it stops", element(stopText))
	s.press(kb.ArrowRight)
	frames.until("the step is played", func(f lab.Frame) bool {
		return f.Lesson != nil && f.Lesson.Step == 1 && f.Lesson.State == "done"
	})
	s.press(kb.ArrowLeft)
	s.await("the step before is shown", "!"+element(".question"))
}
