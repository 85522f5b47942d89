// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"fmt"
	"slices"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/cmd/informerstack/lab"
)

// focused describes the element that has the focus.
type focused struct {
	Path    string // "" outside of the page
	Visible bool   // it is on the screen, and has an outline
}

// focus returns the element that has the focus. Its path is unique.
func (s *scene) focus() focused {
	s.t.Helper()
	return evaluate[focused](s.tab, `(() => {
		const at = document.activeElement;
		if (!at || at === document.body) return { Path: "", Visible: true };
		let Path = "";
		for (let e = at; e !== document.body; e = e.parentElement) {
			Path = "/" + e.localName + [...e.parentElement.children].indexOf(e) + Path;
		}
		const r = at.getBoundingClientRect();
		const style = getComputedStyle(at);
		const hit = document.elementFromPoint(r.left + r.width / 2, r.top + r.height / 2);
		const Visible = at.matches(":focus-visible") && style.outlineStyle !== "none" &&
			(at.contains(hit) || at.matches(".flow"));
		return { Path, Visible };
	})()`)
}

// tabTo presses Tab until the focus is on an element.
func (s *scene) tabTo(selector string) {
	s.t.Helper()
	for range 120 {
		s.press(kb.Tab)
		if evaluate[bool](s.tab, "document.activeElement.matches("+quoted(selector)+")") {
			return
		}
	}
	require.Fail(s.t, "Tab does not reach "+selector)
}

// Tab reaches every control of the page, each one visibly, and leaves the page at its end.
func TestKeyboard_ReachesEveryControl(t *testing.T) {
	s := newScene(t, desktop)
	s.watching()
	reached := map[string]bool{}
	for range 120 {
		s.press(kb.Tab)
		at := s.focus()
		if at.Path == "" || reached[at.Path] {
			break
		}
		reached[at.Path] = true
		assert.True(t, at.Visible, "the focus is not visible at %s", at.Path)
	}
	controls := evaluate[int](s.tab, `[...document.querySelectorAll(
		"button:enabled, select:enabled, input:enabled, a[href]")]
		.filter((control) => control.tabIndex >= 0 && control.checkVisibility()).length`)
	// A scrolled list is a stop of its own.
	assert.GreaterOrEqual(t, len(reached), controls, "stops of Tab")
}

// The first stop skips the header.
func TestKeyboard_SkipsTheHeader(t *testing.T) {
	s := newScene(t, desktop)
	s.press(kb.Tab)
	s.await("the link is shown", `document.activeElement.matches(".skip") &&
		document.activeElement.getBoundingClientRect().width > 40`)
	s.press(kb.Enter)
	s.await("the pipeline has the focus", `document.activeElement.id === "flow"`)
	s.press(kb.Tab)
	s.await("the next stop is in the pipeline", `document.activeElement.closest("#card-server")`)
}

// The arrow keys move within a list of keys, Enter follows a key, and Escape ends that.
func TestKeyboard_FollowsAKey(t *testing.T) {
	s := newScene(t, desktop)
	s.watching()
	s.tabTo(".card-store .chip")
	s.press(kb.ArrowDown)
	s.await("the second key has the focus", `document.activeElement ===
		document.querySelectorAll(".card-store .tiles .chip")[1]`)
	s.press(kb.Enter)
	s.await("it is followed", `document.querySelector(".following .chip")?.dataset.key ===
		document.activeElement.dataset.key`)
	s.press(kb.Escape)
	s.await("it is not followed any more", `!document.querySelector(".following")`)
}

// A lesson can be played with the keyboard alone, also one that asks for a card: the focus stays in
// the lesson.
func TestKeyboard_PlaysALesson(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"onadd", "resync"} {
		t.Run(id, func(t *testing.T) {
			newScene(t, desktop).playByKeys(id)
		})
	}
}

// playByKeys plays a lesson with the keyboard.
func (s *scene) playByKeys(id string) {
	s.t.Helper()
	lessons := s.program.lessons()
	at := slices.IndexFunc(lessons, func(l lesson) bool { return l.ID == id })
	s.press("j")
	s.tabTo(fmt.Sprintf(".lessons li:nth-child(%d) button", at+1))
	s.press(kb.Enter)
	for n, step := range lessons[at].Steps {
		s.await("the focus is in the lesson", `document.activeElement.closest(".lesson")`)
		if q := step.Question; q != nil {
			answer := ".question > .btn"
			if q.Where != "" {
				answer = "#card-" + q.Where + " .pick"
			}
			s.tabTo(answer)
			s.press(" ")
			s.await("the answer is shown", element(".question [role=status]"))
			s.await("the focus is in the lesson", `document.activeElement.closest(".lesson")`)
		}
		if step.Task != nil {
			s.await("it is the reader's turn", element(".task.yours"))
			for _, c := range step.Task.Solution {
				s.perform(c)
			}
		}
		s.endStep(id, n, "en", func() { s.press(" ") })
		if !evaluate[bool](s.tab, `document.activeElement.matches(".steps .primary")`) {
			s.tabTo(".lesson .steps .primary")
		}
		s.press(kb.Enter)
	}
	s.await("the list has the focus", `document.activeElement.closest(".lessons")`)
}

// Keys that belong to a field are not commands.
func TestKeyboard_LeavesFieldsAlone(t *testing.T) {
	s := newScene(t, desktop)
	before := s.watching()
	s.tabTo(".slow input")
	s.press(kb.ArrowRight)
	s.until("slow", func(f lab.Frame) bool { return f.Mode == lab.Slow && f.DelayMs == 50 })
	s.press(kb.ArrowLeft)
	s.until("full speed", func(f lab.Frame) bool { return f.Mode == lab.Run })
	s.tabTo(".index select")
	s.press("l")
	s.until("the list takes the letter", func(f lab.Frame) bool {
		return f.Store.Index.Name != "namespace"
	})
	s.press(kb.Tab, ",")
	s.await("the settings open", element("dialog .settings"))
	assert.Equal(t, before.Election.Token, s.frames.now().Election.Token, "l is no command there")
}
