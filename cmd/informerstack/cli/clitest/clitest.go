// SPDX-License-Identifier: Apache-2.0

// Package clitest runs commands of informerstack in tests, in the process of the test.
//
//	arguments -> [clitest] -> cli.Execute -> what the command writes
//
// Goroutines: one for each Process, until the command ends. Locking: a mutex of each Console.
package clitest

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/cmd/informerstack/cli"
)

// Patience is how long a test waits for what must happen. Only a test that fails waits that long.
const Patience = 3 * time.Minute

// Console holds the program's output, which can be read while it runs.
type Console struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (c *Console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.Write(p)
}

// String returns what was written so far.
func (c *Console) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}

// Process is the program, running in this process.
type Process struct {
	Stdout, Stderr Console
	// Interrupt does what Ctrl-C does.
	Interrupt context.CancelFunc
	code      chan int
}

// Start runs the program with these commands until it ends, or until the end of the test.
func Start(t *testing.T, commands []*cobra.Command, args ...string) *Process {
	t.Helper()
	p := &Process{}
	p.start(t, &p.Stdout, commands, args)
	return p
}

// StartOn is Start with another standard output, such as a terminal. Stdout stays empty unless the
// caller copies to it.
func StartOn(
	t *testing.T, stdout io.Writer, commands []*cobra.Command, args ...string,
) *Process {
	t.Helper()
	p := &Process{}
	p.start(t, stdout, commands, args)
	return p
}

func (p *Process) start(
	t *testing.T, stdout io.Writer, commands []*cobra.Command, args []string,
) {
	ctx, cancel := context.WithCancel(t.Context())
	p.Interrupt, p.code = cancel, make(chan int, 1)
	go func() { p.code <- cli.Execute(ctx, args, stdout, &p.Stderr, commands...) }()
	t.Cleanup(cancel)
}

// Prints waits until the program has written text.
func (p *Process) Prints(t *testing.T, text string) {
	t.Helper()
	require.Eventually(t,
		func() bool { return strings.Contains(p.Stdout.String()+p.Stderr.String(), text) },
		Patience, time.Millisecond, "%q in\n%s%s", text, &p.Stdout, &p.Stderr)
}

// Exits waits for the end of the program, and compares its exit code.
func (p *Process) Exits(t *testing.T, code int) {
	t.Helper()
	select {
	case got := <-p.code:
		assert.Equal(t, code, got, "exit code; it wrote\n%s", &p.Stderr)
	case <-time.After(Patience):
		t.Fatalf("still running; it wrote\n%s%s", &p.Stdout, &p.Stderr)
	}
}

// Stops interrupts the program, which ends without an error.
func (p *Process) Stops(t *testing.T) {
	t.Helper()
	p.Interrupt()
	p.Exits(t, cli.OK)
}

// RequirePrintable fails if text has a control character, is long, or has a line that begins with
// "Watching forged".
func RequirePrintable(t *testing.T, text string) {
	t.Helper()
	require.Less(t, len(text), 100_000)
	assert.NotContains(t, text, "\nWatching forged")
	for _, r := range text {
		require.True(t, r == '\n' || r == '\t' || strconv.IsPrint(r), "%q in %.500q", r, text)
	}
}

var embedded = regexp.MustCompile(`(?s)<script type="text/plain" id="recording">(.*?)</script>`)

// Unpacked returns the recording of a page, which is compressed there.
func Unpacked(t *testing.T, page []byte) []byte {
	t.Helper()
	found := embedded.FindSubmatch(page)
	require.NotNil(t, found)
	packed := base64.NewDecoder(base64.StdEncoding, bytes.NewReader(found[1]))
	recording, err := gzip.NewReader(packed)
	require.NoError(t, err)
	content, err := io.ReadAll(recording)
	require.NoError(t, err)
	return content
}
