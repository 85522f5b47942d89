// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"

	"example.com/informerstack/cmd/informerstack/lab"
)

// inStore is true while the card of the store has a key.
func inStore(key string) string {
	return fmt.Sprintf(`Boolean(document.querySelector(".card-store .tiles [data-key='%s']"))`, key)
}

// A reader of a live run looks back: the page shows the minute that has passed, while the program
// continues. A command, or the end of what is kept, leads back to the present.
func TestHistory_LooksBack(t *testing.T) {
	s := newScene(t, desktop)
	s.watching()
	create := func() (key string) {
		s.frames.forget()
		s.use("create")
		return s.frames.untilHop("store", "Add", "").Key
	}
	first := create()
	s.await("the object is shown", inStore(first))

	for range 500 {
		if !evaluate[bool](s.tab, inStore(first)) {
			break
		}
		s.press(kb.ArrowLeft)
	}
	s.await("the store is shown as it was", "!"+inStore(first))
	created := create()
	s.await("a command shows the present", "!"+element(".time.past")+" && "+inStore(created))

	s.press(kb.ArrowLeft)
	s.await("the past is shown", element(".time.past"))
	s.choose(`.time.past input[type="range"]`, "0")
	s.await("the slider moves", "!"+inStore(first))
	s.press(kb.ArrowRight, kb.ArrowRight)
	s.press(kb.End)
	s.await("the present is shown", "!"+element(".time.past")+" && "+inStore(created))

	s.press(kb.ArrowLeft, kb.ArrowRight)
	s.await("the way forward ends in the present", "!"+element(".time.past"))
	assert.Equal(t, lab.Run, s.frames.now().Mode, "the program was never stopped")
}
