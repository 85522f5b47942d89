// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/cmd/informerstack/cli"
	"example.com/informerstack/compat/devtools"
	"example.com/informerstack/internal/tools/swap"
)

// queueProgram writes a program and returns its folder. The program's client-go is a folder with a
// queue in it.
func queueProgram(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	for path, text := range map[string]string{
		"go.mod": "module example.org/program\n\ngo 1.26.0\n\nrequire " +
			"k8s.io/client-go v0.37.2\n\nreplace k8s.io/client-go => ./fork\n",
		"main.go": "package main\n\nimport " +
			"\"k8s.io/client-go/util/workqueue\"\n\nvar _ workqueue.Interface\n\nfunc main() {}\n",
		"fork/go.mod":                "module k8s.io/client-go\n\ngo 1.26.0\n",
		"fork/util/workqueue/one.go": "package workqueue\n\ntype Interface interface{}\n",
	} {
		path = filepath.Join(dir, filepath.FromSlash(path))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	return dir
}

// execute runs informerstack with args, which begin with swap, and returns its exit code.
func execute(t *testing.T, args []string, stdout, stderr io.Writer) int {
	t.Helper()
	return cli.Execute(t.Context(), args, stdout, stderr, NewCommand())
}

func TestSwap_NamesTheVariableOfDevtools(t *testing.T) {
	assert.Equal(t, devtools.Environment, swap.DevtoolsVariable)
}

func TestSwap_SaysHowToUseAndHowToUndo(t *testing.T) {
	dir := queueProgram(t)
	var stdout, stderr bytes.Buffer
	require.Equal(t, cli.OK, execute(t, []string{"swap", "--pieces", "workqueue", dir},
		&stdout, &stderr), stderr.String())
	assert.Contains(t, stdout.String(), "k8s.io/client-go from "+filepath.Join(dir, "fork"))
	assert.Contains(t, stdout.String(),
		"GOWORK="+filepath.Join(dir, ".informerstack", "go.work")+" go build ./...")
	assert.Contains(t, stdout.String(), "rm -r "+filepath.Join(dir, ".informerstack"))
}

// The command runs in the program's folder with the swap; its output and exit code become those of
// informerstack.
func TestSwap_RunsACommand(t *testing.T) {
	dir := queueProgram(t)
	out := filepath.Join(t.TempDir(), "out")
	swapped := []string{"swap", "--pieces", "workqueue", "--out", out, dir, "--"}
	var stdout, stderr bytes.Buffer
	require.Equal(t, cli.OK, execute(t, append(swapped, "go", "env", "GOWORK", "GOMOD"),
		&stdout, &stderr), stderr.String())
	assert.Equal(t, filepath.Join(out, "go.work")+"\n"+filepath.Join(dir, "go.mod")+"\n",
		stdout.String())

	require.Equal(t, cli.Usage, execute(t, append(swapped, "go", "tool", "there-is-none"),
		&stdout, &stderr), stderr.String())
	require.Equal(t, cli.Failed,
		execute(t, append(swapped, "./there-is-no-such-command"), &stdout, &stderr))
	assert.Contains(t, stderr.String(), "there-is-no-such-command")
}

// The command runs in the named folder, and its working directory has the path that the swap uses.
func TestSwap_RunsACommandInTheNamedFolder(t *testing.T) {
	dir := queueProgram(t)
	below := filepath.Join(dir, "below")
	require.NoError(t, os.Mkdir(below, 0o755))
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(below, link))
	t.Chdir(link)
	var stdout, stderr bytes.Buffer
	require.Equal(t, cli.OK, execute(t, []string{"swap", "--pieces", "workqueue", "--",
		"printenv", "PWD", "GOWORK"}, &stdout, &stderr), stderr.String())
	assert.Equal(t, below+"\n"+filepath.Join(dir, ".informerstack", "go.work")+"\n",
		stdout.String())
	work, err := os.ReadFile(filepath.Join(dir, ".informerstack", "go.work"))
	require.NoError(t, err)
	assert.Contains(t, string(work), "\t..\n", "the program, from where the swap is")
}

func TestQuoted(t *testing.T) {
	assert.Equal(t, "/a/b-1.0@x", quoted("/a/b-1.0@x"))
	assert.Equal(t, `'/o p/$HOME'`, quoted("/o p/$HOME"))
	assert.Equal(t, `'it'\''s'`, quoted("it's"))
}

func TestSwap_RefusesBadUsage(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"one", "two"}, "one MODULE-DIR"},
		{[]string{".", "--"}, "no command after --"},
		{[]string{"--pieces", "store"}, `no piece "store"`},
		{[]string{t.TempDir()}, "is in no Go module"},
		{[]string{""}, "MODULE-DIR is empty"},
		{[]string{"--pieces", ""}, "--pieces is empty"},
		{[]string{"--out", ""}, "--out is empty"},
		{[]string{".", "--", "there-is-no-such-command"}, "there-is-no-such-command"},
		{[]string{"--no-such-flag"}, "no-such-flag"},
	} {
		var stdout, stderr bytes.Buffer
		assert.Equal(t, cli.Usage,
			execute(t, append([]string{"swap"}, test.args...), &stdout, &stderr))
		assert.Contains(t, stderr.String(), test.want)
		assert.Empty(t, stdout.String())
	}
}

func TestSwap_ServesDevtoolsOnLoopback(t *testing.T) {
	for address, want := range map[string]string{
		"0.0.0.0:9000": "want a loopback address, such as 127.0.0.1:9000",
		"9000":         "want HOST:PORT",
		"":             "--devtools is empty",
		".": `--devtools "." is a folder: want an address before it, such as ` +
			"--devtools 127.0.0.1:9000 .",
	} {
		var stdout, stderr bytes.Buffer
		args := []string{"swap", "--devtools", address, t.TempDir()}
		assert.Equal(t, cli.Usage, execute(t, args, &stdout, &stderr))
		assert.Contains(t, stderr.String(), want)
	}
}
