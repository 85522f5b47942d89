// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A tab notices an error in the console, an exception, a violation of the policy, and a request to
// another host.
func TestTab_NoticesProblems(t *testing.T) {
	t.Parallel()
	s := newScene(t, desktop)
	evaluate[bool](s.tab, `new Promise((resolve) => {
		console.error("an error in the console");
		setTimeout(() => { throw new Error("an exception"); });
		const script = document.createElement("script");
		script.textContent = "document.title = 'an inline script'";
		document.body.append(script);
		fetch("http://other.example/").catch(() => {}).finally(() => setTimeout(resolve, 50, true));
	})`)
	s.mu.Lock()
	noticed := strings.Join(s.problems, "\n")
	s.problems = nil
	s.mu.Unlock()
	for _, want := range []string{
		"an error in the console", "an exception", "inline script", "http://other.example/",
	} {
		assert.Contains(t, noticed, want)
	}
	assert.NotEqual(t, "an inline script", evaluate[string](s.tab, "document.title"))
}
