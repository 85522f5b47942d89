// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// StartServer starts a program that prints its URL, and returns that. The program ends when its
// stdin is closed, which happens when b ends.
func StartServer(b *testing.B, program *exec.Cmd) (url string) {
	program.Stderr = os.Stderr
	until, err := program.StdinPipe()
	require.NoError(b, err)
	out, err := program.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, program.Start())
	b.Cleanup(func() {
		require.NoError(b, until.Close())
		require.NoError(b, program.Wait())
	})
	url, err = bufio.NewReader(out).ReadString('\n')
	require.NoError(b, err)
	return strings.TrimSpace(url)
}
