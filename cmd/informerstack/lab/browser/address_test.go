// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"strings"
	"testing"

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
	s := open(t, p.url+"/#lesson=resume&step=2&lang=zh&speed=full", desktop)
	s.await("the page is Chinese", `document.documentElement.lang === "zh-Hans"`)
	ready := `[...document.querySelectorAll(".lesson .progress .done")].length === %d &&
		document.querySelector(".lesson .steps .primary")?.getAttribute("aria-disabled") === "false"`
	s.await("the second step is played", strings.Replace(ready, "%d", "2", 1))
	f := frames.now()
	assert.Equal(t, "resume", f.Lesson.ID)
	assert.Equal(t, 1, f.Lesson.Step)
	assert.Empty(t, f.Lesson.Error)

	evaluate[bool](s, "location.reload(), true")
	s.await("the page was loaded again", `performance.now() < 60000 && `+shownFrame+` > 0`)
	s.await("the step is shown", strings.Replace(ready, "%d", "2", 1))
	assert.Equal(t, f.Lesson, frames.now().Lesson, "it is not played again")

	evaluate[bool](s, `location.hash = "lesson=onadd&lang=zh", true`)
	s.await("another lesson begins", strings.Replace(ready, "%d", "1", 1))
	assert.Equal(t, "onadd", frames.now().Lesson.ID)
	s.click(".lesson .steps .btn:first-child")
	s.await("the address has no lesson", `location.hash === "#lang=zh"`)
	frames.until("the load continues", func(f lab.Frame) bool { return f.Settings.Rate == 2 })
}

// Two pages of one program: the one that does not play any more says so, and plays again.
func TestAddress_TwoPages(t *testing.T) {
	t.Parallel()
	p := start(t, "run", "--objects", "6", "--rate", "0")
	one := open(t, p.url+"/#lesson=onadd", desktop)
	primary := element(".lesson .steps .primary") + `?.getAttribute("aria-disabled") === "false"`
	one.await("the step is played", primary)
	two := open(t, p.url+"/#lesson=resume", desktop)
	two.await("the other step is played", primary)
	one.await("the first page says that it does not play", element(".lesson p .btn"))
	one.click(".lesson p .btn")
	one.await("it plays again", primary)
	two.await("the second page says that it does not play", element(".lesson p .btn"))
}

// A teacher's page has large type, and turns its steps with the arrow keys: first the question,
// then its answer.
func TestAddress_Teacher(t *testing.T) {
	t.Parallel()
	p := start(t, "run", "--objects", "6", "--rate", "0")
	frames := p.frames()
	s := open(t, p.url+"/#lesson=onadd&teach", desktop)
	s.await("the step is played",
		element(".lesson .steps .primary")+`?.getAttribute("aria-disabled") === "false"`)
	large := evaluate[string](s,
		`getComputedStyle(document.querySelector(".lesson .text")).fontSize`)
	assert.Equal(t, "20px", large)
	s.press(kb.ArrowRight)
	s.await("the question is asked", element(".question .option:enabled"))
	s.press(kb.ArrowRight)
	s.await("the answer is shown", element(".question .option.right"))
	frames.until("the step is played", func(f lab.Frame) bool {
		return f.Lesson != nil && f.Lesson.Step == 1 && f.Lesson.State == "done"
	})
	s.press(kb.ArrowLeft)
	s.await("the step before is shown", "!"+element(".question"))
}
