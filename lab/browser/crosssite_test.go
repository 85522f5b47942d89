// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	createURL    = "/api/v1/namespaces/default/configmaps"
	createObject = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"evil"},"x":"="}`
)

// post sends a body as text, as a Blob without a type, as a form and as a beacon: a page may do that
// without asking the server first.
const post = `async (url, body) => {
	const send = (body) => fetch(url, { method: "POST", mode: "no-cors", body }).catch(() => {});
	await Promise.all([send(body), send(new Blob([body])), send(new URLSearchParams(body))]);
	return navigator.sendBeacon(url, new Blob([body]));
}`

// submit sends a body as the name and the value of a field, and opens the answer.
const submit = `(url, body) => {
	const form = document.body.appendChild(document.createElement("form"));
	Object.assign(form, { method: "POST", action: url, enctype: "text/plain" });
	const field = form.appendChild(document.createElement("input"));
	[field.name, field.value] = body.split(/=(.*)/s);
	setTimeout(() => form.submit());
	return true;
}`

// listeners returns the addresses at which the program listens.
func (p *program) listeners() (urls []string) {
	p.t.Helper()
	own := map[string]bool{}
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", p.pid))
	require.NoError(p.t, err)
	for _, file := range files {
		target, _ := os.Readlink(file)
		own[target] = true
	}
	sockets, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp", p.pid))
	require.NoError(p.t, err)
	listening := regexp.MustCompile(`0100007F:(\w{4}) \w+:0000 0A (?:\S+ +){5}(\d+)`)
	for _, socket := range listening.FindAllStringSubmatch(string(sockets), -1) {
		port, _ := strconv.ParseUint(socket[1], 16, 16)
		if own["socket:["+socket[2]+"]"] {
			urls = append(urls, fmt.Sprintf("http://127.0.0.1:%d", port))
		}
	}
	return urls
}

// A page of another origin, on this machine or elsewhere, changes nothing, whatever it posts to the
// ports of the program: the page's and the API server's.
func TestCrossSite_ChangesNothing(t *testing.T) {
	t.Parallel()
	p := start(t, "run", "--rate", "0", "--objects", "3")
	ports := p.listeners()
	require.Len(t, ports, 2)
	server := ports[0]
	if server == p.url {
		server = ports[1]
	}
	objects := func() string {
		answer, err := http.Get(server + "/api/v1/configmaps")
		require.NoError(t, err)
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		_, items, _ := strings.Cut(string(text), `"items":`) // the version moves with the election
		return items
	}
	before := ""
	require.Eventually(t, func() bool { // the first objects are reconciled
		last := before
		before = objects()
		return before == last
	}, patience, time.Second)

	var mu sync.Mutex
	sent := map[string]bool{}
	evil := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		mediaType, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
		sent[fmt.Sprintf("%s %q %s", r.Method, mediaType, r.Header.Get("Sec-Fetch-Site"))] = true
	}))
	defer evil.Close()
	_, port, _ := strings.Cut(evil.Listener.Addr().String(), ":")
	type target struct{ url, body string }
	targets := []target{{evil.URL + "/", createObject}}
	for _, url := range ports {
		targets = append(targets, target{url + createURL, createObject},
			target{url + "/lab/command", `{"do":"create","x":"="}`})
	}
	for _, host := range []string{"127.0.0.1", "localhost"} {
		home := "http://" + host + ":" + port + "/"
		for _, to := range targets {
			page := openDocument(t, home, desktop)
			page.excuse("http://127.0.0.1") // requests to another host, and their refusals
			arguments := fmt.Sprintf("(%s, %s)", quoted(to.url), quoted(to.body))
			evaluate[bool](page, "("+post+")"+arguments)
			evaluate[bool](page, "("+submit+")"+arguments)
			require.Eventually(t, func() bool {
				address, err := chromedp.Run(page.ctx, chromedp.Location())
				return err == nil && address == to.url
			}, patience, 50*time.Millisecond, to.url)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for _, mediaType := range []string{"", "text/plain", "application/x-www-form-urlencoded"} {
		assert.Contains(t, sent, fmt.Sprintf("POST %q cross-site", mediaType))
	}
	assert.Equal(t, before, objects())

	answer, err := http.Post(server+createURL, "", strings.NewReader(createObject))
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	assert.Equal(t, http.StatusCreated, answer.StatusCode, "a program may")
}
