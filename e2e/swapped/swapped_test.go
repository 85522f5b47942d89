// SPDX-License-Identifier: Apache-2.0

// Package swapped_test runs other programs on this stack without changing a line of them.
//
//	swapped/<program>/go.mod -> informerstack swap -> go test <the program's packages>
//	swapped/<program>/go.mod ----------------------> go test <the program's packages>
//
// Each folder below is a module with one program as an ordinary dependency; the test of the same
// name swaps it and checks its behaviour. Every own test of the program that passes on client-go
// must pass on this stack. The tests named Answers ask programs with devtools why a key is not
// reconciled, while something is taken from them. FaultyAnswers breaks off the answers of a server,
// or changes them. Read swapped_test.go and outcomes_test.go, or answers_test.go, gate_test.go and
// log_test.go, then any other. Goroutines and locking: those of the faults.
//
// Run go -C e2e test -count=1 -v -timeout 60m ./swapped/...
package swapped_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// scratch is a folder that exists as long as the tests run.
var scratch string

func TestMain(m *testing.M) {
	os.Exit(runAll(m))
}

func runAll(m *testing.M) int {
	var err error
	if scratch, err = os.MkdirTemp("", "swapped-"); err != nil {
		fmt.Fprintln(os.Stderr, "make a folder:", err)
		return 1
	}
	defer os.RemoveAll(scratch)
	return m.Run()
}

// buildInformerstack compiles the program informerstack, once.
var buildInformerstack = sync.OnceValues(func() (file string, err error) {
	file = filepath.Join(scratch, "informerstack")
	build := exec.Command("go", "build", "-o", file, "./cmd/informerstack")
	build.Dir, build.Env = "../..", environ("off")
	if out, err := build.CombinedOutput(); err != nil {
		return "", errors.Join(err, errors.New(string(out)))
	}
	return file, nil
})

// swap swaps the program of the module in dir, with more flags. It returns the go.work to run it
// with.
func swap(t testing.TB, dir string, flags ...string) (goWork string) {
	t.Helper()
	informerstack, err := buildInformerstack()
	require.NoError(t, err)
	stack, err := filepath.Abs("../..")
	require.NoError(t, err)
	out := filepath.Join(t.TempDir(), "swap")
	args := slices.Concat([]string{"swap", "--stack", stack, "--out", out}, flags, []string{dir})
	cmd := exec.CommandContext(t.Context(), informerstack, args...)
	cmd.Env = environ("off")
	said, err := cmd.CombinedOutput()
	require.NoError(t, err, string(said))
	return filepath.Join(out, "go.work")
}

// compile builds the main package pkg in the module in dir. goWork is a swap's, or "off".
func compile(t testing.TB, dir, goWork, pkg string) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), filepath.Base(pkg))
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", program, pkg)
	cmd.Dir, cmd.Env = dir, environ(goWork)
	said, err := cmd.CombinedOutput()
	require.NoError(t, err, string(said))
	return program
}

// moduleFolder returns the folder of a module that the module in dir depends on. goWork is a
// swap's, or "off".
func moduleFolder(t *testing.T, dir, goWork, module string) string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module)
	list.Dir, list.Env = dir, environ(goWork)
	out, err := list.Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(out))
}

// environ returns our environment with another GOWORK. With -trimpath, the builds of all copies of
// client-go share their results, whatever their folders.
func environ(goWork string, more ...string) []string {
	flags := strings.TrimSpace(os.Getenv("GOFLAGS") + " -trimpath")
	return append(os.Environ(), append(more, "GOWORK="+goWork, "GOFLAGS="+flags)...)
}

// samePasses runs the tests of packages in the module in dir without and with swap, and requires
// that the same tests pass and the same are skipped. The keys of excused are tests that may fail on
// client-go too, with the reason; their subtests are excused with them. The tests of such programs
// depend on real time, so on a busy machine a package that fails is run again.
func samePasses(t *testing.T, dir string, more []string, excused map[string]string,
	packages ...string) {
	t.Helper()
	goWork := swap(t, dir)
	assert.Empty(t, stackIn(t, dir, "off", packages), "without swap")
	require.Contains(t, stackIn(t, dir, goWork, packages), "example.com/informerstack/compat/cache")
	plain := testUntilPassed(t, dir, "off", more, excused, packages)
	swapped := testUntilPassed(t, dir, goWork, more, excused, packages)
	assert.Empty(t, plain.failed(excused), "failed without swap")
	assert.Empty(t, swapped.failed(excused), "failed under swap")
	assert.Equal(t, plain.others(excused), swapped.others(excused))
}

// stackIn returns our packages in the build of the tests of packages.
func stackIn(t *testing.T, dir, goWork string, packages []string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go",
		append([]string{"list", "-deps", "-test"}, packages...)...)
	cmd.Dir, cmd.Env = dir, environ(goWork)
	out, err := cmd.Output()
	require.NoError(t, err)
	return slices.DeleteFunc(strings.Fields(string(out)), func(pkg string) bool {
		return !strings.HasPrefix(pkg, "example.com/informerstack/")
	})
}

// attempts is how often the tests of a package may run until they pass.
const attempts = 3

func testUntilPassed(t *testing.T, dir, goWork string, more []string, excused map[string]string,
	packages []string) outcomes {
	t.Helper()
	result := testJSON(t, dir, goWork, more, packages...)
	for range attempts - 1 {
		var again []string
		for _, name := range result.failed(excused) {
			pkg, _, _ := strings.Cut(name, " ")
			again = append(again, pkg)
			maps.DeleteFunc(result, func(name, _ string) bool {
				return name == pkg || strings.HasPrefix(name, pkg+" ")
			})
		}
		if len(again) == 0 {
			break
		}
		maps.Copy(result, testJSON(t, dir, goWork, more, slices.Compact(again)...))
	}
	return result
}

// Prometheus finds its targets with shared informers, and has a queue for each role.
func TestSwapped_Prometheus(t *testing.T) {
	samePasses(t, "prometheus", nil, nil, "github.com/prometheus/prometheus/discovery/kubernetes")
}

// The library of external storage provisioners: shared informers, indexers, rate-limited queues and
// leader election.
//
// Its tests need an idle machine. They check after 200 ms, and leave controllers running with
// leases as short: a leader that is paused for longer loses its lease on this stack, which ends the
// process; on client-go it renews when it wakes up. Also, each new controller adds to the scheme
// that the running ones read, which ends the process on both.
func TestSwapped_Provisioner(t *testing.T) {
	samePasses(t, "provisioner", nil, nil,
		"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/...")
}
