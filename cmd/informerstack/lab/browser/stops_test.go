// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/cmd/informerstack/lab"
)

const (
	stopText = ".stop [role=status]"
	proceed  = ".stop .primary"
	proceeds = ".lesson .steps .proceeds" // the button for it in the lesson
	again    = ".lesson .again"
)

// endStep waits for the end of a step. At each stop the page shows the sentence that the program
// has proven, and the cards to look at; then reader continues.
func (s *scene) endStep(id string, step int, language string, reader func()) {
	s.t.Helper()
	for stops := 0; ; {
		f := s.until(fmt.Sprintf("step %d of lesson %s has ended or stopped", step, id),
			func(f lab.Frame) bool {
				l := f.Lesson
				return l != nil && l.ID == id && l.Step == step &&
					(l.State == "done" || l.Stop != nil && l.Stop.N > stops)
			})
		if f.Lesson.State == "done" {
			require.Empty(s.t, f.Lesson.Error, "step %d of lesson %s", step, id)
			return
		}
		stops = f.Lesson.Stop.N
		says := f.Lesson.Stop.Says
		require.NotNil(s.t, says, "step %d of lesson %s: %+v", step, id, f.Lesson.Stop.Event)
		s.shows(stopText, text{"en": says.En, "zh": says.Zh}, language)
		s.pointsAt(f.Lesson.Watch)
		if *keep != "" {
			name := fmt.Sprintf("stop-%s-%d-%d-%s.png", id, step, stops, language)
			assert.NoError(s.t, s.whole(filepath.Join(*keep, name)))
		}
		reader()
	}
}

// pointsAt waits until the page marks these pieces.
func (p *tab) pointsAt(pieces []string) {
	p.t.Helper()
	p.await("the page marks the pieces", fmt.Sprintf(
		`[...document.querySelectorAll(".card.pointed")].map((card) => card.dataset.piece)
			.sort().join() === %s.sort().join()`, list(pieces)))
}

// A reader looks back from a stop and forth again, continues, and looks at the stop once more. The
// page asks for it at the first stop only.
func TestStops_LookBackAndForth(t *testing.T) {
	s := newScene(t, desktop)
	s.openAt("ownwrite", 1)
	s.await("the question", element(".question .option:enabled"))
	s.click(".question .btn.quiet")
	s.await("it stops", element(stopText))
	stopped := evaluate[string](s.tab, element(stopText)+".textContent")
	s.await("the first stop asks to look back", element(".stop .dim"))
	s.press(kb.ArrowLeft)
	s.await("the frame before is shown", "!"+element(".stop")+" && "+element(".time.past"))
	s.press(kb.ArrowRight)
	s.await("the stop is shown again", element(stopText)+"?.textContent === "+quoted(stopped))
	assert.Equal(t, lab.Pause, s.frames.now().Mode)

	s.press(" ")
	s.frames.until("it continues", func(f lab.Frame) bool { return f.Mode == lab.Run })
	s.await("the step has ended", "!"+element(".stop")+" && "+element(stepEnded))
	s.click(again)
	s.await("the stop is shown once more",
		element(stopText)+"?.textContent === "+quoted(stopped))
	s.await("the cards of that time are shown", element(".time.past"))
	s.click(proceed)
	s.await("the present is shown", "!"+element(".time.past")+" && "+element(stepEnded))

	s.openAt("onekey", 1)
	s.await("each card is an answer", element(".card .pick"))
	s.click("#card-workqueue .pick")
	s.await("it stops again", element(stopText))
	assert.Empty(t, s.texts(".stop .dim"), "it asks once")
}
