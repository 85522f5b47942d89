// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/realserver/cluster"
)

// checksumName is the label that requests a checksum, and the annotation that holds it.
const checksumName = "informerstack.example.com/checksum"

// The main job: the program keeps the checksums of the labelled ConfigMaps on a real server, and
// shows every hop.
func TestProgram_KeepsChecksums(t *testing.T) {
	objects := newConfigMaps(t, shared)
	labelled := map[string]string{checksumName: "true"}
	objects.create("before", labelled)
	objects.create("unlabelled", nil)
	program := startProgram(t, "run", "--kubeconfig", shared.Kubeconfig(), "--namespace",
		objects.namespace, "--reconcile", "--output", "json")
	hasChecksum := func(name, value string) {
		t.Helper()
		require.EventuallyWithT(t, func(t *assert.CollectT) {
			assert.Equal(t, checksum(value), objects.get(name).Annotations[checksumName])
		}, patience, 20*time.Millisecond)
	}
	hasChecksum("before", "1")
	objects.create("during", labelled)
	hasChecksum("during", "1")
	objects.change("during", "2")
	hasChecksum("during", "2")
	objects.delete("before")
	program.printed("server DELETED " + objects.namespace + "/before")
	assert.Equal(t, 0, program.interrupt())
	assert.Empty(t, objects.get("unlabelled").Annotations)
	assert.Equal(t, []string{
		"server ADDED", "deltafifo Add", "deltafifo Pop", "store Add", "handler OnAdd",
		"workqueue Add", "workqueue Get",
		"worker reconcile",
	}, program.firstHops(objects.namespace+"/during", 8))
	program.printed("server PATCH " + objects.namespace + "/during")
}

// Without --reconcile the program only reads.
func TestProgram_OnlyReadsUnlessAsked(t *testing.T) {
	objects := newConfigMaps(t, shared)
	objects.create("a", map[string]string{checksumName: "true"})
	program := startProgram(t, "run", "--kubeconfig", shared.Kubeconfig(), "--namespace",
		objects.namespace, "--output", "json")
	program.printed("worker reconciled " + objects.namespace + "/a")
	assert.Equal(t, 0, program.interrupt())
	assert.Empty(t, objects.get("a").Annotations)
}

// Each error is reported and has its exit code.
func TestProgram_ExitCodes(t *testing.T) {
	kubeconfig, err := os.ReadFile(shared.Kubeconfig())
	require.NoError(t, err)
	write := func(name, replace, with string) string {
		file := filepath.Join(t.TempDir(), name)
		require.Contains(t, string(kubeconfig), replace)
		require.NoError(t, os.WriteFile(file,
			[]byte(strings.ReplaceAll(string(kubeconfig), replace, with)), 0o600))
		return file
	}
	address := strings.TrimPrefix(shared.Config("").Host, "https://")
	for name, test := range map[string]struct {
		args []string
		code int
		says string
	}{
		"bad selector":  {[]string{"--selector", "a b"}, 2, "selector"},
		"no kubeconfig": {[]string{"--kubeconfig", "no/such/file"}, 3, "no/such/file"},
		"unreachable": {[]string{"--kubeconfig", write("unreachable", address, "127.0.0.1:1")},
			4, "127.0.0.1:1"},
		"unknown": {[]string{"--kubeconfig", shared.Kubeconfig(), "--resource", "nonsense"},
			5, "nonsense"},
		"unknown user": {[]string{"--kubeconfig",
			write("stranger", cluster.AdminToken, "no-such-token")}, 6, "credentials"},
		"forbidden": {[]string{"--kubeconfig",
			write("weak", cluster.AdminToken, cluster.WeakToken)}, 6, "forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			program := startProgram(t,
				append([]string{"run", "--duration", "30s"}, test.args...)...)
			assert.Equal(t, test.code, program.wait())
			assert.Contains(t, program.stderr.String(), test.says)
		})
	}
}

// checksum returns the checksum of a ConfigMap with the data {"k": value}.
func checksum(value string) string {
	sum := sha256.Sum256([]byte(`[{"k":"` + value + `"},null]`))
	return hex.EncodeToString(sum[:])
}

// buildProgram compiles the program, once.
var buildProgram = sync.OnceValues(func() (file string, err error) {
	file = filepath.Join(scratch, "informerstack")
	build := exec.Command("go", "build", "-o", file, "./cmd/informerstack")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		return "", errors.Join(err, errors.New(string(out)))
	}
	return file, nil
})

// program is the running program with its output.
type program struct {
	t      *testing.T
	cmd    *exec.Cmd
	stderr bytes.Buffer // read after the end
	done   chan struct{}

	mu   sync.Mutex
	hops []hop
}

type hop struct{ Hop, What, Key string }

func startProgram(t *testing.T, args ...string) *program {
	file, err := buildProgram()
	require.NoError(t, err)
	p := &program{t: t, cmd: exec.Command(file, args...), done: make(chan struct{})}
	p.cmd.Stderr = &p.stderr
	stdout, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	go func() {
		defer close(p.done)
		p.read(stdout)
		_ = p.cmd.Wait() // its result is in ProcessState
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it has ended by itself, as a rule
		<-p.done
		if t.Failed() {
			t.Log(p.stderr.String())
		}
	})
	return p
}

func (p *program) read(stdout io.Reader) {
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		var h hop
		if json.Unmarshal(lines.Bytes(), &h) == nil {
			p.mu.Lock()
			p.hops = append(p.hops, h)
			p.mu.Unlock()
		}
	}
}

// firstHops returns the first lines about key.
func (p *program) firstHops(key string, count int) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var lines []string
	for _, h := range p.hops {
		if h.Key == key && len(lines) < count {
			lines = append(lines, h.Hop+" "+h.What)
		}
	}
	return lines
}

// printed waits for "HOP WHAT KEY".
func (p *program) printed(line string) {
	p.t.Helper()
	require.Eventually(p.t, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, h := range p.hops {
			if h.Hop+" "+h.What+" "+h.Key == line {
				return true
			}
		}
		return false
	}, patience, 20*time.Millisecond, "the program printed no %q", line)
}

// interrupt is Ctrl-C. It returns the exit code.
func (p *program) interrupt() int {
	require.NoError(p.t, p.cmd.Process.Signal(syscall.SIGINT))
	return p.wait()
}

func (p *program) wait() int {
	select {
	case <-p.done:
	case <-time.After(patience):
		require.Fail(p.t, "the program does not end")
	}
	return p.cmd.ProcessState.ExitCode()
}
