// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"

	"example.com/informerstack/cmd/informerstack/lab"
)

// countTokens counts the tokens that appear, and the cards that are lit.
const countTokens = `window.tokens = 0; window.lit = 0;
	const added = new MutationObserver((changes) => {
		for (const { addedNodes } of changes) window.tokens += addedNodes.length;
	});
	for (const layer of document.querySelectorAll(".tokens")) added.observe(layer, { childList: true });
	new MutationObserver((changes) => {
		for (const { target } of changes) window.lit += target.matches(".card.lit") ? 1 : 0;
	}).observe(document.querySelector("#flow"), { subtree: true, attributeFilter: ["class"] });
	true`

// Changes travel as tokens. A reader with reduced motion sees cards light up, and nothing moves.
func TestMotion_IsReducedOnRequest(t *testing.T) {
	t.Parallel()
	for name, moves := range map[string]bool{"moving": true, "still": false} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, look{width: 1440, height: 900, moving: moves})
			s.watching()
			s.await("the rails are drawn", `document.querySelectorAll(".rails .head").length === 8`)
			evaluate[bool](s.tab, countTokens)
			s.press("n", "u", "h", "n")
			s.frames.untilHop("worker", "reconciled", "")
			s.await("cards are lit", `window.lit > 2`)
			if moves {
				s.await("tokens travel", `window.tokens > 2`)
				return
			}
			s.await("no card is lit any more", `!document.querySelector(".card.lit")`)
			assert.Zero(t, evaluate[int](s.tab, "window.tokens"), "tokens")
			assert.Zero(t, evaluate[int](s.tab,
				`document.getAnimations().filter((a) => a.playState === "running").length`),
				"animations")
		})
	}
}

// The page has the theme of the system, until the reader chooses one.
func TestTheme_IsThatOfTheSystem(t *testing.T) {
	s := newScene(t, dark)
	shows := func(theme string) {
		t.Helper()
		s.await(theme, `document.documentElement.dataset.theme === `+quoted(theme)+` &&
			(getComputedStyle(document.body).backgroundColor === "rgb(18, 22, 27)") ===
			`+map[string]string{"dark": "true", "light": "false"}[theme])
	}
	shows("dark")
	s.show(desktop)
	shows("light")
	s.show(dark)
	shows("dark")
	s.press("b")
	shows("light")
	s.show(desktop)
	s.show(dark)
	shows("light")
}

// A phone shows one column that is not wider than its screen, and every control can be touched.
func TestPhone_HasOneColumn(t *testing.T) {
	s := newScene(t, phone)
	before := s.watching()
	fits := func(view string) {
		t.Helper()
		assert.Empty(t, evaluate[[]string](s.tab, `[...document.querySelectorAll("body *")]
			.filter((e) => e.getBoundingClientRect().right > innerWidth + 1 &&
				!e.closest(".rows, .hidden, .skip, .overlay, .set, .chips, dialog .keys"))
			.map((e) => e.outerHTML.slice(0, 120))`), "wider than the screen: %s", view)
		assert.LessOrEqual(t, evaluate[int](s.tab, "document.documentElement.scrollWidth"), 390,
			view)
	}
	fits("quiet")
	s.tap(button("n"))
	s.until("an object more", func(f lab.Frame) bool {
		return f.Store.Objects == before.Store.Objects+1
	})
	s.tap(".card-store .chip")
	s.await("the key is followed", element(".following .chip"))
	s.tap(button("f"))
	s.tap(button("u"))
	s.until("a retry", func(f lab.Frame) bool { return f.Workers.Outcomes["error"] > 0 })
	fits("a retry")
	s.tap(button("f"))
	s.tap(".tabs .tab:first-child")
	s.await("the lessons open", element(".lessons"))
	fits("the lessons")
	s.openQuestion(s.tap)
	s.tap(".question > .btn")
	s.await("an answer", element(".question [role=status]"))
	fits("an answer")
	s.tap(".tabs .tab:first-child")
	s.await("the panel closes", element(".panel.closed"))
	s.control = runFromHelp // the header of a phone has no button for them
	s.use("settings")
	s.await("the settings open", element("dialog .settings"))
	fits("the settings")
	s.tap("dialog .primary")
	s.await("the settings close", `!document.querySelector("dialog")`)
	small := evaluate[[]string](s.tab, `[...document.querySelectorAll(".btn, .tab")]
		.filter((e) => e.checkVisibility() && e.getBoundingClientRect().height < 30)
		.map((e) => e.outerHTML.slice(0, 120))`)
	assert.Empty(t, small, "too small for a finger")
}

// One is singular, in the messages that contain a number.
func TestTexts_CountOne(t *testing.T) {
	s := newScene(t, desktop)
	assert.Equal(t, []string{"1 object", "1,001 objects", "0 objects.", "1 key with failures",
		"+1 more", "1 个对象"}, evaluate[[]string](s.tab, `import("./lab/assets/text.js").then(
		({ t, setLanguage }) => {
			const english = [t("objects", { n: "1" }), t("objects", { n: "1,001" }),
				t("server.count", { n: 0 }), t("workqueue.limited", { n: 1 }), t("more", { n: 1 })];
			setLanguage("zh");
			return [...english, t("objects", { n: 1 })];
		})`))
}

// moved scrolls to the end of the page, and returns what changes its place within some seconds.
const moved = `(async () => {
	scrollTo({ top: document.documentElement.scrollHeight, behavior: "instant" });
	const top = (element) => Math.round(element.getBoundingClientRect().top);
	const elements = [...document.querySelectorAll(".card, .bar .btn")];
	const before = elements.map(top);
	const found = {};
	for (const end = performance.now() + %d; performance.now() < end;) {
		await new Promise((resolve) => requestAnimationFrame(resolve));
		elements.forEach((element, i) => {
			if (top(element) === before[i]) return;
			const name = (element.querySelector("h2") ?? element).textContent;
			found[name] = name + ": from " + before[i] + " to " + top(element);
		});
	}
	return Object.values(found);
})()`

// Nothing moves while the content of the cards changes, even when the page is scrolled. If a button
// moves before the mouse is released, the click is lost.
func TestPage_StaysInItsPlace(t *testing.T) {
	t.Parallel()
	const observed = 5 * time.Second
	for name, l := range map[string]look{
		"desktop": desktop, "tablet": tablet, "phone": phone,
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, l, "--rate", "40")
			s.use("fail")
			s.use("slow")
			s.until("retries and a backlog", func(f lab.Frame) bool {
				return f.Workqueue.DelayedTotal > 0 && f.Handlers[1].Pending > 0
			})
			assert.Empty(t, evaluate[[]string](s.tab, fmt.Sprintf(moved, observed.Milliseconds())))
		})
	}
}

// A plot is drawn again while it is in view, and not before.
func TestPlots_AreDrawnInView(t *testing.T) {
	s := newScene(t, phone)
	s.await("the plots", element(".plot canvas"))
	s.watching()
	evaluate[bool](s.tab, `(window.plots = 0, window.clear = CanvasRenderingContext2D.prototype.clearRect,
		CanvasRenderingContext2D.prototype.clearRect = function (...box) {
			window.plots++;
			window.clear.apply(this, box);
		}, true)`)
	s.frames.forget()
	for range 2 { // the page has several samples more
		s.use("change")
		s.frames.untilHop("worker", "reconciled", "")
		s.watching()
	}
	assert.Zero(t, evaluate[int](s.tab, "window.plots"))
	evaluate[bool](s.tab, element(".plot-depth")+`.scrollIntoView({ behavior: "instant" }), true`)
	s.await("it is drawn", "window.plots > 0")
	drawn := evaluate[int](s.tab, "window.plots")
	s.use("change")
	s.await("it is drawn again", fmt.Sprintf("window.plots > %d", drawn+1))
}

// The page follows the key that the pointer was pressed on, even if another key has taken its place
// before the release.
func TestPage_FollowsTheKeyThatWasPressed(t *testing.T) {
	s := newScene(t, desktop)
	s.watching()
	s.frames.forget()
	s.use("create") // the page has not seen the changes before it was open
	key := s.frames.untilHop("handler", "OnAdd", "").Key
	const cell = ".changelog .cell:last-child"
	s.await("the change is drawn", element(cell)+"?.dataset.key === "+quoted(key))
	at := s.find(cell)
	mouse := input.DispatchMouseEventParams{
		Type: chromedp.MousePressed, X: at.X, Y: at.Y, Button: input.MouseButtonLeft, ClickCount: 1,
	}
	call(s.tab, input.DispatchMouseEvent, mouse)
	s.use("create")
	s.await("another key is in its place", element(cell)+".dataset.key !== "+quoted(key))
	mouse.Type = chromedp.MouseReleased
	call(s.tab, input.DispatchMouseEvent, mouse)
	s.await("the page follows the pressed key",
		element(".following .chip")+"?.dataset.key === "+quoted(key))
}
