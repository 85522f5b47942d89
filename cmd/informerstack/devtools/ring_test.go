// SPDX-License-Identifier: Apache-2.0

package devtools

import (
	"bytes"
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

	"example.com/informerstack/cmd/informerstack/cli"
	"example.com/informerstack/observe/health"
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

func TestDevtools_RefusesBadRecordings(t *testing.T) {
	folder := t.TempDir()
	for content, want := range map[string]string{
		ringHead:                      "has no frames",
		ringHead + "{\n":              "line 2: unexpected end of JSON input",
		ringHead + "{}\n{\"time\":1}": "line 3: ",
	} {
		path := filepath.Join(folder, "bad.jsonl")
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		_, ofDevtools, err := ReadRecording(path)
		assert.True(t, ofDevtools)
		assert.ErrorContains(t, err, want)
	}
	for want, args := range map[string][]string{
		"--record takes no --why, --queue or --format": {"a", "--record", "x", "--why", "b"},
		"--record takes no --why, --queue or":          {"a", "--record", "x", "--queue", "b"},
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
		cli.Execute(t.Context(), append([]string{"devtools"}, args...), io.Discard, &stderr,
			NewCommand())
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
		frames, _, err := ReadRecording(path)
		require.NoError(t, err, odd)
		assert.Len(t, frames, 1)
		program.Close()
	}
}
