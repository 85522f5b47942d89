// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/informerstack/internal/tools/transcript"
	"example.com/informerstack/realserver/cluster"
)

// Sessions of kubectl print the same on a real server as on that of informerstack serve --rbac.
// Where they differ, the output of the latter is below "---- apitest".
//
//	write FILE YAML       write a file, in one line; --- starts another document
//	kubectl ARGUMENT...   run kubectl; prints its output, errors included
//	await ARGUMENT...     run kubectl until it succeeds; prints nothing
//
// The real server runs beside the namespace controller, the garbage collector and the aggregation
// of cluster roles of a controller manager.
func TestKubectl(t *testing.T) {
	if shared.Version() != cluster.Versions[0] {
		t.Skip("kubectl and the controllers are those of the newer server")
	}
	kubectl := buildModule(t, "kubectl")
	t.Run("real", func(t *testing.T) {
		c := cluster.New(t, cluster.Options{})
		controllers := exec.Command(buildModule(t, "controllers"), c.Kubeconfig())
		require.NoError(t, controllers.Start())
		t.Cleanup(func() {
			_ = controllers.Process.Kill() // it may have ended
			_ = controllers.Wait()
		})
		playKubectl(t, transcript.Ours, kubectl, "--kubeconfig="+c.Kubeconfig())
	})
	t.Run("apitest", func(t *testing.T) {
		kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
		serve := startProgram(t, "serve", "--rbac", "--kubeconfig="+kubeconfig)
		require.Eventually(t, func() bool {
			_, err := os.Stat(kubeconfig) // which it writes when it serves
			return err == nil
		}, patience, 20*time.Millisecond)
		playKubectl(t, "apitest", kubectl, "--kubeconfig="+kubeconfig)
		require.Zero(t, serve.interrupt())
	})
}

// buildModule builds the program in a folder that is a module of its own.
func buildModule(t *testing.T, folder string) string {
	program := filepath.Join(t.TempDir(), folder)
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Dir = folder
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

// session is a folder with files, and a server.
type session struct {
	t                   *testing.T
	kubectl, kubeconfig string // the program, and the flag for its server
	folder              string
}

func playKubectl(t *testing.T, variant, kubectl, kubeconfig string) {
	for _, file := range transcript.Glob(t, "../testdata/kubectl/*.txt") {
		s := &session{t, kubectl, kubeconfig, t.TempDir()}
		file.Play(t, variant, s.exec)
	}
}

func (s *session) exec(cmd transcript.Command) string {
	if cmd.Name == "write" {
		_, content, _ := strings.Cut(strings.TrimPrefix(cmd.Line, "write "), " ")
		require.NoError(s.t, os.WriteFile(filepath.Join(s.folder, cmd.Arg(0)),
			[]byte(strings.ReplaceAll(content, " --- ", "\n---\n")), 0o600))
		return ""
	}
	if cmd.Name == "await" { // a real server describes a new kind a moment after it serves it
		require.Eventually(s.t, func() bool { return s.kubectlCommand(cmd.Args).Run() == nil },
			kubectlTimeout, 100*time.Millisecond, cmd.Line)
		return ""
	}
	require.Equal(s.t, "kubectl", cmd.Name, "a command: %s", cmd.Line)
	out, _ := s.kubectlCommand(cmd.Args).CombinedOutput() // the output says what is wrong
	return normalizeKubectl(string(out))
}

// kubectlTimeout bounds a command of kubectl.
const kubectlTimeout = time.Minute

func (s *session) kubectlCommand(args []string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(s.t.Context(), kubectlTimeout)
	s.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, s.kubectl, append([]string{s.kubeconfig}, args...)...)
	cmd.Dir = s.folder
	cmd.Env = append(os.Environ(), "KUBECONFIG=", "HOME="+s.folder)
	return cmd
}

var kubectlVaries = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`), "<uid>"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`), "<time>"},
	{regexp.MustCompile(`/tmp/(LIVE|MERGED)-\d+/(\S+)(\s.*0000)?`), "$1/$2"},
	{regexp.MustCompile(`(resourceVersion: )"\d+"`), "$1<version>"},
	{regexp.MustCompile(`\b10\.\d+\.\d+\.\d+\b`), "<address>"},
	{regexp.MustCompile(`\b\d+m?\d*s\b`), "<age>"},
	{regexp.MustCompile(`https?://127\.0\.0\.1:\d+`), "<server>"},
}

// normalizeKubectl replaces what differs between runs; blanks in columns, and empty lines, which
// would end a section, are not compared.
func normalizeKubectl(out string) string {
	for _, v := range kubectlVaries {
		out = v.pattern.ReplaceAllString(out, v.by)
	}
	var lines []string
	for line := range strings.Lines(out) {
		indent := len(line) - len(strings.TrimLeft(line, " "))
		if words := strings.Join(strings.Fields(line), " "); words != "" {
			lines = append(lines, strings.Repeat(" ", indent)+words)
		}
	}
	return strings.Join(lines, "\n")
}
