// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/observe/health"
	"example.com/informerstack/observe/journal"
)

// get asks for a target with an Accept header.
func get(handler http.Handler, target, accept string) *httptest.ResponseRecorder {
	return serve(handler, http.MethodGet, "localhost", target, "Accept", accept)
}

const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

// Browsers get the web page, and programs the text that they got before.
func TestWeb_IsForBrowsers(t *testing.T) {
	page := health.New()
	for _, row := range []struct{ target, accept, want string }{
		{"/debug/informers", browser, "text/html; charset=utf-8"},
		{"/debug/informers?format=html", "", "text/html; charset=utf-8"},
		{"/debug/informers", "", "text/plain; charset=utf-8"},
		{"/debug/informers", "*/*", "text/plain; charset=utf-8"},
		{"/debug/informers?format=text", browser, "text/plain; charset=utf-8"},
		{"/debug/informers?why=a", browser, "text/plain; charset=utf-8"},
		{"/debug/informers?format=json", browser, "application/json"},
		{"/debug/informers", "application/json", "application/json"},
	} {
		w := get(page, row.target, row.accept)
		assert.Equal(t, http.StatusOK, w.Code, row.target)
		assert.Equal(t, row.want, w.Header().Get("Content-Type"), "%s %s", row.target, row.accept)
	}
}

// Each reason and each kind of finding has a title in both languages.
func TestWeb_HasTitles(t *testing.T) {
	page := get(health.New(), "/debug/informers", browser).Body.String()
	for file, constant := range map[string]*regexp.Regexp{
		"answer.go":   regexp.MustCompile(`\bReason += "(\w+)"`),
		"findings.go": regexp.MustCompile(`\bFindingKind += "(\w+)"`),
	} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		found := constant.FindAllStringSubmatch(string(text), -1)
		require.Greater(t, len(found), 10, file)
		for _, name := range found {
			titles := regexp.MustCompile(`\b`+name[1]+`: "[^"]`).FindAllString(page, -1)
			assert.GreaterOrEqual(t, len(titles), 2, name[1])
		}
	}
}

// The policy lets the page's own script and style run, and nothing that an object's name brings.
func TestWeb_HasAPolicy(t *testing.T) {
	w := get(health.New(), "/debug/informers", browser)
	policy := w.Header().Get("Content-Security-Policy")
	for _, tag := range []string{"script", "style"} {
		content := regexp.MustCompile(`(?s)<`+tag+`>(.*?)</`+tag+`>`).FindAllStringSubmatch(
			w.Body.String(), -1)
		require.Len(t, content, 1, tag)
		sum := sha256.Sum256([]byte(content[0][1]))
		assert.Contains(t, policy,
			tag+"-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'")
	}
	assert.Contains(t, policy, "default-src 'none'; connect-src 'self'; ")
	assert.Contains(t, policy, "frame-ancestors 'none'")
	assert.Equal(t, "no-referrer", w.Header().Get("Referrer-Policy"))
	assert.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))

	w = serve(health.New(), http.MethodGet, "attacker.example", "/debug/informers",
		"Accept", browser)
	assert.Equal(t, http.StatusForbidden, w.Code)
}

// Reasons are large: a request for more keys gets no more of these.
func TestPage_HasReasonsOfFewKeys(t *testing.T) {
	page := record(t)
	queue := page.newQueue("settings")
	for i := range 150 {
		queue.Add(fmt.Sprint("ns/", i))
		key, _ := queue.Get()
		queue.Done(key)
	}
	for target, want := range map[string]int{"limit=1000": 100, "limit=20": 20, "": 100} {
		var got health.Page
		require.NoError(t, json.Unmarshal(
			get(page, "/debug/informers?format=json&"+target, "").Body.Bytes(), &got))
		assert.Len(t, got.Journal.Keys, want, target)
	}
}

func TestReplay_ShowsKeptPages(t *testing.T) {
	frame := func(ready ...string) health.Page {
		return health.Page{
			Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
			Queues: []health.Queue{{Name: "settings",
				Ready: health.List[string]{Total: len(ready), Items: ready}}},
			Journal: &journal.Facts{Recording: true, Keys: []journal.KeyFacts{{
				Queue: "settings", Key: "ns/done", Reconciles: 1, Last: []journal.Reconcile{{
					Queue: "settings", Key: "ns/done", Result: journal.Forgotten,
					Start:  time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC),
					Causes: []journal.Cause{{Kind: journal.Program, By: "main.main"}}}}}}},
		}
	}
	replay := health.NewReplay([]health.Page{frame("ns/a"), frame("ns/a", "ns/b"), frame("ns/b")})
	text := func(target string) string { return get(replay, target, "").Body.String() }

	assert.Contains(t, text("/debug/informers"), "ready: 1\n    ns/b\n")
	assert.Contains(t, text("/debug/informers?frame=1"), "ready: 2\n    ns/a\n    ns/b\n")
	assert.Equal(t, "ns/b is number 2 of 2 in queue settings; no worker has a key now: are the "+
		"workers running?\n", text("/debug/informers?frame=1&why=ns/b"))
	assert.Equal(t, "queue settings reconciled ns/done 5s ago, and whether it has changed "+
		"since is not known: it ended with Forget in 0s, because of: added by main.main\n"+
		"  last reconciles of 1 by queue settings:\n"+
		"    5s ago: ended with Forget in 0s, because of: added by main.main\n",
		text("/debug/informers?why=ns/done"))
	assert.Equal(t, "neither a queue nor a reason has ns/c, and a recording has no stores\n",
		text("/debug/informers?why=ns/c"))
	for _, bad := range []string{"-1", "3", "x", "99999999999999999999"} {
		w := get(replay, "/debug/informers?frame="+bad, "")
		assert.Equal(t, http.StatusBadRequest, w.Code)
		assert.Equal(t, "frame=\""+bad+"\": want a number from 0 to 2\n", w.Body.String())
	}
	w := get(replay, "/debug/informers", "application/json")
	assert.Equal(t, "3", w.Header().Get("Informerstack-Frames"))
	var page health.Page
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &page))
	assert.Equal(t, frame("ns/b").Queues[0].Ready, page.Queues[0].Ready)
}
