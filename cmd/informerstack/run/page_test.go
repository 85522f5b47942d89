// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/cmd/informerstack/cli"
	"example.com/informerstack/cmd/informerstack/cli/clitest"
	"example.com/informerstack/cmd/informerstack/lab"
)

var pageOn = regexp.MustCompile(`Open (http://127\.0\.0\.1:\d+/\w+)(?:/|/debug/informers) to see`)

// page returns the address of the page.
func (p *process) page(t *testing.T) string {
	t.Helper()
	p.Prints(t, "Open http")
	return pageOn.FindStringSubmatch(p.Stderr.String())[1]
}

// eventStream is a page's connection to the program.
type eventStream struct {
	t     *testing.T
	lines *bufio.Scanner
	hello lab.Hello
}

func openStream(t *testing.T, url string) *eventStream {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/lab/events", nil)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	t.Cleanup(func() { answer.Body.Close() })
	s := &eventStream{t: t, lines: bufio.NewScanner(answer.Body)}
	s.lines.Buffer(nil, 4<<20)
	s.next(&s.hello)
	return s
}

// next reads the data of the next event.
func (s *eventStream) next(into any) {
	s.t.Helper()
	for s.lines.Scan() {
		if data, ok := strings.CutPrefix(s.lines.Text(), "data: "); ok {
			require.NoError(s.t, json.Unmarshal([]byte(data), into))
			return
		}
	}
	s.t.Fatal("the stream has ended")
}

// until reads frames until one satisfies the condition.
func (s *eventStream) until(condition func(lab.Frame) bool) lab.Frame {
	s.t.Helper()
	for range 300 {
		var f lab.Frame
		if s.next(&f); condition(f) {
			return f
		}
	}
	s.t.Fatal("no such frame")
	return lab.Frame{}
}

func TestRun_ServesThePage(t *testing.T) {
	p := start(t, "run", "--objects", "3", "--rate", "0")
	url := p.page(t)
	code, text := get(t, url+"/")
	assert.Equal(t, http.StatusOK, code)
	assert.Contains(t, text, "lab/assets/app.js")
	code, text = get(t, url+"/read/docs/store.md")
	assert.Equal(t, http.StatusOK, code)
	assert.Contains(t, text, "<h1")
	code, _ = get(t, url+"/metrics")
	assert.Equal(t, http.StatusNotFound, code, "it needs --listen")
	code, _ = get(t, rootOf(url)+"/metrics")
	assert.Equal(t, http.StatusUnauthorized, code)

	stream := openStream(t, url)
	assert.True(t, stream.hello.Writable)
	assert.Equal(t, "configmaps", stream.hello.Resource)
	f := stream.until(func(f lab.Frame) bool { return f.Workers.Outcomes["success"] >= 3 })
	assert.Equal(t, 3, f.Store.Objects)
	assert.Contains(t, f.Election.Candidates, f.Election.Leader)
	assert.Equal(t, []string{"checksum", "audit"}, []string{f.Handlers[0].Name, f.Handlers[1].Name})

	for _, command := range []string{
		`{"do":"create"}`, `{"do":"create","key":"default/mine"}`, `{"do":"change"}`,
		`{"do":"change","key":"default/mine"}`, `{"do":"delete","key":"default/settings-1"}`,
		`{"do":"settings","queue":"realfifo","workers":1}`,
		`{"do":"workload","rate":50,"objects":9}`,
	} {
		assert.Equal(t, http.StatusOK, post(t, url, stream.hello.Token, command), command)
	}
	assert.Equal(t, http.StatusBadRequest,
		post(t, url, stream.hello.Token, `{"do":"delete","key":"default/none"}`))
	assert.Equal(t, http.StatusForbidden, post(t, url, "guessed", `{"do":"create"}`))
	stream.until(func(f lab.Frame) bool {
		return f.Queue.Kind == "RealFIFO" && f.Store.Objects >= 9 && f.Settings.Rate == 50 &&
			f.Reflector.Phase == "watching"
	})
	p.Stops(t)
}

func post(t *testing.T, url, token, body string) (code int) {
	t.Helper()
	code, _ = send(t, http.MethodPost, url+"/lab/command", body,
		map[string]string{"Content-Type": "application/json", "X-Lab-Token": token})
	return code
}

// On another cluster the page shows, and does not write.
func TestRun_PageOfAnotherClusterIsReadOnly(t *testing.T) {
	_, kubeconfig := foreign(t)
	p := start(t, "run", "--kubeconfig", kubeconfig, "--page")
	url := p.page(t)
	stream := openStream(t, url)
	assert.False(t, stream.hello.Writable)
	stream.until(func(f lab.Frame) bool { return f.Reflector.Phase == "watching" })
	assert.Equal(t, http.StatusBadRequest, post(t, url, stream.hello.Token, `{"do":"create"}`))
	assert.Equal(t, http.StatusOK, post(t, url, stream.hello.Token, `{"do":"mode","mode":"pause"}`))
	p.Stops(t)
}

// A run is recorded without a page, too.
func TestRun_RecordsWithoutAPage(t *testing.T) {
	recording := filepath.Join(t.TempDir(), "run.jsonl")
	p := start(t, "run", "--record", recording, "--no-page", "--rate", "50")
	p.Prints(t, "reconciled")
	p.Stops(t)
	p = start(t, "replay", recording)
	assert.True(t, openStream(t, p.page(t)).hello.Replay)
	p.Stops(t)
}

// A paused program ends at once.
func TestRun_EndsWhilePaused(t *testing.T) {
	p := start(t, "run", "--rate", "50")
	url := p.page(t)
	stream := openStream(t, url)
	post(t, url, stream.hello.Token, `{"do":"mode","mode":"pause"}`)
	stream.until(func(f lab.Frame) bool { return len(f.Held) > 0 })
	p.Stops(t)
}

func TestRun_RecordsForReplay(t *testing.T) {
	folder := t.TempDir()
	recording, html := filepath.Join(folder, "run.jsonl"), filepath.Join(folder, "run.html")
	p := start(t, "run", "--record", recording, "--html", html, "--rate", "50")
	p.Prints(t, "reconciled")
	openStream(t, p.page(t)).until(func(f lab.Frame) bool { return f.Seq > 3 })
	p.Stops(t)
	page, err := os.ReadFile(html)
	require.NoError(t, err)
	assert.Contains(t, string(clitest.Unpacked(t, page)), `{"hello":`)

	p = start(t, "replay", recording)
	url := p.page(t)
	assert.True(t, openStream(t, url).hello.Replay)
	_, text := get(t, url+"/lab/recording")
	content, err := os.ReadFile(recording)
	require.NoError(t, err)
	assert.Equal(t, string(content), text)
	p.Stops(t)

	p = start(t, "replay", recording, "--html", filepath.Join(folder, "again.html"))
	p.Exits(t, cli.OK)
	again, err := os.ReadFile(filepath.Join(folder, "again.html"))
	require.NoError(t, err)
	assert.Equal(t, string(page), string(again))

	for _, wrong := range [][]string{
		{"replay"}, {"replay", html}, {"replay", filepath.Join(folder, "none")},
		{"replay", recording, "--listen", "0.0.0.0:0"},
		{"run", "--record", folder}, {"run", "--html", folder},
	} {
		start(t, wrong...).Exits(t, cli.Usage)
	}
}
