// SPDX-License-Identifier: Apache-2.0

package run

import (
	"net/http"
	"net/url"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/cmd/informerstack/cli"
	"example.com/informerstack/cmd/informerstack/lab"
)

// rootOf returns the address of a page without the token, as another user of the machine knows it.
func rootOf(link string) string {
	parsed, err := url.Parse(link)
	if err != nil {
		panic(err)
	}
	return "http://" + parsed.Host
}

// token returns the path of the page, "/TOKEN".
func (p *process) token(t *testing.T) string {
	t.Helper()
	link := p.page(t)
	return link[len(rootOf(link)):]
}

// Another user of the machine can reach the port, and has no link: nothing of the page is shown,
// no key is found, and no command is taken. The links of two programs differ.
func TestRun_PageNeedsTheToken(t *testing.T) {
	recording := filepath.Join(t.TempDir(), "run.jsonl")
	links := map[string]bool{}
	for _, args := range [][]string{
		{"run", "--objects", "3", "--record", recording},
		{"run", "--objects", "3", "--listen", "127.0.0.1:0"},
		{"replay", recording},
	} {
		p := start(t, args...)
		link := p.page(t)
		links[link[len(rootOf(link)):]] = true
		stream := openStream(t, link)
		if !stream.hello.Replay {
			stream.until(func(f lab.Frame) bool { return f.Store.Objects >= 3 })
		}
		for _, path := range []string{"/lab/events", "/lab/keys?contains=", "/lab/lessons",
			"/lab/recording", "/lab/assets/app.js", "/read/README.md", "/x/lab/events",
			"//lab/keys"} {
			code, text := get(t, rootOf(link)+path)
			assert.Contains(t, []int{http.StatusUnauthorized, http.StatusNotFound}, code, path)
			assert.NotContains(t, text, "settings-", path)
		}
		code := post(t, rootOf(link), stream.hello.Token, `{"do":"mode","mode":"pause"}`)
		assert.Contains(t, []int{http.StatusUnauthorized, http.StatusNotFound}, code)
		_, text := get(t, rootOf(link)+"/")
		assert.NotContains(t, text, "lab/assets", "the page")
		p.Interrupt()
		p.Exits(t, cli.OK)
	}
	require.Len(t, links, 3)
}

// On another cluster the page, which takes commands, is served only if it was asked for.
func TestRun_NoPageOfAnotherClusterUnlessAsked(t *testing.T) {
	_, kubeconfig := foreign(t)
	p := start(t, "run", "--kubeconfig", kubeconfig, "--reconcile", "--listen", "127.0.0.1:0")
	address := p.served(t)
	p.Prints(t, "Loaded 0 objects")
	assert.NotContains(t, p.Stderr.String(), "Open http")
	code, text := get(t, address+"/")
	assert.Equal(t, http.StatusOK, code)
	assert.Contains(t, text, `<a href="/debug/informers">`)
	p.Interrupt()
	p.Exits(t, cli.OK)

	p = start(t, "run", "--page", "--no-page")
	p.Exits(t, cli.Usage)
	assert.Contains(t, p.Stderr.String(), "--page cannot be used with --no-page: choose one")
}
