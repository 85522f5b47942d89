// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/observe/health"
	"example.com/informerstack/observe/journal"
	"example.com/informerstack/workqueue"
)

// The ring holds what is younger than last and fits, and the newest frame in any case.
func TestRing_IsBounded(t *testing.T) {
	start := time.Now()
	r := ring{last: time.Minute}
	for i := range 100 {
		r.add(start.Add(time.Duration(i)*time.Second), []byte("line\n"))
		assert.LessOrEqual(t, len(r.frames), 61)
		assert.Equal(t, 5*len(r.frames), r.bytes)
	}
	assert.Len(t, r.frames, 61)
	big := make([]byte, maxRingBytes/2)
	for i := range 5 {
		r.add(start.Add(101*time.Second), big[:len(big)-i])
		assert.LessOrEqual(t, r.bytes, maxRingBytes)
	}
	assert.Len(t, r.frames, 2)
	r.add(start.Add(102*time.Second), make([]byte, maxRingBytes+1))
	assert.Len(t, r.frames, 1)
	r.add(start.Add(time.Hour), []byte("line\n"))
	assert.Len(t, r.frames, 1)
	assert.Equal(t, 5, r.bytes)
}

// A program is recorded, and its recording is replayed without it.
func TestDevtools_RecordsAProgram(t *testing.T) {
	page := health.New()
	page.SetJournal(journal.New())
	queue := workqueue.NewTyped[string](workqueue.Config[string]{})
	defer queue.ShutDown()
	queue.Add("default/a")
	for i := range recordedKeys {
		queue.Add(fmt.Sprint("default/k", i))
	}
	health.AddQueue(page, "settings", queue)
	program := httptest.NewServer(page)
	path := filepath.Join(t.TempDir(), "program.jsonl")

	ctx, cancel := context.WithCancel(t.Context())
	recorded := make(chan string, 1)
	go func() {
		var stderr bytes.Buffer
		code := execute(ctx, []string{"devtools", program.URL, "--record", path, "--last", "1h"},
			io.Discard, &stderr)
		recorded <- fmt.Sprint(code, " ", stderr.String())
	}()
	require.Eventually(t, func() bool {
		_, err := os.Stat(path)
		return err == nil
	}, time.Minute, time.Millisecond)
	cancel()
	assert.Equal(t, fmt.Sprintf("0 Recording the last 1h0m0s to %s. Ctrl-C stops.\n"+
		"Wrote %[1]s; see it with: informerstack replay %[1]s\n", path), <-recorded)
	program.Close()

	ctx, cancel = context.WithCancel(t.Context())
	stderr, w := io.Pipe()
	replayed := make(chan int, 1)
	go func() {
		defer w.Close()
		replayed <- execute(ctx, []string{"replay", path}, io.Discard, w)
	}()
	var link string
	_, err := fmt.Fscanf(stderr, "Open %s to", &link)
	require.NoError(t, err)
	go func() { _, _ = io.Copy(io.Discard, stderr) }()
	for query, want := range map[string]string{
		"?format=text": "queue settings\n  ready: 1001\n    default/a\n",
		"?limit=1&format=text": "queue settings\n  ready: 1001\n    default/a\n" +
			"    and 1000 more\n",
		"?why=default/k998": "default/k998 is number 1000 of 1001 in queue settings; no worker",
		"?why=default/k999": "neither a queue nor a reason has default/k999, and a recording " +
			"has no stores\n  the recording has only the first keys of long lists\n",
	} {
		response, err := http.Get(link + query)
		require.NoError(t, err)
		text, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		assert.NoError(t, response.Body.Close())
		assert.Contains(t, string(text), want)
	}
	cancel()
	assert.Equal(t, exitOK, <-replayed)

	var refused bytes.Buffer
	assert.Equal(t, exitUsage,
		execute(t.Context(), []string{"replay", path, "--html", "x"}, io.Discard, &refused))
	assert.Contains(t, refused.String(), "is a recording of devtools: see it without --html")
}

func TestDevtools_RefusesBadRecordings(t *testing.T) {
	folder := t.TempDir()
	for content, want := range map[string]string{
		ringHead:                      "has no frames",
		ringHead + "{\n":              "line 2: unexpected end of JSON input",
		ringHead + "{}\n{\"time\":1}": "line 3: ",
	} {
		path := filepath.Join(folder, "bad.jsonl")
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		_, ofDevtools, err := readRing(path)
		assert.True(t, ofDevtools)
		assert.ErrorContains(t, err, want)
	}
	for want, args := range map[string][]string{
		"--record takes neither --why nor --format":    {"a", "--record", "x", "--why", "b"},
		"--last has no effect without --record":        {"a", "--last", "1m"},
		"--last -1s: want a positive duration":         {"a", "--record", "x", "--last", "-1s"},
		"--record: open":                               nil,
		"does not answer with JSON: invalid character": {},
	} {
		switch {
		case args == nil:
			program := httptest.NewServer(health.New())
			defer program.Close()
			args = []string{program.URL, "--record", filepath.Join(folder, "no", "folder")}
		case len(args) == 0:
			program := httptest.NewServer(http.HandlerFunc(
				func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
			defer program.Close()
			args = []string{program.URL, "--record", filepath.Join(folder, "file")}
		}
		var stderr bytes.Buffer
		execute(t.Context(), append([]string{"devtools"}, args...), io.Discard, &stderr)
		assert.Contains(t, stderr.String(), want)
	}
}

// A program that ends does not lose what was recorded.
func TestDevtools_KeepsTheFramesOfAProgramThatEnded(t *testing.T) {
	var asked atomic.Int32
	program := httptest.NewServer(http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) {
			if asked.Add(1) > 3 {
				panic(http.ErrAbortHandler)
			}
			_, _ = io.WriteString(w, "{}")
		}))
	defer program.Close()
	page, err := url.Parse(program.URL)
	require.NoError(t, err)
	r := ring{last: time.Hour}
	for range 5 {
		err = r.frame(t.Context(), page, time.Now())
	}
	assert.ErrorContains(t, err, strings.TrimPrefix(program.URL, "http://"))
	assert.Len(t, r.frames, 3)
}

// An answer that is no page is not recorded: the whole recording could not be read.
func TestRing_LeavesOutWhatIsNoPage(t *testing.T) {
	for _, odd := range []string{`[]`, `1`, `{"informers":{}}`, `"text"`, `{"time":5}`} {
		answers := []string{odd, `{"time":"2026-01-02T15:04:05Z"}`}
		program := httptest.NewServer(http.HandlerFunc(
			func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, answers[len(answers)-1])
				answers = answers[:len(answers)-1]
			}))
		page, err := url.Parse(program.URL)
		require.NoError(t, err)
		r := ring{last: time.Hour}
		require.NoError(t, r.frame(t.Context(), page, time.Now()))
		assert.ErrorContains(t, r.frame(t.Context(), page, time.Now()),
			"does not answer with a page", odd)
		path := filepath.Join(t.TempDir(), "program.jsonl")
		require.NoError(t, r.save(path))
		frames, _, err := readRing(path)
		require.NoError(t, err, odd)
		assert.Len(t, frames, 1)
		program.Close()
	}
}
