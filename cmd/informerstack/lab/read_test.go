// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack"
)

var (
	target = regexp.MustCompile(`(?:href|src)="([^"]+)"`)
	// A nested module cannot be embedded.
	nested = regexp.MustCompile(
		`^/read/(e2e|realserver|compat/example|cmd/informerstack/lab/browser|` +
			`internal/tools/simulation/sandbox)(/|$)`)
)

// Each link of each document leads to a file of the program, and to a heading or function there.
func TestRead_LinksOfDocumentsLeadSomewhere(t *testing.T) {
	l := newTestLab()
	pages := map[string]string{}
	read := func(address string) (string, bool) {
		if content, ok := pages[address]; ok {
			return content, content != ""
		}
		answer := ask(l, "GET", address, "", unchanged)
		if answer.Code == http.StatusMovedPermanently {
			base, err := url.Parse(address)
			require.NoError(t, err)
			base, err = base.Parse(answer.Header().Get("Location"))
			require.NoError(t, err)
			answer = ask(l, "GET", base.Path, "", unchanged)
		}
		if answer.Code == http.StatusOK {
			pages[address] = answer.Body.String()
		}
		return pages[address], answer.Code == http.StatusOK
	}
	links := 0
	for _, document := range documentNames(t) {
		content, ok := read("/read/" + document)
		require.True(t, ok, document)
		base, err := url.Parse("/read/" + document)
		require.NoError(t, err)
		for _, match := range target.FindAllStringSubmatch(content, -1) {
			link, err := base.Parse(match[1])
			require.NoError(t, err, "%s: %s", document, match[1])
			if link.Host != "" || nested.MatchString(link.Path) {
				continue
			}
			links++
			page, ok := read(link.Path)
			assert.True(t, ok, "%s links to %s", document, link.Path)
			// The fragment of a recorded lesson is its state.
			if link.Fragment != "" && path.Dir(link.Path) != "/read/docs/lessons" {
				assert.Contains(t, page, `id="`+link.Fragment+`"`,
					"%s links to %s", document, link)
			}
		}
	}
	assert.Greater(t, links, 1000)
}

// documentNames returns the paths of all documents in Markdown.
func documentNames(t *testing.T) (names []string) {
	require.NoError(t, fs.WalkDir(informerstack.Files, ".",
		func(name string, _ fs.DirEntry, err error) error {
			if path.Ext(name) == ".md" && !strings.Contains(name, "testdata") {
				names = append(names, name)
			}
			return err
		}))
	return names
}

// A line of code has its number and the name that it declares.
func TestRead_NumbersLinesAndNamesDeclarations(t *testing.T) {
	read := func(file string) string {
		path := "/read/cmd/informerstack/lab/" + file
		return ask(newTestLab(), "GET", path, "", unchanged).Body.String()
	}
	code, err := informerstack.Files.ReadFile("cmd/informerstack/lab/read_test.go")
	require.NoError(t, err)
	before, _, _ := strings.Cut(string(code), "\nfunc documentNames")
	assert.Contains(t, read("read_test.go"), fmt.Sprintf(`<li id="L%d"><a id="documentNames"></a>`,
		strings.Count(before, "\n")+2))
	assert.Contains(t, read("read.go"),
		`<a id="showFolder"></a><code>func showFolder(w http.ResponseWriter, root, name string) {</code>`)
}

func TestRead_ServesEachTypeOfFile(t *testing.T) {
	for address, want := range map[string]struct {
		code int
		text string
	}{
		"/read/":                       {200, `<a href="../read/docs/">docs</a>`},
		"/read/store/":                 {200, `<a href="../../read/store/key.go">key.go</a>`},
		"/read/store":                  {301, "../read/store/"},
		"/read/store/key.go/":          {301, "../../../read/store/key.go"},
		"/read/docs/zh/store.md":       {200, `<html lang="zh">`},
		"/read/docs/pictures/lab.png":  {200, "PNG"},
		"/read/docs/pictures/path.svg": {200, "<svg"},
		"/read/docs/lessons/done.html": {200, `<link rel="stylesheet" href="lab.css">`},
		"/read/docs/lessons/lab.css":   {200, "}"},
		"/read/go.mod":                 {404, "may be in the repository"},
		"/read/e2e/<b>":                {404, "<p>&#34;e2e/&lt;b&gt;&#34; is not a file of this"},
		"/read/..%2f..%2fetc/passwd":   {404, "not a file of this program"},
		"/read/docs%00":                {404, "not a file of this program"},
	} {
		answer := ask(newTestLab(), "GET", address, "", unchanged)
		assert.Equal(t, want.code, answer.Code, address)
		assert.Contains(t, answer.Body.String()+answer.Header().Get("Location"), want.text, address)
		assert.NotContains(t, answer.Header().Get("Content-Security-Policy"), "script-src 'unsafe")
	}
	refused := ask(newTestLab(), "POST", "/read/README.md", "", unchanged)
	assert.Equal(t, http.StatusMethodNotAllowed, refused.Code)
}

// A document cannot bring its own HTML or scripts, and its headings have GitHub's anchors.
func TestRead_RendersMarkdown(t *testing.T) {
	rendered, err := render([]byte("# A *b*, c\n\n## 队列 Done\n\n## A b c\n\n" +
		"<script>x</script>\n\n[x](javascript:y)\n\n| a | n |\n|---|--:|\n| b | 1 |\n"))
	require.NoError(t, err)
	for _, want := range []string{`id="a-b-c"`, `id="队列-done"`, `id="a-b-c-1"`, "<td>b</td>",
		`<td align="right">1</td>`} {
		assert.Contains(t, string(rendered), want)
	}
	assert.NotContains(t, string(rendered), "<script")
	assert.NotContains(t, string(rendered), "javascript:")
	assert.NotContains(t, string(rendered), "style=", "the policy of the page forbids it")
}
