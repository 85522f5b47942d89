// SPDX-License-Identifier: Apache-2.0

package swapped_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const clientGo = "k8s.io/client-go/"

// clientGoSwapped are the replaced packages. clientGoBeside are other packages; their code and
// tests stay client-go's.
var (
	clientGoSwapped = []string{
		"tools/cache", "tools/cache/synctrack", "tools/cache/testing", "tools/leaderelection",
		"tools/leaderelection/resourcelock",
		"tools/watch", "util/workqueue",
	}
	clientGoBeside = []string{"dynamic/dynamicinformer", "metadata/metadatainformer"}
)

// All of client-go's own tests that use only exported names pass on this stack, and so do the tests
// of the packages that use it.
func TestSwapped_ClientGo(t *testing.T) {
	goWork := swap(t, "clientgo")
	sections := excluded(t)
	var packages []string
	for _, path := range clientGoSwapped {
		packages = append(packages, clientGo+path)
		files, err := sections[path].remaining(clientGoFolder(t, "off", path))
		require.NoError(t, err)
		for name, text := range files {
			name = filepath.Join(clientGoFolder(t, goWork, path), name)
			require.NoError(t, os.WriteFile(name, text, 0o644))
		}
	}
	requireCompiles(t, goWork, packages)
	for _, path := range clientGoBeside {
		packages = append(packages, clientGo+path)
	}
	excused := map[string]string{
		clientGo +
			"tools/cache TestNewReflectorWithCustomBackoff": "waits 250 ms of real time and " +
			"must end within 300 ms: on a busy machine it fails on client-go too",
	}
	plain := testUntilPassed(t, "clientgo", "off", nil, excused, packages)
	maps.DeleteFunc(plain, func(name, _ string) bool {
		path, test, _ := strings.Cut(name, " ")
		test, _, _ = strings.Cut(test, "/") // a subtest counts as its test
		return sections[strings.TrimPrefix(path, clientGo)].names[test]
	})
	swapped := testUntilPassed(t, "clientgo", goWork, nil, excused, packages)
	assert.Empty(t, plain.failed(excused), "failed without swap")
	assert.Empty(t, swapped.failed(excused), "failed under swap")
	assert.Equal(t, plain.others(excused), swapped.others(excused))
}

// requireCompiles compiles what remains of the tests of packages.
func requireCompiles(t *testing.T, goWork string, packages []string) {
	t.Helper()
	test := exec.CommandContext(t.Context(), "go",
		append([]string{"test", "-run=^$"}, packages...)...)
	test.Dir, test.Env = "clientgo", environ(goWork)
	out, err := test.CombinedOutput()
	require.NoError(t, err, "A test of client-go that is not in clientgo/excluded.md needs a name "+
		"that client-go does not export. Add a row for the test, with the test of ours that "+
		"asserts the same, or name the helper in the line below the table.\n%s", out)
}

// clientGoFolder finds a package of client-go, or with goWork that of the swapped copy.
func clientGoFolder(t *testing.T, goWork, path string) string {
	t.Helper()
	list := exec.Command("go", "list", "-f", "{{.Dir}}", clientGo+path)
	list.Dir, list.Env = "clientgo", environ(goWork)
	out, err := list.Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(out))
}
