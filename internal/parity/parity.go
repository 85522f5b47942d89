// SPDX-License-Identifier: Apache-2.0

// Package parity measures whether a program that compiles against a package of client-go compiles
// against ours.
//
// It compares exported names: kinds, values of constants, signatures, type parameters, fields, and
// the methods of types and of pointers to them. A type of client-go and the type that has its name
// in our package count as the same, wherever they are mentioned; it does not matter where ours is
// declared, so that an alias is as good as a declaration. Types of packages that are not ours must
// be identical.
//
// Only differences that a program can observe count: our types may have more methods and, where
// client-go's has unexported fields, more fields. Our interfaces may not have more methods, since
// programs implement them.
//
// Read parity.go, load.go, compare.go, definition.go, correspond.go; then go test -v
// ./internal/parity. Goroutines and locking: none.
package parity

import (
	"fmt"
	"go/types"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	clientGoModule = "k8s.io/client-go"
	compatFolder   = "example.com/informerstack/compat"
)

// counterparts maps the paths of client-go's packages to ours.
var counterparts = map[string]string{
	clientGoModule + "/tools/cache":           compatFolder + "/cache",
	clientGoModule + "/tools/cache/synctrack": compatFolder + "/cache/synctrack",
	clientGoModule + "/tools/cache/testing":   compatFolder + "/cache/testing",
	clientGoModule + "/tools/leaderelection":  compatFolder + "/leaderelection",
	clientGoModule + "/tools/leaderelection/resourcelock": compatFolder +
		"/leaderelection/resourcelock",
	clientGoModule + "/tools/watch":    compatFolder + "/watch",
	clientGoModule + "/util/workqueue": compatFolder + "/workqueue",
}

// Difference is one difference that a program can observe.
type Difference struct {
	// Name is the constant, variable, function or type, or Type.Method, or Type.Field.
	Name string
	// The difference in words.
	What string
}

// String is the difference in one line.
func (d Difference) String() string { return d.Name + ": " + d.What }

// newest is the version of client-go whose names we have. An older one lacks some of them, which
// does no harm to programs for it.
const newest = "v0.37"

// Check fails t for each difference between client-go's package and ours that known does not
// contain, and for each entry of known that does not occur. known maps a Difference.Name to the
// reason; a name after a version, as in "v0.36 Queue.Len", concerns only that version of client-go.
// Both packages are import paths; they must compile.
//
// The version of client-go is that of the module, or of another go.mod that GOFLAGS names:
//
//	GOFLAGS=-modfile=$PWD/internal/parity/testdata/go-0.36.mod go test ./compat/...
func Check(t testing.TB, clientGo, compat string, known map[string]string) {
	t.Helper()
	differences, version, err := differencesAndVersion(clientGo, compat)
	require.NoError(t, err)
	for _, problem := range unexpected(olderDifferences(differences, version),
		knownAt(known, version)) {
		t.Error(problem)
	}
}

// olderDifferences leaves out the names that an older client-go does not have yet.
func olderDifferences(differences []Difference, version string) []Difference {
	if strings.HasPrefix(version, newest+".") {
		return differences
	}
	return slices.DeleteFunc(differences, func(d Difference) bool { return d.What == noSuchName })
}

// knownAt returns the entries of known that concern a version.
func knownAt(known map[string]string, version string) map[string]string {
	about := map[string]string{}
	for name, reason := range known {
		only, rest, versioned := strings.Cut(name, " ")
		switch {
		case !versioned:
			about[name] = reason
		case strings.HasPrefix(version, only+"."):
			about[rest] = reason
		}
	}
	return about
}

// unexpected compares the differences with those that are known.
func unexpected(differences []Difference, known map[string]string) []string {
	var problems []string
	found := map[string]bool{}
	for _, d := range differences {
		found[d.Name] = true
		if _, ok := known[d.Name]; !ok {
			problems = append(problems, d.String())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		switch {
		case !found[name]:
			problems = append(problems, name+": is listed as different, and is not")
		case strings.TrimSpace(known[name]) == "":
			problems = append(problems, name+": is listed as different without a reason")
		}
	}
	return problems
}

// Differences lists the differences between two packages that a program can observe, by name. If
// they mention types of other packages of client-go that have counterparts, and ours depends on
// those, the counterparts' types are expected.
func Differences(clientGo, compat string) ([]Difference, error) {
	differences, _, err := differencesAndVersion(clientGo, compat)
	return differences, err
}

// differencesAndVersion also returns the version of client-go.
func differencesAndVersion(clientGo,
	compat string) (differences []Difference, version string, err error) {
	load, err := newLoader(clientGo, compat)
	if err != nil {
		return nil, "", err
	}
	theirs, err := load.Import(clientGo)
	if err != nil {
		return nil, "", fmt.Errorf("import %s: %w", clientGo, err)
	}
	ours, err := load.Import(compat)
	if err != nil {
		return nil, "", fmt.Errorf("import %s: %w", compat, err)
	}
	pairs := map[*types.Package]*types.Package{theirs: ours}
	for from, to := range counterparts {
		if from == clientGo || !load.has(from) || !load.has(to) {
			continue
		}
		if err := load.pair(pairs, from, to); err != nil {
			return nil, "", err
		}
	}
	return compare(theirs, ours, pairs), load.clientGo, nil
}
