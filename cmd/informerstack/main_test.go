// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"net/http/httptest"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"

	"example.com/informerstack/cmd/informerstack/cli"
	"example.com/informerstack/cmd/informerstack/cli/clitest"
	"example.com/informerstack/observe/health"
	"example.com/informerstack/workqueue"
)

// fullDisk refuses each write after the first n bytes.
type fullDisk struct{ left int }

func (d *fullDisk) Write(p []byte) (int, error) {
	n := min(d.left, len(p))
	d.left -= n
	if n < len(p) {
		return n, syscall.ENOSPC
	}
	return n, nil
}

// Each command that prints ends, and fails, if the standard output cannot be written.
func TestStandardOutput_ErrorsAreReported(t *testing.T) {
	page := health.New()
	queue := workqueue.NewTyped[string](workqueue.Config[string]{})
	defer queue.ShutDown()
	queue.Add("default/a")
	health.AddQueue(page, "settings", queue)
	server := httptest.NewServer(page)
	defer server.Close()
	for name, args := range map[string][]string{
		"run":           {"run", "--no-page", "--objects", "3"},
		"run json":      {"run", "--no-page", "--objects", "3", "--output", "json"},
		"serve":         {"serve", "--kubeconfig", filepath.Join(t.TempDir(), "kubeconfig")},
		"devtools":      {"devtools", server.URL},
		"devtools json": {"devtools", server.URL, "--format", "json"},
		"devtools why":  {"devtools", server.URL, "--why", "default/a"},
		"help":          {"run", "--help"},
		"no command":    {},
	} {
		for _, room := range []int{0, 40} {
			var stderr bytes.Buffer
			code := cli.Execute(t.Context(), args, &fullDisk{left: room}, &stderr, commands()...)
			assert.Equal(t, cli.Failed, code, "%s, room for %d bytes", name, room)
			assert.Contains(t, stderr.String(),
				"informerstack: standard output: no space left on device\n", name)
		}
	}
}

func TestUnknownCommand(t *testing.T) {
	p := clitest.Start(t, commands(), "walk")
	p.Exits(t, cli.Usage)
	assert.Contains(t, p.Stderr.String(), `unknown command "walk"`)
}
