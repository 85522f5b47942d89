// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"example.com/informerstack/lab"
)

// The page waits for a program that has ended, continues with another one at the same address, and
// follows the same key there. Its plots begin again.
func TestPage_SurvivesARestartOfTheProgram(t *testing.T) {
	t.Parallel()
	s := newScene(t, desktop)
	s.excuse("/lab/")
	key := s.follow(".card-store .chip")
	s.program.stop()
	s.await("the page shows that it has no connection",
		`document.querySelector(".state.disconnected")`)
	s.await("commands are disabled", element(button("n"))+".disabled")

	restarted := start(t, "run", "--objects", "3", "--rate", "0", "--listen", s.program.port())
	s.frames = restarted.frames()
	s.await("the page is connected again", `document.querySelector(".state.connected")`)
	s.until("the page shows the other program",
		func(f lab.Frame) bool { return f.Server.Objects == 3 })
	s.await("the store has its objects",
		`document.querySelectorAll(".card-store .tiles .chip").length === 3`)
	s.click(button("n"))
	s.until("a command with the new token is obeyed",
		func(f lab.Frame) bool { return f.Store.Objects == 4 })
	s.await("the key is still followed",
		element(".following .chip")+"?.dataset.key === "+quoted(key))
	following := fmt.Sprintf(`{"do":"follow","key":%q}`, key)
	assert.Equal(t, []string{following, following, `{"do":"create"}`}, s.sent(),
		"each program was asked to follow the key")
}

// A reader who reloads the page sees the same program, in the same language and theme.
func TestPage_SurvivesAReload(t *testing.T) {
	t.Parallel()
	s := newScene(t, desktop)
	s.press("z", "b")
	s.await("Chinese and dark", `document.documentElement.lang === "zh-Hans" &&
		document.documentElement.dataset.theme === "dark"`)
	evaluate[bool](s.tab, "location.reload(), true")
	s.await("the page is drawn again", `performance.now() < 60000 && window.seen > 0 &&
		document.querySelectorAll(".card-store .tiles .chip").length === 6`)
	s.await("Chinese and dark", `document.documentElement.lang === "zh-Hans" &&
		document.documentElement.dataset.theme === "dark"`)
}

// A refused command is shown, and the program's text is no HTML.
func TestPage_ShowsWhyACommandFailed(t *testing.T) {
	t.Parallel()
	s := newScene(t, desktop)
	s.excuse("/lab/command")
	s.press(".")
	s.await("the reason", `document.querySelector(".problem[role=alert]")?.textContent ===
		"no hop is held: pause first"`)
}
