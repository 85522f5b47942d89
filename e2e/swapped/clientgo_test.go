// SPDX-License-Identifier: Apache-2.0

package swapped_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/internal/prune"
)

const clientGo = "k8s.io/client-go/"

// clientGoSwapped are the replaced packages, and clientGoBeside other packages, whose code and
// tests stay client-go's.
var (
	clientGoSwapped = []string{
		"tools/cache", "tools/cache/synctrack", "tools/cache/testing", "tools/leaderelection",
		"tools/leaderelection/resourcelock",
		"tools/watch", "util/workqueue",
	}
	clientGoBeside = []string{"dynamic/dynamicinformer", "metadata/metadatainformer"}
)

// clientGoPruned is the result of internal/prune for the tests of a package.
func clientGoPruned(t *testing.T, path string) prune.Result {
	t.Helper()
	t.Setenv("GOWORK", "off")
	result, err := prune.Tests("clientgo", clientGo+path)
	require.NoError(t, err)
	return result
}

// All of client-go's own tests that use only exported names pass on this stack, and so do the tests
// of the packages that use it.
func TestSwapped_ClientGo(t *testing.T) {
	goWork := swap(t, "clientgo")
	var packages []string
	excluded := map[string]bool{}
	for _, path := range slices.Concat(clientGoSwapped, clientGoBeside) {
		packages = append(packages, clientGo+path)
		if !slices.Contains(clientGoSwapped, path) {
			continue
		}
		result := clientGoPruned(t, path)
		for _, test := range result.Cut {
			excluded[clientGo+path+" "+test.Name] = true
		}
		folder := clientGoFolder(t, goWork, path)
		for name, text := range result.Files {
			require.NoError(t, os.WriteFile(filepath.Join(folder, name), text, 0o644))
		}
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
		return excluded[path+" "+test]
	})
	swapped := testUntilPassed(t, "clientgo", goWork, nil, excused, packages)
	assert.Empty(t, plain.failed(excused), "failed without swap")
	assert.Empty(t, swapped.failed(excused), "failed under swap")
	assert.Equal(t, plain.others(excused), swapped.others(excused))
}

// clientGoFolder finds a package of the swapped copy.
func clientGoFolder(t *testing.T, goWork, path string) string {
	t.Helper()
	list := exec.Command("go", "list", "-f", "{{.Dir}}", clientGo+path)
	list.Dir, list.Env = "clientgo", environ(goWork)
	out, err := list.Output()
	require.NoError(t, err)
	folder := strings.TrimSpace(string(out))
	require.Contains(t, folder, filepath.Dir(goWork), "of the copy")
	return folder
}

var (
	excludedPackage = regexp.MustCompile(`(?m)^## (.*)$`)
	excludedRow     = regexp.MustCompile(`(?m)^\| ([A-Z]\w*) \| (.*) \| (.*) \|$`)
	quoted          = regexp.MustCompile("`([^`]+)`")
)

// excluded.md names exactly the tests that cannot run, and tests of ours that exist.
func TestClientGo_ExcludedIsExact(t *testing.T) {
	text, err := os.ReadFile("clientgo/excluded.md")
	require.NoError(t, err)
	sections := excludedPackage.FindAllSubmatchIndex(text, -1)
	listed := map[string]map[string]string{} // package -> test -> needs
	for i, at := range sections {
		end := len(text)
		if i+1 < len(sections) {
			end = sections[i+1][0]
		}
		rows := map[string]string{}
		for _, row := range excludedRow.FindAllStringSubmatch(string(text[at[1]:end]), -1) {
			rows[row[1]] = row[2]
			assert.NotEmpty(t, row[3], row[1])
			for _, ref := range quoted.FindAllStringSubmatch(row[3], -1) {
				assert.NoError(t, findTest(ref[1]), row[1])
			}
		}
		listed[string(text[at[2]:at[3]])] = rows
	}
	for _, path := range clientGoSwapped {
		found := map[string]string{}
		for _, test := range clientGoPruned(t, path).Cut {
			found[test.Name] = "`" + strings.Join(test.Needs, "`, `") + "`"
		}
		if len(found) == 0 {
			assert.NotContains(t, listed, path)
		} else {
			assert.Equal(t, found, listed[path], path)
		}
		delete(listed, path)
	}
	assert.Empty(t, listed, "packages that are not run")
}

// findTest looks up a test of this repository, as folder.Test or folder.Test/transcript.
func findTest(ref string) error {
	folder, name, ok := strings.Cut(ref, ".")
	if !ok {
		return fmt.Errorf("%s is no folder.Test", ref)
	}
	name, transcript, _ := strings.Cut(name, "/")
	files, err := filepath.Glob(filepath.Join("../..", folder, "*_test.go"))
	if err != nil {
		return err
	}
	if transcript != "" {
		if _, err := os.Stat(
			filepath.Join("../../testdata", folder, transcript+".txt")); err != nil {
			return err
		}
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if strings.Contains(string(text), "\nfunc "+name+"(t *testing.T)") {
			return nil
		}
	}
	return fmt.Errorf("there is no test %s in %s", name, folder)
}
