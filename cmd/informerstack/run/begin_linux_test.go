// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"example.com/informerstack/cmd/informerstack/cli/clitest"
)

// terminal returns the two ends of a pseudoterminal: that of the person who reads and types, and
// that of the program.
func terminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	require.NoError(t, err)
	t.Cleanup(func() { person.Close() })
	require.NoError(t, unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	program, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { program.Close() })
	return person, program
}

// startInTerminal starts the program in a terminal. The person sees Stdout there; Stderr is
// redirected.
func startInTerminal(t *testing.T, args ...string) (p *process, person *os.File) {
	t.Helper()
	person, program := terminal(t)
	before := os.Stdin
	os.Stdin = program
	t.Cleanup(func() { os.Stdin = before })
	p = &process{clitest.StartOn(t, program, []*cobra.Command{NewCommand()}, args...)}
	go func() { _, _ = io.Copy(&p.Stdout, person) }()
	return p, person
}

const enterBegins = "Press Enter to see the hops here, or open http://"

// lastLink is a link at the end.
var lastLink = regexp.MustCompile(`http://127\.0\.0\.1:\d+/\w+/\n$`)

// tokenOf is the token of a link.
var tokenOf = regexp.MustCompile(`\w+/$`)

// In a terminal the link is the last line until Enter is pressed or the page is opened.
func TestRun_TheLinkIsLastUntilTheReaderBegins(t *testing.T) {
	for name, begin := range map[string]func(link string, person *os.File){
		"Enter": func(_ string, person *os.File) {
			_, err := person.WriteString("\n")
			require.NoError(t, err)
		},
		"page": func(link string, _ *os.File) {
			code, _ := get(t, link)
			assert.Equal(t, http.StatusOK, code)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, person := startInTerminal(t, "run", "--rate", "1000")
			p.Prints(t, enterBegins)
			link := strings.TrimSpace(lastLink.FindString(p.Stderr.String()))
			require.NotEmpty(t, link, &p.Stderr)
			code, _ := get(t, tokenOf.ReplaceAllString(link, ""))
			assert.Equal(t, http.StatusUnauthorized, code)
			assert.Empty(t, p.Stdout.String())
			assert.Regexp(t, lastLink, p.Stderr.String())
			begin(link, person)
			p.Prints(t, "A line is one hop of a change")
			p.Prints(t, "reconciled default/settings-")
			p.Stops(t)
		})
	}
}

// Ctrl-C ends the program while it waits, without a hop or a summary.
func TestRun_EndsWhileItWaitsForTheReader(t *testing.T) {
	p, _ := startInTerminal(t, "run")
	p.Prints(t, enterBegins)
	p.Stops(t)
	assert.Empty(t, p.Stdout.String())
}

// A shell starts the program in the background: it may not read the terminal, which must not stop
// it.
func TestRun_BeginsInTheBackground(t *testing.T) {
	const variable = "INFORMERSTACK_TEST_IN_BACKGROUND"
	if os.Getenv(variable) != "" { // in the child
		<-entered(os.Stdin)
		fmt.Println("begun")
		return
	}
	person, program := terminal(t)
	shell := exec.CommandContext(t.Context(), "sh", "-c",
		`set -m; "$0" -test.run '^TestRun_BeginsInTheBackground$' & wait; kill -KILL %1`,
		os.Args[0])
	shell.Env = append(os.Environ(), variable+"=yes")
	shell.Stdin, shell.Stdout, shell.Stderr = program, program, program
	shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, shell.Start())
	require.NoError(t, program.Close())
	printed, _ := io.ReadAll(person) // it fails when the shell has ended
	_ = shell.Wait()
	assert.Contains(t, string(printed), "begun")
}

// The program waits for no person where no person begins it.
func TestRun_BeginsAtOnce(t *testing.T) {
	for _, flag := range []string{"--no-page", "--listen=127.0.0.1:0", "--duration=1h",
		"--leader-elect", "--shards=2", "--step"} {
		p, _ := startInTerminal(t, "run", "--rate", "0", flag)
		p.Prints(t, "Loaded 20 objects")
		assert.NotContains(t, p.Stderr.String(), enterBegins)
		p.Stops(t)
	}
}

// A pipe at either side is no terminal.
func TestRun_PipesDoNotWait(t *testing.T) {
	_, program := terminal(t)
	read, write, err := os.Pipe()
	require.NoError(t, err)
	defer read.Close()
	defer write.Close()
	var o options
	assert.True(t, o.waits(streams{in: program, out: program}))
	assert.False(t, o.waits(streams{in: read, out: program}))
	assert.False(t, o.waits(streams{in: program, out: write}))
}
