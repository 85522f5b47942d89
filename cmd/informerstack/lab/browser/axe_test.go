// SPDX-License-Identifier: Apache-2.0

package browser

import (
	_ "embed"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"

	"example.com/informerstack/cmd/informerstack/lab"
)

// axe is axe-core: see testdata/axe/README.md.
//
//go:embed testdata/axe/axe.min.js
var axe string

// violation is what axe-core found against one rule.
type violation struct {
	ID     string   `json:"id"`
	Impact string   `json:"impact"`
	Help   string   `json:"help"`
	Nodes  []string `json:"nodes"`
}

// runAxe returns the violations. Only finished transitions have the colours that a reader sees. It
// loads no style sheet again, because the policy of an edition forbids that. Whether all content is
// in a landmark takes long to find, and is never serious. The dark theme has other colours alone.
const runAxe = `(async () => {
	for (const animation of document.getAnimations()) {
		if (animation instanceof CSSTransition) animation.finish();
	}
	const rules = { region: { enabled: false } };
	const colours = { runOnly: ["color-contrast", "link-in-text-block"] };
	const { violations } = await axe.run(document, {
		preload: false, resultTypes: ["violations"], ...(%t ? colours : { rules }),
	});
	return violations.map(({ id, impact, help, nodes }) => ({
		id, impact, help,
		nodes: nodes.slice(0, 5).map((node) => node.html + " " + node.failureSummary),
	}));
})()`

// accessible requires that axe-core has no serious and no critical finding in the present view.
func (p *tab) accessible(view string) {
	p.t.Helper()
	for _, v := range evaluate[[]violation](p, fmt.Sprintf(runAxe, p.look.dark)) {
		if v.Impact == "serious" || v.Impact == "critical" {
			assert.Fail(p.t, v.Help, "%s: %s: %s\n%s", view, v.Impact, v.ID,
				strings.Join(v.Nodes, "\n"))
		}
	}
}

// No view of the page has a serious finding of axe-core, in both themes and both languages.
func TestPage_IsAccessible(t *testing.T) {
	t.Parallel()
	for name, l := range looks {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, l)
			evaluate[bool](s.tab, axe+"; true")
			s.walkViews()
			s.press("z")
			s.await("the page is in Chinese", `document.documentElement.lang === "zh-Hans"`)
			s.accessible("in Chinese")
		})
	}
}

// walkViews checks each view of the page.
func (s *scene) walkViews() {
	s.watching()
	s.press("j")
	s.await("lessons", element(".lessons li"))
	s.accessible("the list of lessons")
	s.use("code")
	for _, change := range []string{"done", "add", "slow"} {
		s.toggle(change, true)
	}
	s.use("change")
	s.until("a slow handler", func(f lab.Frame) bool { return f.Handlers[0].Pending > 0 })
	s.await("a line is lit", element(".source .now"))
	s.accessible("the code with all changes")
	for _, change := range []string{"done", "add", "slow"} {
		s.toggle(change, false)
	}
	s.watching()
	s.press("?")
	s.await("help", element("dialog .keys"))
	s.accessible("the list of controls")
	s.press(kb.Escape)
	s.await("no dialog", `!document.querySelector("dialog")`)
	s.press(",")
	s.await("settings", element("dialog .settings"))
	s.accessible("the settings")
	s.press(kb.Escape)
	s.await("no dialog", `!document.querySelector("dialog")`)
	s.click(".card-store .chip")
	s.use("fail")
	s.use("slow")
	s.use("change")
	s.use("change")
	s.frames.untilHop("workqueue", "Done", "")
	s.use("events")
	s.await("events", element(".events li"))
	s.accessible("a followed key, with faults")
	s.use("fail")
	s.use("slow")
	s.watching()
	s.use("stall")
	s.until("stalled", func(f lab.Frame) bool { return f.Server.Fault == "stall" })
	s.use("create")
	s.click(button(" ")) // the key would press the chip, which has the focus
	s.until("paused", func(f lab.Frame) bool { return f.Mode == lab.Pause })
	s.click(".card-workqueue .title")
	s.await("the piece", element(".piece"))
	s.accessible("paused, with an explanation")
	s.click(button(" "))
	s.until("it runs", func(f lab.Frame) bool { return f.Mode == lab.Run })
	s.use("cut")
	s.watching()
	s.use("server")
	s.await("the server is down", element(".card-server.bad"))
	s.use("lessons")
	s.accessible("the server is down")
	s.use("server")
	s.watching()
	s.openQuestion(s.click)
	s.accessible("an open question")
	s.click(".question > .btn")
	s.await("an answer", element(".question [role=status]"))
	s.accessible("an answered question")
	s.openAt("resync", 0)
	s.await("each card is an answer", element(".card .pick"))
	s.accessible("a prediction")
	s.openAt("tombstones", 0)
	s.await("it is the reader's turn", element(".task.yours"))
	s.use("delete")
	s.await("a wrong way", element(".task.yours .hot"))
	s.click(".task .btn:first-of-type")
	s.accessible("a task, with a hint")
}

// openAt follows an address to a step of a lesson. Steps count from 0.
func (s *scene) openAt(id string, step int) {
	s.t.Helper()
	evaluate[bool](s.tab, fmt.Sprintf(`location.hash = "lesson=%s&step=%d", true`, id, step+1))
}

// A document and a file of code can be read on a large screen and on a phone, in both themes: the
// pictures are drawn, nothing is wider than the screen, and the line that a link names is visible.
func TestRead_ShowsDocumentsAndCode(t *testing.T) {
	t.Parallel()
	p := start(t, "run", "--rate", "0")
	for name, l := range looks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, path := range []string{"docs/README.md", "docs/zh/workqueue.md",
				"docs/reports/speed.md", "workqueue/story_test.go#TestStory_OneKeyOneWorker"} {
				page := openDocument(t, p.url+"/read/"+path, l)
				page.await("the file", element("main"))
				page.await("the pictures of "+path,
					`[...document.images].every((image) => image.complete && image.naturalWidth > 0)`)
				assert.LessOrEqual(t, evaluate[int](page, `document.documentElement.scrollWidth`),
					int(l.width), path)
				if _, name, ok := strings.Cut(path, "#"); ok {
					page.await("the named line", fmt.Sprintf(`((box) => box.top > 0 &&
						box.bottom < innerHeight)(document.getElementById(%s).parentElement
						.getBoundingClientRect())`, quoted(name)))
				}
				if name == "light" || path != "docs/reports/speed.md" { // its tables take long
					evaluate[bool](page, axe+"; true")
					page.accessible(path)
				}
			}
		})
	}
}
