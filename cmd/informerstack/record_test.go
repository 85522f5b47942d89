// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/cmd/informerstack/cli"
	"example.com/informerstack/observe/health"
	"example.com/informerstack/observe/journal"
	"example.com/informerstack/workqueue"
)

// A program is recorded, and its recording is replayed without it.
func TestDevtools_RecordsAProgram(t *testing.T) {
	page := health.New()
	page.SetJournal(journal.New())
	queue := workqueue.NewTyped[string](workqueue.Config[string]{})
	defer queue.ShutDown()
	queue.Add("default/a")
	for i := range 1000 {
		queue.Add(fmt.Sprint("default/k", i))
	}
	health.AddQueue(page, "settings", queue)
	program := httptest.NewServer(page)
	path := filepath.Join(t.TempDir(), "program.jsonl")

	ctx, cancel := context.WithCancel(t.Context())
	recorded := make(chan string, 1)
	go func() {
		var stderr bytes.Buffer
		code := cli.Execute(ctx, []string{"devtools", program.URL, "--record", path, "--last",
			"1h"}, io.Discard, &stderr, commands()...)
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
		replayed <- cli.Execute(ctx, []string{"replay", path}, io.Discard, w, commands()...)
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
	assert.Equal(t, cli.OK, <-replayed)

	var refused bytes.Buffer
	assert.Equal(t, cli.Usage, cli.Execute(t.Context(), []string{"replay", path, "--html", "x"},
		io.Discard, &refused, commands()...))
	assert.Contains(t, refused.String(), "is a recording of devtools: see it without --html")
}
