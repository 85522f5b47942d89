// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"example.com/informerstack/cmd/informerstack/lab"
)

// laptop is a small laptop, or half of a screen.
var laptop = look{width: 1024, height: 700}

// sizes are the screens on which every text can be read.
var sizes = []look{
	phone, laptop, {width: 1280, height: 800}, {width: 1920, height: 1080},
}

// misfits returns the texts that are cut or that a ring covers:
//
//   - No element cuts a text, with an ellipsis or without, unless it is a key: that has its name as
//     a tooltip, and shows leastKey characters of it at least.
//   - The text in a card ends where the card's buttons begin, unless it can be scrolled.
//   - The ring around a key or a card does not reach another text.
const misfits = `(async (leastKey) => {
	await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
	const found = new Set();
	const note = (what, { data, parentElement }) => found.add(what + ": " + data.trim() + " in " +
		(parentElement.closest("[id]")?.id || "?") + " ." + parentElement.className);
	const rangeOf = (text) => {
		const range = document.createRange();
		range.selectNodeContents(text);
		return range;
	};
	// within is the part of a box that an element shows.
	const within = (box, around) => {
		const end = around.getBoundingClientRect();
		const { overflowX, overflowY } = getComputedStyle(around);
		const [x, y] = [overflowX !== "visible", overflowY !== "visible"];
		return {
			left: x ? Math.max(box.left, end.left) : box.left, top: y ? Math.max(box.top, end.top) : box.top,
			right: x ? Math.min(box.right, end.right) : box.right,
			bottom: y ? Math.min(box.bottom, end.bottom) : box.bottom,
		};
	};
	const upFrom = function* (element) {
		for (; element && element !== document.body; element = element.parentElement) yield element;
	};
	const texts = [];
	const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (walker.nextNode()) {
		const text = walker.currentNode;
		const element = text.parentElement;
		if (!text.data.trim() || !element.checkVisibility()) continue;
		if (element.closest(".hidden, .skip, .overlay, option, script, noscript")) continue;
		if ([...upFrom(element)].some((around) => getComputedStyle(around).clipPath !== "none")) continue;
		texts.push({ text, element, box: rangeOf(text).getBoundingClientRect() });
	}
	for (const entry of texts) {
		const { text, element, box } = entry;
		entry.seen = box;
		let scrolls = false;
		for (const around of upFrom(element)) {
			const { overflowX, overflowY } = getComputedStyle(around);
			const before = entry.seen;
			const seen = (entry.seen = within(before, around));
			if (before.right - before.left > seen.right - seen.left + 1 && !around.matches(".top")) {
				const key = around.matches("[data-key][title]");
				const letters = (around.clientWidth - 12) / ((box.right - box.left) / text.data.length);
				if (!key || letters < leastKey) note("cut", text);
			}
			if (!scrolls && /hidden|clip/.test(overflowY) && before.bottom > seen.bottom + 2) note("cut below", text);
			scrolls ||= /auto|scroll/.test(overflowY);
			const end = around.getBoundingClientRect().bottom;
			if (!scrolls && around.matches(".body") && box.bottom > end + 1) note("over the buttons", text);
		}
	}
	for (const ring of document.querySelectorAll(".followed, .pointed")) {
		if (!ring.checkVisibility()) continue;
		const px = Math.max(0, ...[...getComputedStyle(ring).boxShadow.matchAll(/0px 0px 0px ([\d.]+)px/g)]
			.map(([, width]) => Number(width)));
		const { left, right, top, bottom } = ring.getBoundingClientRect();
		let end = { left: left - px, right: right + px, top: top - px, bottom: bottom + px };
		for (const around of upFrom(ring.parentElement)) end = within(end, around);
		for (const { text, element, seen } of texts) {
			const apart = ["main .lead", ".panel", ".top"].some((part) => element.closest(part) !== ring.closest(part));
			if (ring.contains(text) || apart) continue;
			const covers = (line) => Math.min(line.right, seen.right, end.right) > Math.max(line.left, seen.left, end.left) &&
				Math.min(line.bottom - 3, seen.bottom, end.bottom) > Math.max(line.top + 3, seen.top, end.top);
			if ([...rangeOf(text).getClientRects()].some(covers)) note("under the ring of " + ring.textContent.trim().slice(0, 20), text);
		}
	}
	return [...found];
})(8)`

// fits requires that each text of the present view can be read.
func (s *scene) fits(view string) {
	s.t.Helper()
	for _, misfit := range evaluate[[]string](s.tab, misfits) {
		assert.Fail(s.t, misfit, view)
	}
}

// fitsEverywhere is fits on all sizes, in both languages.
func (s *scene) fitsEverywhere(view string) {
	s.t.Helper()
	for _, language := range []string{"en", "zh-Hans"} {
		for _, size := range sizes {
			s.show(size)
			s.fits(fmt.Sprintf("%s, %d × %d, %s", view, size.width, size.height, language))
		}
		s.press("z")
	}
}

// No text is cut and no ring covers one, on four sizes of screen and in both languages, while the
// cards are full and keys are long.
func TestPage_FitsEveryText(t *testing.T) {
	s := newScene(t, look{width: 1280, height: 800})
	s.watching()
	s.fitsEverywhere("quiet")

	long := "default/a-name-that-is-as-long-as-those-of-generated-pods-7d4b9c6f5d-x2x7q"
	evaluate[bool](s.tab, fmt.Sprintf(create, quoted(long)))
	s.frames.untilHop("worker", "reconciled", long)
	chip := fmt.Sprintf(".card-store .chip[data-key=%q]", long)
	s.await("the long key", element(chip))
	s.use("fail")
	s.use("slow")
	for range 6 {
		s.use("change")
	}
	s.follow(chip)
	s.use("change")
	s.until("retries", func(f lab.Frame) bool {
		return f.Workqueue.DelayedTotal > 1 && f.Workqueue.Delayed[0].Failures > 4 &&
			f.Handlers[1].Pending > 0
	})
	s.use("code")
	s.click(button(" ")) // the key would press the chip, which has the focus
	s.until("paused", func(f lab.Frame) bool { return f.Mode == lab.Pause })
	s.fitsEverywhere("retries, paused")

	s.click(button(" "))
	before := s.frames.now().Reflector.WatchSince
	s.use("queue")
	s.until("another pipeline, and a leader", func(f lab.Frame) bool {
		return f.Reflector.Phase == "watching" && !f.Reflector.WatchSince.Equal(*before) &&
			f.Election.Leader != "" && f.Election.LeftMs > 0
	})
	s.use("freeze")
	s.until("a paused leader", func(f lab.Frame) bool { return f.Election.Paused })
	s.fitsEverywhere("a paused leader")
	s.use("server")
	s.until("the server is down", func(f lab.Frame) bool {
		return !f.Server.Up && f.Reflector.Error != "" && f.Election.LeftMs <= 0
	})
	s.fitsEverywhere("the server is down, without a leader")
}

// create makes the program create an object.
const create = `(async () => {
	const events = await fetch("lab/events");
	const { value } = await events.body.pipeThrough(new TextDecoderStream()).getReader().read();
	const { token } = JSON.parse(value.match(/data: (.*)/)[1]);
	const answer = await fetch("lab/command", {
		method: "POST", headers: { "Content-Type": "application/json", "X-Lab-Token": token },
		body: JSON.stringify({ do: "create", key: %s }),
	});
	return answer.ok;
})()`
