// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"example.com/informerstack/cmd/informerstack/lab"
)

// The settings are applied together, and Cancel changes nothing.
func TestSettings_AreApplied(t *testing.T) {
	t.Parallel()
	s := newScene(t, desktop)
	s.click(button(","))
	s.choose("#set-workers", "3")
	s.click("dialog .steps .btn:first-child")
	s.await("the dialog closes", `!document.querySelector("dialog")`)

	s.click(button(","))
	s.await("the cancelled value is gone", element("#set-workers")+`.value === "2"`)
	s.click(`dialog input[value="realfifo"]`)
	s.click(`dialog input[value="list"]`)
	s.choose("#set-workers", "5")
	s.choose("#set-workMs", "30")
	s.choose("#set-rate", "20")
	s.choose("#set-objects", "20")
	s.click("dialog .primary")
	s.await("the dialog closes", `!document.querySelector("dialog")`)
	s.until("all settings", func(f lab.Frame) bool {
		want := lab.Settings{Queue: "realfifo", Workers: 5, WorkMs: 30}
		return f.Settings.Settings == want && f.Settings.Rate == 20 && f.Queue.Kind == "RealFIFO" &&
			f.Workers.Count == 5 && f.Store.Objects >= 20 && f.Reflector.Phase == "watching"
	})
	s.click(button(","))
	s.await("the dialog shows them", element("#set-workers")+`.value === "5" &&
		document.querySelector('dialog input[value="realfifo"]').checked &&
		document.querySelector('dialog input[value="list"]').checked &&
		document.querySelector("#set-rate").value === "20"`)
}

// A dialog closes by its button, by Escape and by a click beside it, and the focus returns to the
// button that opened it.
func TestDialogs_ReturnTheFocus(t *testing.T) {
	t.Parallel()
	s := newScene(t, desktop)
	for _, key := range []string{",", "?"} {
		for way, closeIt := range map[string]func(){
			"button": func() { s.click(`dialog header button`) },
			"Escape": func() { s.press(kb.Escape) },
			"beside": func() { s.run(chromedp.MouseClickXY(5, 500)) },
		} {
			s.click(button(key))
			s.await("the dialog has the focus",
				`document.querySelector("dialog")?.contains(document.activeElement)`)
			closeIt()
			s.await("the dialog closes", `!document.querySelector("dialog")`)
			s.await("the focus returns after "+way,
				"document.activeElement === "+element(button(key)))
		}
	}
}
