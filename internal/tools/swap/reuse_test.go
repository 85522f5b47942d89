// SPDX-License-Identifier: Apache-2.0

package swap_test

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/internal/tools/swap"
)

// fork is the client-go of the program in the tests of this package.
const fork = "fork/tools/cache/store.go"

// The program's first build compiles nothing that swap has compiled, although the folder had
// another name meanwhile. This holds for the first swap, and for one that replaces it.
func TestSwap_LeavesNothingToCompileAgain(t *testing.T) {
	dir := program.write(t)
	for _, text := range []string{program[fork], program[fork] + "\nconst First = 1\n"} {
		write(t, dir, fork, text)
		result := swapQueue(t, dir)
		assert.Empty(t, compiled(t, dir, result.GoWork, "k8s.io/client-go/util/workqueue"))
		assert.Equal(t, ourQueue, run(t, dir, result.GoWork))
	}
}

// Swap compiles only packages that have changed, and those that import them.
func TestSwap_CompilesWhatChanged(t *testing.T) {
	dir := program.write(t)
	result := swapQueue(t, dir)
	compiled(t, dir, result.GoWork, "./...")
	write(t, dir, "fork/tools/cache/more.go", "package cache\n\nconst Second = 2\n")
	assert.Equal(t, result, swapQueue(t, dir))
	assert.Equal(t, "k8s.io/client-go/tools/cache\nexample.org/program\n",
		compiled(t, dir, result.GoWork, "./..."))
}

// With Imports, swap compiles all packages of client-go that the program imports, as far as they
// and the program compile.
func TestSwap_CompilesWhatTheProgramImports(t *testing.T) {
	dir := program.write(t)
	options := swap.Options{
		Program: dir, Pieces: []string{"workqueue"}, Imports: true, Log: io.Discard}
	write(t, dir, "other/main.go", "package main\n\nimport _ "+
		"\"k8s.io/client-go/nowhere\"\n\nvar x int = \n")
	result, err := swap.Swap(t.Context(), options)
	require.NoError(t, err)
	assert.Equal(t, "example.org/program\n", compiled(t, dir, result.GoWork, "."))

	write(t, dir, "other/main.go", "package main\n\nimport _ \"k8s.io/client-go/broken\"\n")
	write(t, dir, "fork/broken/broken.go", "package broken\n\nvar _ = missing\n")
	_, err = swap.Swap(t.Context(), options)
	require.NoError(t, err)
	assert.Equal(t, ourQueue, run(t, dir, result.GoWork))
}

// A second swap of the same leaves the folder that the first one wrote, with the sums that builds
// have added since.
func TestSwap_WritesNothingAgain(t *testing.T) {
	dir := program.write(t)
	out := swapQueue(t, dir).Out
	sums := filepath.Join(out, "go.work.sum")
	text, err := os.ReadFile(sums)
	require.True(t, err == nil || os.IsNotExist(err), err)
	text = append(text, "example.org/later v1.0.0 h1:x\n"...)
	require.NoError(t, os.WriteFile(sums, text, 0o644))
	before, err := os.Stat(out)
	require.NoError(t, err)

	swapQueue(t, dir)
	after, err := os.Stat(out)
	require.NoError(t, err)
	assert.True(t, os.SameFile(before, after))
	now, err := os.ReadFile(sums)
	require.NoError(t, err)
	assert.Equal(t, string(text), string(now))
	assert.Equal(t, []string{swap.FolderName}, folders(t, dir))
}

// The folder is never reused for another client-go or other options, nor if anything in it was
// changed, as when a file is left there that client-go no longer has.
func TestSwap_ReusesNothingElse(t *testing.T) {
	dir := program.write(t)
	copied := filepath.Join(dir, swap.FolderName, "client-go")
	swapQueue(t, dir)
	first := read(t, copied)
	for _, change := range []func(){
		func() { write(t, copied, "tools/cache/store.go", "package cache\n\nvar half = \n") },
		func() { write(t, copied, "util/workqueue/older.go", "package broken\n") },
		func() { assert.NoError(t, os.Remove(filepath.Join(copied, "util/workqueue/queue.go"))) },
		func() { assert.NoError(t, os.Chmod(filepath.Join(copied, "go.mod"), 0o600)) },
	} {
		change()
		result := swapQueue(t, dir)
		assert.Equal(t, first, read(t, copied))
		assert.Equal(t, ourQueue, run(t, dir, result.GoWork))
	}
}

// Swaps of one program at the same time all succeed.
func TestSwap_AtTheSameTime(t *testing.T) {
	dir := program.write(t)
	for _, text := range []string{program[fork], program[fork] + "\nconst Third = 3\n"} {
		write(t, dir, fork, text)
		var swaps sync.WaitGroup
		for range 4 {
			swaps.Go(func() {
				_, err := swap.Swap(t.Context(), swap.Options{
					Program: dir, Pieces: []string{"workqueue"}, Log: io.Discard})
				assert.NoError(t, err)
			})
		}
		swaps.Wait()
		assert.Equal(t, []string{swap.FolderName}, folders(t, dir))
		assert.Equal(t, text, read(t, dir)[swap.FolderName+"/client-go/tools/cache/store.go"])
	}
	assert.Equal(t, ourQueue, run(t, dir, filepath.Join(dir, swap.FolderName, "go.work")))
}

// An interrupted swap leaves the folder of the one before. The files that a killed swap has left
// behind are not used.
func TestSwap_Interrupted(t *testing.T) {
	dir := program.write(t)
	swapQueue(t, dir)
	before := read(t, dir)
	left := swap.FolderName + ".new-" + strconv.Itoa(os.Getpid())
	write(t, dir, left+"/client-go/util/workqueue/queue.go", "package half")
	write(t, dir, fork, program[fork]+"\nconst Fourth = 4\n")
	ctx, cancel := context.WithCancel(t.Context())
	_, err := swap.Swap(ctx, swap.Options{Program: dir, Pieces: []string{"workqueue"},
		Log: writer(func(string) { cancel() })})
	require.Error(t, err)
	assert.Equal(t, []string{swap.FolderName, left}, folders(t, dir))
	require.NoError(t, os.RemoveAll(filepath.Join(dir, left)))
	write(t, dir, fork, program[fork])
	assert.Equal(t, before, read(t, dir))

	write(t, dir, left+"/client-go/util/workqueue/queue.go", "package half")
	swapQueue(t, dir)
	assert.Equal(t, ourQueue, run(t, dir, filepath.Join(dir, swap.FolderName, "go.work")))
}

// write writes a file below dir.
func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

// folders are the names in dir that begin as the folder of a swap does.
func folders(t *testing.T, dir string) (names []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, swap.FolderName+"*"))
	require.NoError(t, err)
	for _, path := range paths {
		names = append(names, filepath.Base(path))
	}
	return names
}

// compiled builds packages, and returns a line for each one that was not compiled before.
func compiled(t *testing.T, dir, goWork string, packages ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"build", "-v"}, packages...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK="+goWork)
	said, err := cmd.CombinedOutput()
	require.NoError(t, err, string(said))
	return string(said)
}
