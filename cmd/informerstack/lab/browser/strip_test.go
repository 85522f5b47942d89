// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"

	"example.com/informerstack/cmd/informerstack/lab"
)

// inView is true if the card of a piece is between the strip and the panel, at least with its top.
func inView(piece string) string {
	return fmt.Sprintf(`((card, strip, panel) => {
		const end = getComputedStyle(panel).position === "fixed"
			? panel.getBoundingClientRect().top : innerHeight;
		return card.top >= strip.bottom - 1 && Math.min(card.bottom, card.top + 150) <= end;
	})(document.getElementById("card-%s").getBoundingClientRect(),
		document.querySelector(".lead").getBoundingClientRect(), document.querySelector(".panel"))`,
		piece)
}

// stripInView is true if the strip with all its pieces is in view.
const stripInView = `[...document.querySelectorAll(".strip button")].filter((button) => {
	const { top, bottom } = button.getBoundingClientRect();
	const hit = document.elementFromPoint(button.getBoundingClientRect().left + 4, top + 4);
	return top >= 0 && bottom <= innerHeight && button.contains(hit);
}).length === 8`

// path has the pieces that a change passes, in its order.
var path = []string{"server", "queue", "store", "handlers", "workqueue", "workers"}

// On a small screen the strip of the pieces stays in view, the tokens travel along it, and the page
// shows the card that the change has reached. With reduced motion, no token travels.
func TestStrip_FollowsAChange(t *testing.T) {
	t.Parallel()
	moves := phone
	moves.moving = true
	for name, l := range map[string]look{"moving": moves, "laptop": laptop, "still": phone} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, l)
			s.watching()
			evaluate[bool](s.tab, `(window.tokens = 0, new MutationObserver((changes) => {
				for (const { addedNodes } of changes) { // a held token rests
					window.tokens += [...addedNodes].filter((token) => !token.matches(".held")).length;
				}
			}).observe(document.querySelector(".strip .tokens"), { childList: true }), true)`)
			s.pause()
			for _, piece := range path {
				s.stepTo(piece)
				s.await("the strip and the card of "+piece, stripInView+" && "+inView(piece))
			}
			tokens := evaluate[int](s.tab, "window.tokens")
			assert.Equal(t, l.moving, tokens > 0, "%d tokens in the strip", tokens)
		})
	}
}

// pause holds a change of a followed key.
func (s *scene) pause() {
	s.t.Helper()
	s.follow(".card-store .chip")
	evaluate[bool](s.tab, "document.activeElement.blur(), true") // a chip has keys of its own
	s.press(" ")
	s.until("paused", func(f lab.Frame) bool { return f.Mode == lab.Pause })
	s.use("change")
	s.until("the change is held", func(f lab.Frame) bool { return len(f.Held) > 0 })
}

// stripAt is the piece that the strip marks.
const stripAt = `document.querySelector(".strip [aria-current]")?.dataset.piece`

// stepTo lets hops happen until the strip marks the piece.
func (s *scene) stepTo(piece string) {
	s.t.Helper()
	for range 20 {
		before := s.frames.now()
		s.use("step")
		s.until("a step", func(f lab.Frame) bool {
			return f.Counters.Events > before.Counters.Events
		})
		if evaluate[string](s.tab, stripAt) == piece {
			return
		}
	}
	s.t.Fatalf("the strip never marks %s", piece)
}

// When a lesson stops, a phone shows its sentence and all cards that it points to.
func TestStrip_ShowsWhereALessonStops(t *testing.T) {
	s := newScene(t, phone)
	s.openAt("first", 0)
	s.await("it stops", element(stopText))
	s.await("the sentence and the cards are in view", `(([lead, stop, panel], cards) =>
		cards.length > 1 && stop.top >= 0 && stop.bottom <= lead.bottom &&
		cards.every(({ top, bottom }) => top >= lead.bottom - 1 && bottom <= panel.top + 1)
	)([".lead", ".stop", ".panel"].map((part) =>
		document.querySelector(part).getBoundingClientRect()),
	[...document.querySelectorAll(".card.pointed")].map((card) => card.getBoundingClientRect()))`)
}

// The strip names a leader only while one leads. The lease may name a candidate that does not lead.
func TestStrip_NamesNoLeaderWithoutOne(t *testing.T) {
	s := newScene(t, phone)
	election := element(`.strip [data-piece="election"] small`) + ".textContent"
	s.await("a leader", `/^leader [ab]$/.test(`+election+`)`)
	s.use("kill")
	s.until("the lease names the candidate that was killed", func(f lab.Frame) bool {
		return f.Election.LeftMs == 0 && f.Election.Holder != ""
	})
	s.await("no leader", election+` === "no leader"`)
}

// A reader who scrolls is left alone, until a tap on the strip leads to a card. The focus is on its
// heading then.
func TestStrip_LeavesAReaderAlone(t *testing.T) {
	s := newScene(t, phone)
	s.watching()
	s.choose(".slow input", "5")
	s.until("slow", func(f lab.Frame) bool { return f.Mode == lab.Slow })
	call(s.tab, input.DispatchMouseEvent, input.DispatchMouseEventParams{
		Type: chromedp.MouseWheel, X: 4, Y: 500, DeltaX: 1, DeltaY: 2000,
	})
	s.await("the reader is far down", "scrollY > 1000")
	before := evaluate[float64](s.tab, "scrollY")
	s.frames.forget()
	s.use("change")
	s.frames.untilHop("worker", "reconciled", "")
	s.watching()
	assert.InDelta(t, before, evaluate[float64](s.tab, "scrollY"), 1)

	s.tap(`.strip [data-piece="store"]`)
	s.await("the store", inView("store"))
	assert.True(t, evaluate[bool](s.tab, `document.activeElement.matches("#card-store .title")`))
}

// A screen that is large enough has no strip.
func TestStrip_IsForSmallScreens(t *testing.T) {
	s := newScene(t, desktop)
	for _, l := range []look{desktop, {width: 1280, height: 800}, {width: 1920, height: 1080}} {
		s.show(l)
		s.await("no strip", `!document.querySelector(".strip").checkVisibility()`)
	}
	for _, l := range []look{phone, laptop, tablet, {width: 1366, height: 600}} {
		s.show(l)
		s.await("a strip", stripInView)
	}
}
