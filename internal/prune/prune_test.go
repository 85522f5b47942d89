// SPDX-License-Identifier: Apache-2.0

package prune

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const ownFile = `package shelf

import "errors"

var errFull = errors.New("full")

type Putter interface{ Put(string) error }

type Shelf struct {
	Name  string
	books []string
}

func New(name string) *Shelf { return &Shelf{Name: name} }

func (s *Shelf) Put(book string) error {
	if s.isFull() {
		return errFull
	}
	s.books = append(s.books, book)
	return nil
}

func (s *Shelf) isFull() bool { return len(s.books) == 2 }

type Pair[T any] struct{ Left, right T }

func (p Pair[T]) swap() Pair[T] { return Pair[T]{p.right, p.Left} }
`

// Each test is named after the name that it mentions.
const insideTests = `package shelf

import (
	"errors"
	"fmt"
	str "strings"
	"testing"
	_ "time"
)

type counter interface{ Count() int }

// Count is a method that only the tests have.
func (s *Shelf) Count() int { return len(s.books) }

func put(t *testing.T, s Putter, books ...string) {
	for _, book := range books {
		if err := s.Put(book); err != nil {
			t.Error(str.ToUpper(err.Error()))
		}
	}
}

func total(c counter) int { return c.Count() }

func mustBeFull(t *testing.T, s *Shelf) {
	if !s.isFull() {
		t.Error("not full")
	}
}

type full struct{ *Shelf }

func (f full) check(t *testing.T) { mustBeFull(t, f.Shelf) }

func TestExported(t *testing.T) { put(t, New("a"), "x") }

func TestVariable(t *testing.T) {
	if !errors.Is(errFull, errFull) {
		t.Error(fmt.Sprint("?"))
	}
}

func TestField(t *testing.T)         { _ = New("a").books }
func TestMethod(t *testing.T)        { New("a").isFull() }
func TestUnkeyedFields(t *testing.T) { _ = Shelf{"a", nil} }
func TestKeyedFields(t *testing.T)   { _ = Shelf{Name: "a"} }
func TestGeneric(t *testing.T)       { _ = Pair[int]{}.swap() }
func TestAddedMethod(t *testing.T)   { New("a").Count() }
func TestHelper(t *testing.T)        { mustBeFull(t, New("a")) }
func TestHelpersHelper(t *testing.T) { full{New("a")}.check(t) }
func TestHelperType(t *testing.T)    { _ = full{} }
func TestInterface(t *testing.T)     { total(New("a")) }

// Local names belong to their function.
func TestLocal(t *testing.T) {
	books, isFull := 1, func() bool { return false }
	_, _ = books, isFull
}

func BenchmarkField(b *testing.B) { _ = New("a").books }

func Example() { _ = errFull }

func Testable() bool { return false }
`

const aloneTests = `package shelf

import "testing"

func TestAlone(t *testing.T) { New("a").isFull() }
`

const outsideTests = `package shelf_test

import (
	"testing"

	"example.com/library/shelf"
)

func TestExternal(t *testing.T) { shelf.New("a") }
`

// reexporting has the exported names of ownFile and no others.
const reexporting = `package shelf

import other "example.com/library/other"

type Putter = other.Putter
type Shelf = other.Shelf
type Pair[T any] = other.Pair[T]

func New(name string) *Shelf { return other.New(name) }
`

func write(t *testing.T, folder string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(folder, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
}

func library(t *testing.T) string {
	t.Helper()
	t.Setenv("GOFLAGS", "-mod=mod")
	t.Setenv("GOWORK", "off")
	folder := t.TempDir()
	write(t, folder, map[string]string{
		"go.mod":                 "module example.com/library\n\ngo 1.26\n",
		"shelf/shelf.go":         ownFile,
		"shelf/shelf_test.go":    insideTests,
		"shelf/alone_test.go":    aloneTests,
		"shelf/external_test.go": outsideTests,
	})
	return folder
}

func TestTests_AreCutForTheNamesTheyMention(t *testing.T) {
	result, err := Tests(library(t), "example.com/library/shelf")
	require.NoError(t, err)
	needs := map[string][]string{}
	for _, test := range result.Cut {
		needs[test.Name] = test.Needs
	}
	assert.Equal(t, map[string][]string{
		"TestVariable":      {"errFull"},
		"TestField":         {"Shelf.books"},
		"TestMethod":        {"Shelf.isFull"},
		"TestUnkeyedFields": {"Shelf.books"},
		"TestGeneric":       {"Pair.swap"},
		"TestAddedMethod":   {"Shelf.Count", "Shelf.books"},
		"TestHelper":        {"Shelf.isFull"},
		"TestHelpersHelper": {"Shelf.isFull"},
		"TestInterface":     {"Shelf.Count", "Shelf.books"},
		"TestAlone":         {"Shelf.isFull"},
		"BenchmarkField":    {"Shelf.books"},
		"Example":           {"errFull"},
	}, needs)
	var kept []string
	for _, test := range result.Kept {
		assert.Empty(t, test.Needs)
		kept = append(kept, test.File+" "+test.Name)
	}
	assert.ElementsMatch(t, []string{
		"external_test.go TestExternal", "shelf_test.go TestExported",
		"shelf_test.go TestKeyedFields",
		"shelf_test.go TestHelperType", "shelf_test.go TestLocal",
	}, kept)
}

// The remaining tests run in a package that has only the exported names.
func TestTests_RunOnTheExportedNames(t *testing.T) {
	folder := library(t)
	result, err := Tests(folder, "example.com/library/shelf")
	require.NoError(t, err)
	assert.NotContains(t, result.Files, "alone_test.go")
	assert.Contains(t, string(result.Files["shelf_test.go"]), `str "strings"`)
	assert.NotContains(t, string(result.Files["shelf_test.go"]), `"fmt"`)
	assert.NotContains(t, string(result.Files["shelf_test.go"]), "only the tests have")
	assert.Equal(t, outsideTests, string(result.Files["external_test.go"]))

	require.NoError(t, os.Mkdir(filepath.Join(folder, "other"), 0o755))
	require.NoError(t,
		os.Rename(filepath.Join(folder, "shelf/shelf.go"), filepath.Join(folder, "other/shelf.go")))
	require.NoError(t, os.Remove(filepath.Join(folder, "shelf/alone_test.go")))
	write(t, folder, map[string]string{"shelf/shelf.go": reexporting})
	for name, text := range result.Files {
		write(t, folder, map[string]string{"shelf/" + name: string(text)})
	}
	run := exec.Command("go", "test", "./shelf")
	run.Dir = folder
	output, err := run.CombinedOutput()
	assert.NoError(t, err, "%s", output)
}

func TestTests_ReportErrors(t *testing.T) {
	folder := library(t)
	_, err := Tests(folder, "example.com/library/none")
	assert.ErrorContains(t, err, "example.com/library/none")
	write(t, folder,
		map[string]string{"shelf/shelf_test.go": "package shelf\n\nvar x = undefined\n"})
	_, err = Tests(folder, "example.com/library/shelf")
	assert.ErrorContains(t, err, "undefined")
	write(t, folder, map[string]string{"shelf/shelf_test.go": "package"})
	_, err = Tests(folder, "example.com/library/shelf")
	assert.ErrorContains(t, err, "shelf_test.go")
}
