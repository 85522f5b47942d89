// SPDX-License-Identifier: Apache-2.0

package realserver

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/cmd/informerstack/cli/clitest"
)

// programVariable makes this test's program the one that start runs, which is ready, silent or
// fails.
const programVariable = "REALSERVER_TEST_PROGRAM"

func TestMain(m *testing.M) {
	switch os.Getenv(programVariable) {
	case "":
		os.Exit(m.Run())
	case "fails":
		fmt.Fprintln(os.Stderr, "wrong flag:", strings.Join(os.Args[1:], " "))
		os.Exit(2)
	case "ready":
		fmt.Println("Serving")
	case "ends":
		fmt.Println("Serving")
		os.Exit(1)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	fmt.Println("stopped")
}

func startAs(
	t *testing.T, ctx context.Context, program string, stdout, stderr io.Writer,
) (*Server, error) {
	t.Setenv(programVariable, program)
	return start(ctx, os.Args[0], []string{"--a=b"}, stdout, stderr)
}

// Close ends the program and waits for its last words.
func TestStart_UntilClose(t *testing.T) {
	var stdout clitest.Console
	s, err := startAs(t, t.Context(), "ready", &stdout, io.Discard)
	require.NoError(t, err)
	assert.Equal(t, "Serving\n", stdout.String())
	s.Close()
	assert.Equal(t, "Serving\nstopped\n", stdout.String())
}

func TestStart_EndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := startAs(t, ctx, "silent", io.Discard, io.Discard)
	assert.EqualError(t, err, "--real: interrupted")
}

func TestStart_Fails(t *testing.T) {
	var stderr bytes.Buffer
	_, err := startAs(t, t.Context(), "fails", io.Discard, &stderr)
	assert.EqualError(t, err, "--real: the server did not start")
	assert.Equal(t, "wrong flag: --until-eof --a=b\n", stderr.String())
}

func TestWait_ReportsTheEnd(t *testing.T) {
	s, err := startAs(t, t.Context(), "ends", io.Discard, io.Discard)
	require.NoError(t, err)
	assert.ErrorContains(t, s.Wait(t.Context()), "--real: the server has ended: exit status 1")
}

// The program is built from the source beside this one, else from this version's module.
func TestFind(t *testing.T) {
	_, here, _, _ := runtime.Caller(0)
	s, err := find(here, "v1.2.3")
	require.NoError(t, err)
	assert.FileExists(t, filepath.Join(s.dir, s.argument, "main.go"))
	moved := filepath.Join(t.TempDir(), "cmd", "informerstack", "realserver", "source.go")
	for _, file := range []string{moved, "example.com/informerstack/cmd/x.go"} {
		s, err = find(file, "v1.2.3")
		require.NoError(t, err)
		assert.Equal(t, source{
			"", "example.com/informerstack/realserver/cmd/realserver", "v1.2.3"}, s)
		for _, version := range []string{"", "(devel)", "v1.2.3+dirty"} {
			_, err = find(file, version)
			assert.ErrorContains(t, err, "build the program without -trimpath")
		}
	}
}
