// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"

	"example.com/informerstack/cmd/informerstack/lab"
)

// The page waits for a program that has ended. Another one at the same address has another token:
// the page says that its link is needed, and shows nothing of it.
func TestPage_SurvivesARestartOfTheProgram(t *testing.T) {
	s := newScene(t, desktop)
	s.excuse("/lab/")
	s.program.stop()
	s.await("the page shows that it has no connection",
		`document.querySelector(".state.disconnected")`)
	s.await("commands are disabled", element(button("n"))+".disabled")

	restarted := start(t, "run", "--objects", "3", "--rate", "0", "--listen", s.program.port())
	s.frames = restarted.frames()
	s.await("the page asks for the new link", `document.querySelector(".state.refused .connection")
		?.textContent.includes("open the link")`)
	s.run(chromedp.Navigate(restarted.url + "/#desk"))
	s.await("the page is connected again", `document.querySelector(".state.connected")`)
	s.until("the page shows the other program",
		func(f lab.Frame) bool { return f.Server.Objects == 3 })
	s.await("the store has its objects",
		`document.querySelectorAll(".card-store .tiles .chip").length === 3`)
	s.click(button("n"))
	s.until("a command with the new token is obeyed",
		func(f lab.Frame) bool { return f.Store.Objects == 4 })
	assert.Equal(t, []string{`{"do":"create"}`}, s.sent())
}

// A reader who reloads the page sees the same program, in the same language and theme.
func TestPage_SurvivesAReload(t *testing.T) {
	s := newScene(t, desktop)
	s.press("z", "b")
	s.await("Chinese and dark", `document.documentElement.lang === "zh-Hans" &&
		document.documentElement.dataset.theme === "dark"`)
	s.run(chromedp.Reload())
	s.await("the page is drawn again", shownFrame+` > 0 &&
		document.querySelectorAll(".card-store .tiles .chip").length === 6`)
	s.await("Chinese and dark", `document.documentElement.lang === "zh-Hans" &&
		document.documentElement.dataset.theme === "dark"`)
}

// A message changes nothing else on the page: the arrows between the pieces, and the elements that
// have the focus and the scrolled positions, stay. A restart of the program does not either.
func TestPage_KeepsItsFlow(t *testing.T) {
	s := newScene(t, desktop)
	s.excuse("/lab/")
	s.await("the rails are drawn", `document.querySelectorAll(".rails .head").length === 8`)
	evaluate[bool](s.tab, `window.desk = document.querySelector(".desk"), true`)
	s.press(".")
	s.await("the reason", `document.querySelector(".problem[role=alert]")?.textContent ===
		"no hop is held: pause first"`)
	kept := `document.querySelector(".desk") === window.desk &&
		document.querySelectorAll(".rails .head").length === 8`
	s.await("the flow is the same", kept)
	s.press(" ", ".")
	s.await("the reason while it is paused",
		`document.querySelector(".problem[role=alert]")?.textContent.startsWith("no hop is held yet")`)
	s.press(" ")
	s.await("the message is gone", `!document.querySelector(".problem")`)
	s.await("the flow is the same", kept)

	s.program.stop()
	s.await("the page has no connection", `document.querySelector(".state.disconnected")`)
	start(t, "run", "--objects", "3", "--rate", "0", "--listen", s.program.port())
	s.await("the other program refuses it", `document.querySelector(".state.refused")`)
	s.await("the flow is the same", kept)
}
