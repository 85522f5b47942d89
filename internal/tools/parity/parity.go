// SPDX-License-Identifier: Apache-2.0

// Package parity measures whether a program that compiles against a package of client-go compiles
// against ours.
//
// Both packages are listed as lines of text, by exported name: kinds, values of constants,
// signatures, type parameters, fields, and the methods of types and of pointers to them. If our
// package and client-go's have a type of one name, the text calls both by client-go's name. Our
// type may be declared anywhere: an alias is as good as a declaration. Then the lines are compared.
//
// Only differences that a program can observe count: our types may have more methods and, where
// client-go's has unexported fields, more fields. Our interfaces may not have more methods, since
// programs implement them. All unexported types that exported names mention count as one type: a
// program cannot name them. An alias with type parameters must have those of the type, in order.
//
// Read parity.go, compare.go, text.go; then go test -v ./internal/tools/parity. Goroutines and
// locking: none.
package parity

import (
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	clientGoModule = "k8s.io/client-go"
	ourModule      = "example.com/informerstack"
)

// counterparts maps the paths of client-go's packages to ours.
var counterparts = map[string]string{
	clientGoModule + "/tools/cache":           ourModule + "/compat/cache",
	clientGoModule + "/tools/cache/synctrack": ourModule + "/compat/cache/synctrack",
	clientGoModule + "/tools/cache/testing":   ourModule + "/compat/cache/testing",
	clientGoModule + "/tools/leaderelection":  ourModule + "/compat/leaderelection",
	clientGoModule + "/tools/leaderelection/resourcelock": ourModule +
		"/compat/leaderelection/resourcelock",
	clientGoModule + "/tools/watch":    ourModule + "/compat/watch",
	clientGoModule + "/util/workqueue": ourModule + "/compat/workqueue",
}

// newest is the version of client-go that our names come from. An older version lacks some of the
// names, which does no harm to programs for it.
const newest = "v0.37"

// Check fails t for each difference between client-go's package and ours that known does not
// contain, and for each entry of known that does not occur. known maps a name, Type.Method or
// Type.Field to the reason; a name after a version, as in "v0.36 Queue.Len", concerns only that
// version of client-go. Both packages are import paths; they must compile.
//
// The version of client-go is that of the module, or of another go.mod that GOFLAGS names:
//
//	GOFLAGS=-modfile=$PWD/internal/tools/parity/testdata/go-0.36.mod go test ./compat/...
func Check(t testing.TB, clientGo, compat string, known map[string]string) {
	t.Helper()
	differences, version, err := differences(clientGo, compat)
	require.NoError(t, err)
	for _, problem := range unexpected(differences, known, version) {
		t.Error(problem)
	}
}

// unexpected compares the differences from a version of client-go with those that are known.
func unexpected(differences, known map[string]string, version string) []string {
	differences, expected := maps.Clone(differences), map[string]string{}
	if !strings.HasPrefix(version, newest+".") {
		maps.DeleteFunc(differences, func(_, what string) bool { return what == noSuchName })
	}
	for name, reason := range known {
		if only, rest, versioned := strings.Cut(name, " "); !versioned {
			expected[name] = reason
		} else if strings.HasPrefix(version, only+".") {
			expected[rest] = reason
		}
	}
	var problems []string
	for name, what := range differences {
		if _, ok := expected[name]; !ok {
			problems = append(problems, name+": "+what)
		}
	}
	for name, reason := range expected {
		if _, ok := differences[name]; !ok {
			problems = append(problems, name+": is listed as different, and is not")
		} else if strings.TrimSpace(reason) == "" {
			problems = append(problems, name+": is listed as different without a reason")
		}
	}
	slices.Sort(problems)
	return problems
}

// differences compares two packages, and also returns the version of client-go. If they mention
// types of other packages of client-go that have counterparts, and ours depends on those, the
// counterparts' types are expected.
func differences(clientGo, compat string) (found map[string]string, version string, err error) {
	files, version, err := exportData(clientGo, compat)
	if err != nil {
		return nil, "", err
	}
	load := importer.ForCompiler(token.NewFileSet(), "gc",
		func(path string) (io.ReadCloser, error) { return os.Open(files[path]) })
	pairs := map[string]string{clientGo: compat}
	for from, to := range counterparts {
		if from != clientGo && files[from] != "" && files[to] != "" {
			pairs[from] = to
		}
	}
	packages := map[*types.Package]*types.Package{}
	for from, to := range pairs {
		theirs, err := load.Import(from)
		if err != nil {
			return nil, "", err
		}
		if packages[theirs], err = load.Import(to); err != nil {
			return nil, "", err
		}
	}
	theirs, err := load.Import(clientGo)
	return compare(theirs, packages), version, err
}

// exportData returns the files with the types of packages and all their dependencies, by path, and
// the version of client-go. The go command compiles them if necessary.
func exportData(paths ...string) (files map[string]string, version string, err error) {
	const format = "{{.ImportPath}}\t{{.Export}}\t{{with .Module}}{{.Path}}@{{.Version}}{{end}}"
	list := exec.Command("go",
		append([]string{"list", "-export", "-deps", "-f", format}, paths...)...)
	var stderr strings.Builder
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		return nil, "", fmt.Errorf("go list %s: %w: %s", strings.Join(paths, " "), err, &stderr)
	}
	files = map[string]string{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		files[fields[0]] = fields[1]
		if of, ok := strings.CutPrefix(fields[2], clientGoModule+"@"); ok {
			version = of
		}
	}
	return files, version, nil
}
