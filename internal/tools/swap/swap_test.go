// SPDX-License-Identifier: Apache-2.0

package swap_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/internal/tools/swap"
)

// program prints the packages that declare the names it imports from client-go. Its client-go is a
// small fork, so that there is little to compile; the swaps of whole programs are in e2e/swapped.
var program = files{
	"go.mod": `module example.org/program

go 1.26.0

require k8s.io/client-go v0.37.2

replace k8s.io/client-go => ./fork
`,
	"main.go": `package main

import (
	"fmt"
	"reflect"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

func main() {
	fmt.Println(reflect.TypeFor[cache.Store]().PkgPath(), reflect.TypeOf(workqueue.NewTyped[string]()).Elem().PkgPath())
}
`,
	"fork/go.mod": "module example.org/fork\n\ngo 1.26.0\n\nreplace " +
		"k8s.io/api => ../api\n\nexclude k8s.io/api v0.37.1\n",
	"fork/tools/cache/store.go": "package cache\n\ntype Store interface{}\n",
	"fork/util/workqueue/queue.go": "package workqueue\n\ntype Typed[T comparable] " +
		"struct{}\n\nfunc NewTyped[T comparable]() *Typed[T] { return nil }\n",
	"fork/util/workqueue/queue_test.go": "package workqueue\n\nvar _ = unexported\n",
	"fork/util/workqueue/OWNERS":        "nobody\n",
}

const (
	theirs   = "k8s.io/client-go/tools/cache k8s.io/client-go/util/workqueue\n"
	ourQueue = "k8s.io/client-go/tools/cache example.com/informerstack/workqueue\n"
)

// One program through all steps of a user: swap, run on the stack, swap again, undo.
func TestSwap_RunsAProgramOnThisStack(t *testing.T) {
	dir := program.write(t)
	before := read(t, dir)
	require.Equal(t, theirs, run(t, dir, "off"))

	result := swapQueue(t, dir)
	assert.Equal(t, filepath.Join(result.Program, swap.FolderName, "go.work"), result.GoWork)
	assert.Equal(t, "k8s.io/client-go from "+filepath.Join(result.Program, "fork"), result.ClientGo)
	assert.Equal(t, []string{"util/workqueue"}, result.Packages,
		"the pieces that were not asked for stay client-go's")
	assert.Equal(t, ourQueue, run(t, dir, result.GoWork))
	assert.Equal(t, theirs, run(t, dir, "off"), "without GOWORK all is as before")

	first := read(t, dir)
	assert.Equal(t, result, swapQueue(t, filepath.Join(dir, "fork", "..")))
	assert.Equal(t, first, read(t, dir), "a second swap writes the same")

	require.NoError(t, os.RemoveAll(result.Out))
	assert.Equal(t, before, read(t, dir), "undone")
}

// The copy equals client-go except for the swapped packages, which have only files that re-export
// ours.
func TestSwap_CopiesAReplacedClientGo(t *testing.T) {
	dir := program.write(t)
	copied := read(t, filepath.Join(swapQueue(t, dir).Out, "client-go"))
	assert.Equal(t, program["fork/tools/cache/store.go"], copied["tools/cache/store.go"])
	assert.Equal(t, program["fork/util/workqueue/OWNERS"], copied["util/workqueue/OWNERS"])
	assert.Contains(t, copied["util/workqueue/queue.go"],
		"type Typed[T comparable] = compat.Typed[T]")
	assert.NotContains(t, copied, "util/workqueue/queue_test.go")
	assert.NotContains(t, copied["go.mod"], "../api",
		"the replace lines of a dependency do not hold")
	assert.NotContains(t, copied["go.mod"], "exclude")
	assert.Contains(t, copied["go.mod"], "module k8s.io/client-go\n")
}

// The compiler follows links, so the copy must too, but never into itself.
func TestSwap_FollowsLinks(t *testing.T) {
	dir := program.write(t)
	fork := filepath.Join(dir, "fork")
	require.NoError(t, os.Rename(fork, filepath.Join(dir, "real")))
	require.NoError(t, os.Symlink("real", fork))
	require.NoError(t, os.Rename(filepath.Join(fork, "tools"), filepath.Join(dir, "elsewhere")))
	for link, target := range map[string]string{
		"tools": filepath.Join("..", "elsewhere"), "util/workqueue/.#queue.go": "nobody@nowhere",
		"util/back": filepath.Join("..", ".."),
	} {
		require.NoError(t, os.Symlink(target, filepath.Join(fork, filepath.FromSlash(link))))
	}
	out := filepath.Join(fork, "inside")
	for range 2 {
		result, err := swap.Swap(t.Context(),
			swap.Options{Program: dir, Out: out, Pieces: []string{"workqueue"}, Log: io.Discard})
		require.NoError(t, err)
		assert.Equal(t, ourQueue, run(t, dir, result.GoWork))
		copied := read(t, filepath.Join(out, "client-go"))
		assert.Equal(t, program["fork/tools/cache/store.go"], copied["tools/cache/store.go"])
		assert.NotContains(t, copied, "inside/go.work")
		assert.NotContains(t, copied, "util/back/main.go")
	}
}

// A fork is code of others: its links lead nowhere else, and its private files stay private.
func TestSwap_CopiesNothingElse(t *testing.T) {
	dir, outside := program.write(t), t.TempDir()
	fork := filepath.Join(dir, "fork")
	require.NoError(t, os.WriteFile(filepath.Join(outside, "secret.txt"), []byte("key"), 0o600))
	require.NoError(t, os.Symlink(filepath.Join(outside, "secret.txt"),
		filepath.Join(fork, "file.txt")))
	require.NoError(t, os.Symlink(outside, filepath.Join(fork, "folder")))
	require.NoError(t, os.WriteFile(filepath.Join(fork, "private.txt"), []byte("own"), 0o600))
	out := filepath.Join(swapQueue(t, dir).Out, "client-go")
	copied := read(t, out)
	assert.NotContains(t, copied, "file.txt")
	assert.NotContains(t, copied, "folder/secret.txt")
	private, err := os.Stat(filepath.Join(out, "private.txt"))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), private.Mode())
}

// All users with read access to the program can build it.
func TestSwap_WritesAFolderThatOthersCanRead(t *testing.T) {
	out, err := os.Stat(swapQueue(t, program.write(t)).Out)
	require.NoError(t, err)
	fresh := filepath.Join(t.TempDir(), "fresh")
	require.NoError(t, os.Mkdir(fresh, 0o755))
	asUsual, err := os.Stat(fresh)
	require.NoError(t, err)
	assert.Equal(t, asUsual.Mode(), out.Mode())
}

// A program that is built with a checkout of this stack keeps that checkout.
func TestSwap_KeepsTheProgramsOwnStack(t *testing.T) {
	dir := program.write(t)
	own := copyStack(t, "go.mod", "go.sum", "compat/workqueue", "compat/internal/found",
		"compat/internal/provider", "observe/journal", "store", "internal/helpers", "workqueue")
	goInDir(t, dir, "off", "mod", "edit", "-require=example.com/informerstack@v0.0.0",
		"-replace=example.com/informerstack="+own)
	result := swapQueue(t, dir)
	assert.Contains(t, read(t, result.Out)["go.work"], own)
}

func TestSwap_WritesTheNamedFolder(t *testing.T) {
	dir := program.write(t)
	before := read(t, dir)
	out := filepath.Join(t.TempDir(), "deep", "below")
	result, err := swap.Swap(t.Context(),
		swap.Options{Program: dir, Out: out, Pieces: []string{"workqueue"}, Log: io.Discard})
	require.NoError(t, err)
	assert.Equal(t, out, result.Out)
	assert.Equal(t, ourQueue, run(t, dir, result.GoWork))
	assert.Equal(t, before, read(t, dir))
}

// The program keeps its versions although this stack requires newer ones, and the directives of its
// go.mod stay in force.
func TestSwap_KeepsTheProgramsBuild(t *testing.T) {
	dir := program.write(t)
	goInDir(t, dir, "off", "get", "golang.org/x/term@v0.45.0", "k8s.io/api@v0.37.1")
	goInDir(t, dir, "off", "mod", "edit", "-godebug", "panicnil=1")
	result := swapQueue(t, dir)
	assert.Contains(t, result.Pinned, "golang.org/x/term@v0.45.0")
	assert.Contains(t, result.Pinned, "k8s.io/api@v0.37.1")
	under := modules(t, dir, result.GoWork)
	for path, version := range modules(t, dir, "off") {
		assert.Equal(t, version, under[path], path)
	}
	assert.Contains(t, read(t, result.Out)["go.work"], "panicnil=1")
	assert.Equal(t, ourQueue, run(t, dir, result.GoWork))
}

// A program with a go.work of its own keeps the modules that it uses and its replace lines.
func TestSwap_FollowsTheProgramsWorkspace(t *testing.T) {
	tree := files{
		"go.work": "go 1.26.0\n\nuse (\n\t./program\n\t./lib\n)\n\nreplace " +
			"example.org/other => ./other\n",
		"lib/go.mod": "module example.org/lib\n\ngo 1.26.0\n\nrequire example.org/other " +
			"v1.0.0\n",
		"lib/lib.go": "package lib\n\nimport \"example.org/other\"\n\nconst Name = other.Name\n",

		"other/go.mod":   "module example.org/other\n\ngo 1.26.0\n",
		"other/other.go": "package other\n\nconst Name = \"other\"\n",
	}
	for path, text := range program {
		tree["program/"+path] = text
	}
	tree["program/lib.go"] = "package main\n\nimport \"example.org/lib\"\n\nfunc init() { " +
		"println(lib.Name) }\n"
	root := tree.write(t)
	dir := filepath.Join(root, "program")
	require.Equal(t, theirs, run(t, dir, filepath.Join(root, "go.work")))
	before := read(t, root)

	result := swapQueue(t, dir)
	assert.Equal(t, ourQueue, run(t, dir, result.GoWork))
	require.NoError(t, os.RemoveAll(result.Out))
	assert.Equal(t, before, read(t, root))
}

// A workspace may have client-go itself as one of its modules.
func TestSwap_CopiesTheClientGoOfAWorkspace(t *testing.T) {
	tree := files{
		"go.work": "go 1.26.0\n\nuse (\n\t.\n\t./staging\n)\n",
		"go.mod": "module example.org/program\n\ngo 1.26.0\n\nrequire k8s.io/client-go " +
			"v0.0.0\n\nreplace k8s.io/client-go => ./staging\n",
		"main.go":          program["main.go"],
		"staging/go.mod":   "module k8s.io/client-go\n\ngo 1.26.0\n",
		"staging/README":   "staging\n",
		"staging/.git/old": "history\n",
	}
	for _, file := range []string{"tools/cache/store.go", "util/workqueue/queue.go"} {
		tree["staging/"+file] = program["fork/"+file]
	}
	dir := tree.write(t)
	require.Equal(t, theirs, run(t, dir, ""))
	result := swapQueue(t, dir)
	assert.Equal(t, ourQueue, run(t, dir, result.GoWork))
	copied := read(t, filepath.Join(result.Out, "client-go"))
	assert.Contains(t, copied, "README")
	assert.NotContains(t, copied, ".git/old")
}

// A compile error is reported in the compiler's words, and the folder of an earlier swap stays.
func TestSwap_ReportsCompileErrors(t *testing.T) {
	dir := program.write(t)
	good := swapQueue(t, dir)
	before := read(t, dir)
	broken := copyStack(t, "go.mod", "go.sum", "compat/workqueue")
	_, err := swap.Swap(t.Context(),
		swap.Options{Program: dir, Pieces: []string{"workqueue"}, Stack: broken, Log: io.Discard})
	require.ErrorContains(t, err, "example.com/informerstack/workqueue",
		"the stack without its queue")
	assert.Equal(t, before, read(t, dir))
	assert.Equal(t, ourQueue, run(t, dir, good.GoWork))
}

// copyStack copies some files and folders of this module to a new folder.
func copyStack(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		from := filepath.Join("..", "..", "..", name)
		if entry, err := os.Stat(from); err == nil && entry.IsDir() {
			require.NoError(t, os.CopyFS(filepath.Join(dir, name), os.DirFS(from)))
			continue
		}
		text, err := os.ReadFile(from)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o644))
	}
	return dir
}

// swapQueue swaps the queue of the program in dir.
func swapQueue(t *testing.T, dir string) *swap.Result {
	t.Helper()
	result, err := swap.Swap(t.Context(),
		swap.Options{Program: dir, Pieces: []string{"workqueue"}, Log: io.Discard})
	require.NoError(t, err)
	return result
}

// run builds and runs the program in dir.
func run(t *testing.T, dir, goWork string) string {
	t.Helper()
	return goInDir(t, dir, goWork, "run", ".")
}

// modules are the versions of the dependencies of the program in dir, client-go aside.
func modules(t *testing.T, dir, goWork string) map[string]string {
	t.Helper()
	list := map[string]string{}
	for line := range strings.Lines(goInDir(t, dir, goWork, "list", "-m", "-f",
		"{{if not .Main}}{{.Path}} {{or .Replace .Version}}{{end}}", "all")) {
		path, version, found := strings.Cut(strings.TrimSpace(line), " ")
		if found && path != "k8s.io/client-go" {
			// path of "path version", if it is replaced
			list[path] = version[strings.LastIndex(version, " ")+1:]
		}
	}
	return list
}

// goInDir runs the go command in dir. goWork "" means the go.work above dir, if there is one.
func goInDir(t *testing.T, dir, goWork string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK="+goWork)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "go %s: %s", strings.Join(args, " "), &stderr)
	return string(out)
}
