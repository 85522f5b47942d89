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
			t.Parallel()
			s := newScene(t, l, "--rate", "40")
			s.control = pressKey
			s.use("fail")
			s.use("slow")
			s.until("retries and a backlog", func(f lab.Frame) bool {
				return f.Workqueue.DelayedTotal > 0 && f.Handlers[1].Pending > 0
			})
			assert.Empty(t, evaluate[[]string](s.tab, fmt.Sprintf(moved, observed.Milliseconds())))
		})
	}
}

// The page follows the key that the pointer was pressed on, even if another key has taken its place
// before the release.
func TestPage_FollowsTheKeyThatWasPressed(t *testing.T) {
	t.Parallel()
	s := newScene(t, desktop)
	s.control = pressKey
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
