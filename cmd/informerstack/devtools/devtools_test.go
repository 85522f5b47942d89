// SPDX-License-Identifier: Apache-2.0

package devtools

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/cmd/informerstack/cli"
	"example.com/informerstack/observe/health"
	"example.com/informerstack/workqueue"
)

// runDevtools runs the command and returns what it prints, to stdout or as its error.
func runDevtools(t *testing.T, want int, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := cli.Execute(t.Context(), append([]string{"devtools"}, args...), &stdout, &stderr,
		NewCommand())
	require.Equal(t, want, code, stderr.String())
	return stdout.String() + stderr.String()
}

func TestDevtools_AsksAProgram(t *testing.T) {
	page := health.New()
	queue := workqueue.NewTyped[string](workqueue.Config[string]{})
	defer queue.ShutDown()
	queue.Add("default/a")
	health.AddQueue(page, "settings", queue)
	server := httptest.NewServer(http.StripPrefix("/prefix", page))
	defer server.Close()
	for _, address := range []string{
		server.URL + "/prefix", server.URL + "/prefix/", server.URL + "/prefix/debug/informers",
		strings.TrimPrefix(server.URL, "http://") + "/prefix",
	} {
		assert.Contains(t, runDevtools(t, cli.OK, address), "queue settings\n  ready: 1\n", address)
	}
	why := runDevtools(t, cli.OK, server.URL+"/prefix", "--why", "default/a")
	assert.Equal(t, "default/a is number 1 of 1 in queue settings; no worker has a key now: are "+
		"the workers running?\n", why)
	assert.Contains(t, runDevtools(t, cli.OK, server.URL+"/prefix", "--why", "default/a",
		"--format", "json"), `"reason": "queued"`)
	for i := range 300 {
		queue.Add(fmt.Sprint("default/more-", i))
	}
	keys := runDevtools(t, cli.OK, server.URL+"/prefix", "--queue", "settings", "--from", "102")
	assert.Contains(t, keys,
		"queue settings\n  ready: 301, from number 102\n    default/more-100\n")
	assert.Contains(t, keys, "    default/more-199\n    and 100 more\n")
	assert.Contains(t, runDevtools(t, cli.Failed, server.URL+"/prefix", "--queue", "b"),
		`answers 400 Bad Request: queue="b": no queue and no controller has this name: `+
			"want one of settings")
	assert.Contains(t, runDevtools(t, cli.Failed, server.URL),
		"answers 404 Not Found: no devtools are served at this address, or the link is not "+
			"complete")
}

func TestDevtools_RefusesBadInput(t *testing.T) {
	for want, args := range map[string][]string{
		"want one LINK":                    {"a", "b"},
		"want a link such as":              {"ftp://a"},
		"dots in place of an address":      {"..."},
		"want the link that the program":   {"http://…/debug/informers"},
		"--why is empty":                   {"a", "--why", ""},
		`--format "x": want text or json`:  {"a", "--format", "x"},
		"invalid port":                     {"http://a:b:c"},
		"unknown flag: --nothing":          {"--nothing"},
		"--queue is empty":                 {"a", "--queue", ""},
		"--queue and --why are two":        {"a", "--queue", "b", "--why", "c"},
		"--from has no effect without":     {"a", "--from", "2"},
		"--from 0: want a number from 1":   {"a", "--queue", "b", "--from", "0"},
		`invalid character " " in host na`: {"a b"},
	} {
		assert.Contains(t, runDevtools(t, cli.Usage, args...), want)
	}
}

// Whatever answers, the terminal is safe. The token is neither sent elsewhere nor printed.
func TestDevtools_HostileProgram(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the redirection was followed")
	}))
	defer elsewhere.Close()
	answers := map[string]http.HandlerFunc{
		"/escape": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("\x1b[2Jqueue\r\n\u202e"))
		},
		"/redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusFound)
		},
		"/endless": func(w http.ResponseWriter, _ *http.Request) {
			for range maxPage >> 20 {
				_, _ = w.Write(make([]byte, 1<<20))
			}
			_, _ = w.Write([]byte("more"))
		},
		"/torn": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("a part"))
			panic(http.ErrAbortHandler)
		},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answers[strings.TrimSuffix(r.URL.Path, InformersPage)](w, r)
	}))
	assert.Equal(t, "\\x1b[2Jqueue\\r\n\\u202e\n", runDevtools(t, cli.OK, server.URL+"/escape"))
	assert.Contains(t, runDevtools(t, cli.Failed, server.URL+"/redirect"), "302 Found")
	assert.Contains(t, runDevtools(t, cli.Failed, server.URL+"/endless"), "more than 16 MiB")
	torn := runDevtools(t, cli.Unreachable, server.URL+"/torn")
	assert.Contains(t, torn, "EOF")
	assert.NotContains(t, torn, "a part")
	server.Close()
	refused := runDevtools(t, cli.Unreachable, server.URL+"/the-token")
	assert.Contains(t, refused, "connection refused")
	assert.NotContains(t, refused, "the-token")
}
