// SPDX-License-Identifier: Apache-2.0

// Package suites_test runs the tests of public controllers on apitest and on a real API server,
// without changing a line of them.
//
//	programs/go.mod -> go test -c -> a suite -> informerstack serve
//	                                       \--> informerstack serve --real
//
// The suites are written for envtest, which uses a running server if USE_EXISTING_CLUSTER is true.
// Each run of a suite has a server of its own. docs/reports/suites.md has the tests that fail, and
// the test compares. Read suites_test.go, then outcomes_test.go and report_test.go. Goroutines and
// locking: none.
//
// Run go -C e2e test -count=1 -v -timeout 90m ./suites
package suites_test

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// attempts is how often a suite may run on one server's kind until all its tests have passed: some
// of them check after a real time.
const attempts = 3

// patience bounds the start of a server.
const patience = 5 * time.Minute

// suite is the tests of one package.
type suite struct {
	program string // a module of programs/go.mod
	pkg     string // a folder of it
	specs   string // the test that runs Ginkgo's specs, if any
	vendor  string // a module that the tests read in the folder vendor, which no module contains
}

var suites = []suite{
	{program: "github.com/ray-project/kuberay/ray-operator", pkg: "controllers/ray", specs: "TestAPIs"},
	{program: machineAPI, pkg: "pkg/controller/machine", specs: "TestMachineController", vendor: openshiftAPI},
	{program: machineAPI, pkg: "pkg/controller/machineset", specs: "TestMachinesetController", vendor: openshiftAPI},
	{program: "github.com/fluxcd/pkg/ssa", pkg: "."},
	{program: "github.com/fluxcd/pkg/ssa", pkg: "jsondiff"},
}

const (
	machineAPI   = "github.com/openshift/machine-api-operator"
	openshiftAPI = "github.com/openshift/api"
)

// servers are the flags of informerstack serve, by the names that the report has for the servers.
var servers = map[string][]string{"apitest": nil, "realserver": {"--real"}}

// Each test passes on both servers, unless the report says otherwise.
func TestSuites(t *testing.T) {
	informerstack := build(t)
	rows := readRows(t)
	for _, s := range suites {
		t.Run(s.name(), func(t *testing.T) {
			program := s.compile(t)
			got := map[string]outcomes{}
			for server, flags := range servers {
				got[server] = s.passes(t, program, informerstack, flags)
			}
			compare(t, rows[s.name()], got)
		})
	}
}

func (s suite) name() string { return path.Join(s.program, s.pkg) }

// build compiles the program informerstack.
func build(t *testing.T) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "informerstack")
	run(t, "../..", "go", "build", "-o", file, "./cmd/informerstack")
	return file
}

// compile builds the tests of s.
func (s suite) compile(t *testing.T) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "suite.test")
	run(t, "programs", "go", "test", "-c", "-o", file, s.name())
	return file
}

// folder returns the folder to run the tests of s in. It is the package's own in the module cache,
// or a new one if the tests read another module beside it.
func (s suite) folder(t *testing.T) string {
	t.Helper()
	if s.vendor == "" {
		return filepath.Join(moduleFolder(t, s.program), filepath.FromSlash(s.pkg))
	}
	root := t.TempDir()
	here := filepath.Join(root, filepath.FromSlash(s.pkg))
	require.NoError(t, os.MkdirAll(here, 0o700))
	link := filepath.Join(root, "vendor", filepath.FromSlash(s.vendor))
	require.NoError(t, os.MkdirAll(filepath.Dir(link), 0o700))
	require.NoError(t, os.Symlink(moduleFolder(t, s.vendor), link))
	return here
}

// moduleFolder returns the folder of a module that programs/go.mod depends on.
func moduleFolder(t *testing.T, module string) string {
	t.Helper()
	return strings.TrimSpace(run(t, "programs", "go", "list", "-m", "-f", "{{.Dir}}", module))
}

// run runs a command in a folder, and returns its standard output.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	return string(out)
}

// passes runs the compiled tests of s on a new server until all have passed, attempts times at
// most. It returns the best outcome of each test.
func (s suite) passes(t *testing.T, program, informerstack string, flags []string) outcomes {
	t.Helper()
	best := outcomes{}
	for range attempts {
		for name, outcome := range s.run(t, program, serve(t, informerstack, flags)) {
			if best[name] != pass {
				best[name] = outcome
			}
		}
		if len(best.failed()) == 0 {
			break
		}
	}
	return best
}

// serve runs informerstack serve until the test ends, and returns its kubeconfig.
func serve(t *testing.T, informerstack string, flags []string) (kubeconfig string) {
	t.Helper()
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	cmd := exec.Command(informerstack,
		append([]string{"serve", "--kubeconfig", kubeconfig}, flags...)...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		assert.NoError(t, cmd.Process.Signal(os.Interrupt))
		assert.NoError(t, cmd.Wait(), said.String())
	})
	require.Eventually(t, func() bool {
		_, err := os.Stat(kubeconfig)
		return err == nil
	}, patience, 50*time.Millisecond, "no server")
	return kubeconfig
}

// run runs the compiled tests of s once.
func (s suite) run(t *testing.T, program, kubeconfig string) outcomes {
	t.Helper()
	specs := filepath.Join(t.TempDir(), "specs.json")
	args := []string{"-test.v"}
	if s.specs != "" {
		args = append(args, "--ginkgo.json-report="+specs)
	}
	start := time.Now()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = s.folder(t)
	cmd.Env = append(os.Environ(), "USE_EXISTING_CLUSTER=true", "KUBECONFIG="+kubeconfig)
	out, err := cmd.CombinedOutput()
	result := readTests(out)
	if s.specs != "" {
		maps.Copy(result, readSpecs(t, s.specs, specs))
	}
	require.NotEmpty(t, result, "no test ran: %v\n%s", err, out)
	t.Logf("%d tests in %s, failed: %q", len(result), time.Since(start).Round(time.Second),
		result.failed())
	if len(result.failed()) > 0 {
		t.Logf("%s", out)
	}
	return result
}
