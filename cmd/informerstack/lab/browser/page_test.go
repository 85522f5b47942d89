// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// evaluate returns the value of a JavaScript expression. A promise is awaited. If the page is left
// meanwhile, the next page evaluates the expression.
func evaluate[T any](p *tab, expression string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, 2*patience)
	defer cancel()
	for {
		value, err := chromedp.Run(ctx,
			chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
		if err != nil && strings.Contains(err.Error(), "Inspected target navigated") {
			continue
		}
		require.NoError(p.t, err, expression)
		return value
	}
}

// await waits until a JavaScript expression is true. The page checks it.
func (p *tab) await(what, condition string) {
	p.t.Helper()
	met := evaluate[bool](p, fmt.Sprintf(`new Promise((resolve) => {
		const end = performance.now() + %[1]d;
		const check = () => {
			let met = false;
			try { met = Boolean(%s); } catch { met = false; }
			if (met || performance.now() > end) resolve(met);
			else setTimeout(check, 30);
		};
		check();
	})`, patience.Milliseconds(), condition))
	require.True(p.t, met, "not within %v: %s: %s", patience, what, condition)
}

// quoted returns text as a JavaScript string.
func quoted(text string) string {
	encoded, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string can be encoded
	}
	return string(encoded)
}

// element is the JavaScript expression of the first element that a selector selects.
func element(selector string) string { return "document.querySelector(" + quoted(selector) + ")" }

// texts returns the text of each element that a selector selects.
func (p *tab) texts(selector string) []string {
	p.t.Helper()
	return evaluate[[]string](p, "[...document.querySelectorAll("+quoted(selector)+
		")].map((element) => element.innerText.trim())")
}

// place scrolls to an element and returns its middle, unless something covers it. It waits until
// the element has stayed in its place for longer than the time between two draws of the page: a
// click on what moves between the look for it and the click is lost.
const place = `(async () => {
	const end = performance.now() + %[1]d;
	const drawn = () => new Promise((resolve) => requestAnimationFrame(resolve));
	for (let before = {}; ; await new Promise((resolve) => setTimeout(resolve, 80))) {
		await drawn(); // only now: each drawing takes as long as ten looks
		const target = %[2]s;
		let reason = target?.disabled ? "disabled" : "missing";
		if (target && !target.disabled) {
			target.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
			const r = target.getBoundingClientRect();
			const [x, y] = [r.left + r.width / 2, r.top + r.height / 2];
			const hit = document.elementFromPoint(x, y);
			if (hit && target.contains(hit) && x === before.x && y === before.y) {
				window.clicked = "nothing";
				document.addEventListener("click", ({ target: on }) => {
					// The page may have drawn the element again since.
					const missed = !%[2]s?.contains(on);
					const harmless = !on.closest("button, a, input, select, label, summary");
					window.clicked = !missed ? "" : harmless ? "nothing" : on.outerHTML.slice(0, 200);
				}, { capture: true, once: true });
				return { x, y };
			}
			before = { x, y };
			reason = "moving, or covered by " + (hit?.outerHTML.slice(0, 200) ?? "nothing: outside");
		}
		if (performance.now() > end) return { reason };
	}
})()`

// point is a place in the page, or the reason why the place does not exist.
type point struct {
	X      float64 `json:"x"`
	Y      float64 `json:"y"`
	Reason string  `json:"reason"`
}

// find returns where an element can be clicked. It waits until it is enabled and not covered.
func (p *tab) find(selector string) point {
	p.t.Helper()
	at := evaluate[point](p, fmt.Sprintf(place, (patience/4).Milliseconds(), element(selector)))
	require.Empty(p.t, at.Reason, "%s cannot be clicked", selector)
	return at
}

// click moves the mouse to an element and presses its button. When the element moves away under
// the mouse and the click does nothing, it clicks again, as a person does.
func (p *tab) click(selector string) {
	p.t.Helper()
	hit := "nothing"
	for tries := 0; hit == "nothing" && tries < 5; tries++ {
		at := p.find(selector)
		p.run(chromedp.MouseClickXY(at.X, at.Y))
		hit = evaluate[string](p, "window.clicked ?? ''")
	}
	require.Empty(p.t, hit, "a click on %s hit", selector)
}

// tap touches an element with a finger.
func (p *tab) tap(selector string) {
	p.t.Helper()
	at := p.find(selector)
	p.run(chromedp.TapXY(at.X, at.Y))
}

// press presses keys one after the other, with the focus where it is.
func (p *tab) press(keys ...string) {
	p.t.Helper()
	for _, key := range keys {
		p.run(chromedp.KeyEvent(key))
	}
}

// choose sets the value of a slider, a field or a list, as its reader does.
func (p *tab) choose(selector, value string) {
	p.t.Helper()
	p.await(selector+" can be changed", element(selector)+"?.disabled === false")
	evaluate[bool](p, fmt.Sprintf(`(() => {
		const field = %s;
		const type = Object.getPrototypeOf(field);
		Object.getOwnPropertyDescriptor(type, "value").set.call(field, %s);
		field.dispatchEvent(new Event("input", { bubbles: true }));
		field.dispatchEvent(new Event("change", { bubbles: true }));
		return true;
	})()`, element(selector), quoted(value)))
}

// button is the selector of the button that has a key.
func button(key string) string {
	if key == " " {
		key = "Space"
	}
	return "button[aria-keyshortcuts=" + quoted(key) + "]"
}
