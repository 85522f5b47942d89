// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A document and a file of code can be read on a large screen and on a phone, in both themes: the
// pictures are drawn, nothing is wider than the screen, and the line that a link names is visible.
func TestRead_ShowsDocumentsAndCode(t *testing.T) {
	t.Parallel()
	p := start(t, "run", "--rate", "0")
	for name, l := range map[string]look{
		"light": desktop,
		"dark":  {width: desktop.width, height: desktop.height, dark: true},
		"phone": phone,
	} {
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
				evaluate[bool](page, axe+"; true")
				page.accessible(path)
			}
		})
	}
}
