// SPDX-License-Identifier: Apache-2.0

//go:build unix

package swap

import (
	"bytes"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/cmd/informerstack/cli"
)

// A terminal sends Ctrl-C to the command too: it must not arrive twice. SIGTERM arrives only at
// informerstack, which forwards it. informerstack ends after the command, with its exit code.
func TestSwap_EndsAsItsCommandEnds(t *testing.T) {
	dir := queueProgram(t)
	const patient = `trap 'echo interrupted' INT; trap 'echo terminated; kill $!; exit 7' TERM; sleep 60 & echo ready; wait; wait`
	for _, test := range []struct {
		script string
		code   int
		stdout string
	}{
		{patient, 7, "ready\nterminated\n"},
		{"kill -KILL $$", 128 + 9, ""},
		{"exit 0", cli.OK, ""},
	} {
		stdout := &onReady{then: func() {
			assert.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGINT))
			assert.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGTERM))
		}}
		var stderr bytes.Buffer
		code := execute(t, []string{"swap", "--pieces", "workqueue", dir, "--", "sh",
			"-c", test.script}, stdout, &stderr)
		require.Equal(t, test.code, code, stderr.String())
		assert.Equal(t, test.stdout, stdout.String())
	}
}

// onReady is a buffer that calls a function when ready is written.
type onReady struct {
	strings.Builder
	then func()
}

func (b *onReady) Write(text []byte) (int, error) {
	n, err := b.Builder.Write(text)
	if strings.Contains(string(text), "ready") {
		b.then()
	}
	return n, err
}
