// SPDX-License-Identifier: Apache-2.0

package swap_test

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/mod/module"
	modzip "golang.org/x/mod/zip"

	"example.com/informerstack/internal/tools/swap"
)

// A program that cannot be swapped is refused with an error that names the reason, before anything
// is written.
func TestSwap_RefusesBadInput(t *testing.T) {
	const goMod = "module example.org/program\n\ngo 1.26.0\n"
	const clientGo = "\nrequire k8s.io/client-go v0.37.2\n\nreplace k8s.io/client-go => "
	const forked = goMod + clientGo + "./fork\n"
	for _, test := range []struct {
		name    string
		program files
		options func(*swap.Options) // of the program in its folder, all pieces
		env     string              // NAME=value
		want    []string            // parts of the error
	}{
		{
			name:    "an unknown piece",
			program: files{"go.mod": goMod},
			options: func(o *swap.Options) { o.Pieces = []string{"workqueue", "informer"} },
			want:    []string{`no piece "informer"`, "cache, workqueue, leaderelection"},
		},
		{
			name:    "devtools without the piece that has them",
			program: files{"go.mod": goMod},
			options: func(o *swap.Options) {
				o.Pieces, o.Devtools = []string{"workqueue"}, true
			},
			want: []string{"devtools need the piece cache"},
		},
		{
			name:    "no such folder",
			options: func(o *swap.Options) { o.Program = filepath.Join(o.Program, "nowhere") },
			want:    []string{"nowhere", "no such file"},
		},
		{
			name:    "a file",
			program: files{"go.mod": goMod},
			options: func(o *swap.Options) { o.Program = filepath.Join(o.Program, "go.mod") },
			want:    []string{"go.mod", "not a folder"},
		},
		{
			name: "no go.mod",
			want: []string{"is in no Go module", "give the folder of the program's module"},
		},
		{
			name:    "a go.mod without a module",
			program: files{"go.mod": "go 1.26.0\n"},
			want:    []string{"go.mod has no module line"},
		},
		{
			name:    "a go.mod that does not parse",
			program: files{"go.mod": "module example.org/program\n\nplease\n"},
			want:    []string{"go.mod:3", "please"},
		},
		{
			name:    "a vendored module",
			program: files{"go.mod": goMod, "vendor/modules.txt": "# k8s.io/client-go v0.37.2\n"},
			want:    []string{"is vendored", filepath.Join("vendor", "modules.txt")},
		},
		{
			name: "a vendored workspace",
			program: files{"go.mod": goMod, "go.work": "go 1.26.0\n\nuse .\n",
				"vendor/modules.txt": ""},
			want: []string{"is vendored"},
		},
		{
			name:    "no client-go",
			program: files{"go.mod": goMod},
			want:    []string{"k8s.io/client-go is not in the build of example.org/program"},
		},
		{
			name:    "client-go itself",
			program: files{"go.mod": "module k8s.io/client-go\n\ngo 1.26.0\n"},
			want:    []string{"is k8s.io/client-go itself"},
		},
		{
			name:    "an unsupported version",
			program: files{"go.mod": goMod + "\nrequire k8s.io/client-go v0.35.4\n"},
			want: []string{"k8s.io/client-go@v0.35.4, which is not supported",
				"v0.36.x and v0.37.x are"},
		},
		{
			name:    "an unsupported version that replaces a supported one",
			program: files{"go.mod": goMod + clientGo + "k8s.io/client-go v0.35.4\n"},
			want:    []string{"k8s.io/client-go@v0.35.4, which is not supported"},
		},
		{
			name: "a fork that exports more",
			program: files{
				"go.mod":      forked,
				"fork/go.mod": "module k8s.io/client-go\n\ngo 1.26.0\n",
				"fork/util/workqueue/queue.go": "package workqueue\n\nfunc NewFairQueue() " +
					"{}\n\ntype Interface interface{}\n",
			},
			want: []string{"fork exports what example.com/informerstack does not have: " +
				"util/workqueue.NewFairQueue", "--pieces"},
		},
		{
			name: "a go.work that uses others",
			program: files{"program/go.mod": goMod, "other/go.mod": "module example.org/other\n",
				"go.work": "go 1.26.0\n\nuse ./other\n"},
			options: func(o *swap.Options) { o.Program = filepath.Join(o.Program, "program") },
			want:    []string{"go.work does not use", "program: add it there, or set GOWORK=off"},
		},
		{
			name:    "GOFLAGS in quotes",
			program: files{"go.mod": goMod},
			env:     "GOFLAGS='-modfile=other.mod'",
			want:    []string{"-modfile=other.mod", "unset it"},
		},
		{
			name:    "GOFLAGS that no workspace takes",
			program: files{"go.mod": goMod},
			env:     "GOFLAGS=-mod=mod",
			want:    []string{"GOFLAGS has -mod=mod", "unset it"},
		},
		{
			name: "a folder with other files",
			program: files{"go.mod": forked, "fork/go.mod": "module k8s.io/client-go\n",
				"out/mine": ""},
			options: func(o *swap.Options) { o.Out = filepath.Join(o.Program, "out") },
			want:    []string{"out has other files in it"},
		},
		{
			name: "a folder with a go.work of the user",
			program: files{"go.mod": forked, "fork/go.mod": "module k8s.io/client-go\n",
				"out/go.work": "go 1.26.0\n"},
			options: func(o *swap.Options) { o.Out = filepath.Join(o.Program, "out") },
			want:    []string{"out has other files in it"},
		},
		{
			name:    "the program's own folder",
			program: files{"go.mod": forked, "fork/go.mod": "module k8s.io/client-go\n"},
			options: func(o *swap.Options) { o.Out = o.Program },
			want:    []string{"is needed, and ", "is in it", "--out"},
		},
		{
			name: "a folder with client-go in it",
			program: files{"go.mod": goMod + clientGo + "./forks/one\n",
				"forks/one/go.mod": "module k8s.io/client-go\n"},
			options: func(o *swap.Options) { o.Out = filepath.Join(o.Program, "forks") },
			want:    []string{filepath.Join("forks", "one"), "is in it"},
		},
		{
			name: "a folder that cannot be made",
			program: files{"go.mod": forked, "fork/go.mod": "module k8s.io/client-go\n",
				"file": ""},
			options: func(o *swap.Options) { o.Out = filepath.Join(o.Program, "file", "out") },
			want:    []string{"the folder to write", "file"},
		},
		{
			name: "a swap within a swap",
			program: files{"go.mod": goMod, "go.work": "// Code generated by informerstack swap. " +
				"DO NOT EDIT.\n\ngo 1.26.0\n\nuse .\n"},
			want: []string{"is what an earlier swap wrote", "unset GOWORK"},
		},
		{
			name:    "a stack that is another module",
			program: files{"go.mod": forked, "fork/go.mod": "module k8s.io/client-go\n"},
			options: func(o *swap.Options) { o.Stack = o.Program },
			want: []string{
				"is the module example.org/program, and not example.com/informerstack",
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			serveModules(t)
			if test.env != "" {
				name, value, _ := strings.Cut(test.env, "=")
				t.Setenv(name, value)
			}
			dir := test.program.write(t)
			options := swap.Options{Program: dir, Pieces: []string{"workqueue"}, Log: io.Discard}
			if test.options != nil {
				test.options(&options)
			}
			if strings.Contains(test.program["go.mod"], "v0.35.4") {
				goInDir(t, dir, "off", "mod", "download", "k8s.io/client-go") // for go.sum
			}
			before := read(t, dir)

			_, err := swap.Swap(t.Context(), options)
			var bad *swap.BadInputError
			require.ErrorAs(t, err, &bad)
			for _, part := range test.want {
				assert.ErrorContains(t, err, part)
			}
			assert.Equal(t, before, read(t, dir))
		})
	}
}

func TestSwap_LeavesNothingWhenItIsCancelled(t *testing.T) {
	dir := program.write(t)
	before := read(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	// the first output, after the program was inspected
	log := writer(func(string) { cancel() })
	out := filepath.Join(dir, "new", "and newer", "out")
	_, err := swap.Swap(ctx, swap.Options{Program: dir, Out: out, Log: log})
	require.Error(t, err)
	assert.Equal(t, before, read(t, dir))
	assert.NoDirExists(t, filepath.Join(dir, "new"),
		"folders that were made on the way to the one to write")
}

// serveModules lets the go command find some empty versions of k8s.io/client-go, and no other
// module.
func serveModules(t *testing.T) {
	t.Helper()
	proxy := t.TempDir()
	dir := filepath.Join(proxy, "k8s.io", "client-go", "@v")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	for _, version := range []string{"v0.35.4", "v0.37.2"} {
		source := files{"go.mod": "module k8s.io/client-go\n\ngo 1.26.0\n"}.write(t)
		require.NoError(t, os.WriteFile(filepath.Join(dir, version+".info"),
			[]byte(`{"Version":"`+version+`"}`), 0o644))
		require.NoError(t, os.WriteFile(filepath.Join(dir, version+".mod"),
			[]byte("module k8s.io/client-go\n\ngo 1.26.0\n"), 0o644))
		zip, err := os.Create(filepath.Join(dir, version+".zip"))
		require.NoError(t, err)
		require.NoError(t, modzip.CreateFromDir(zip,
			module.Version{Path: "k8s.io/client-go", Version: version}, source))
		require.NoError(t, zip.Close())
	}
	t.Setenv("GOPROXY", "file://"+proxy)
	t.Setenv("GOSUMDB", "off")
	t.Setenv("GOMODCACHE", t.TempDir())
	t.Setenv("GOFLAGS", "-modcacherw") // so that the test can remove it
}

// files maps slash-separated paths to the texts of files.
type files map[string]string

// write writes the files to a new folder.
func (f files) write(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for path, text := range f {
		path = filepath.Join(dir, filepath.FromSlash(path))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	return dir
}

// read reads all files below dir.
func read(t *testing.T, dir string) files {
	t.Helper()
	found := files{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		found[filepath.ToSlash(rel)] = string(text)
		return err
	}))
	return found
}

type writer func(string)

func (w writer) Write(p []byte) (int, error) {
	w(string(p))
	return len(p), nil
}
