// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A package of client-go has no difference from itself, and many from another.
func TestDifferences_OfCompiledPackages(t *testing.T) {
	found, version, err := differences(clientGoModule+"/tools/cache", clientGoModule+"/tools/cache")
	require.NoError(t, err)
	assert.Empty(t, found)
	assert.Regexp(t, `^v0\.3[67]\.\d+$`, version)

	found, _, err = differences("container/ring", "container/list")
	require.NoError(t, err)
	assert.Contains(t, found["Ring"], "is missing, client-go has the type")
	assert.Equal(t, noSuchName, found["List"])

	_, _, err = differences(clientGoModule+"/util/workqueue", ourModule+"/compat/nowhere")
	assert.ErrorContains(t, err, "compat/nowhere")
}

func TestUnexpected(t *testing.T) {
	differences := map[string]string{"Known": "is missing", "News.Field": "is missing"}
	assert.Equal(t, []string{
		"Blank: is listed as different, and is not",
		"Known: is listed as different without a reason",
		"News.Field: is missing",
	}, unexpected(differences, map[string]string{"Known": " ", "Blank": "it had no use"},
		"v0.37.2"))
}

// A difference that is known for one version is expected for that version only, and an older
// client-go may lack names.
func TestUnexpected_OlderClientGo(t *testing.T) {
	differences := map[string]string{"News": noSuchName, "Queue.Len": "is missing"}
	known := map[string]string{"v0.36 Queue.Len": "it came later"}
	assert.Empty(t, unexpected(differences, known, "v0.36.3"))
	assert.Equal(t, []string{"News: " + noSuchName, "Queue.Len: is missing"},
		unexpected(differences, known, "v0.37.2"))
}

// comparisons are pairs of tiny packages. Both are called p; ours may mention the package core,
// which is ours too, and theirs the package other, which both mention.
var comparisons = []struct {
	name         string
	theirs, ours string
	want         string // the names that differ
}{
	{"equal", `type A struct{ X int }; func F(a A) *A { return nil }; const C = 1; var V []A`,
		`type A struct{ X int }; func F(b A) *A { return nil }; const C = 1; var V []A`, ""},
	{"missing", `const C = 1; var V int; func F() {}; type T int; var v int`, ``,
		"C, F, T, V"},
	{"added", ``, `var V int`, "V"},
	{"kinds", `func F() {}`, `var F func()`,
		"F"},
	{"values of constants", `const C = "a"; const D = 1 << 10`, `const C = "b"; const D = 1024`,
		"C"},
	{"types of constants", `type S string; const C S = "a"`, `type S string; const C = "a"`,
		"C"},
	{"signatures",
		`func F(a int, b ...string) error { return nil }; func G(chan<- int) {}; func H(func([]string)) {}`,
		`func F(a int, b []string) error { return nil }; func G(chan int) {}; func H(func([2]string)) {}`,
		"F, G, H"},
	{"type parameters", `type L[T comparable] []T; func F[T any, M map[string]T](M) {}`,
		`type L[T any] []T; func F[T any, M map[string]int](M) {}`,
		"F, L"},
	{"type parameters that changed places",
		`func F[A, B any](A, B) (B, A) { panic(0) }; type T[A, B any] map[string]func(A, B)`,
		`func F[C, D any](C, D) (C, D) { panic(0) }; type T[C, D any] map[string]func(D, C)`,
		"F, T"},
	{"type parameters that are new", `type N struct{}; func F(N) {}`,
		`type N[T any] struct{}; func F(N[int]) {}`,
		"F, N"},
	{"types without names", "var A [2]int; var S struct{ X int `json:\"x\"` }; var I interface{ " +
		"M() int }; var J interface{ M() }",
		"var A [3]int; var S struct{ X int `json:\"y\"` }; var I interface{ M() string }; var J " +
			"interface{ M() }",
		"A, I, S"},
	{"constraints",
		`func F[T ~int | string](T) {}; func G[T interface{ ~[]byte; Len() int }](T) {}`,
		`func F[T int | string](T) {}; func G[T interface{ ~[]byte; Len() int }](T) {}`,
		"F"},
	{"fields", `type A struct{ X, Y int; B; z int }; type B struct{ M map[string]int }`,
		`type A struct{ X string; B B; w int; More int }; type B struct{ M map[int]int }`,
		"A.B, A.X, A.Y, B.M"},
	{"fields without names", `type A struct{ X, Y int }; type B struct{ X, Y int }`,
		`type A struct{ Y, X int }; type B struct{ X, Y, Z int }`,
		"A.X, A.Y, B.Z"},
	{"methods",
		`type A int; func (A) V() {}; func (*A) P() {}; func (A) W(int) {}; func (A) Gone() {}`,
		`type A int; func (*A) V() {}; func (A) P() {}; func (A) W(string) {}; func (A) More() {}`,
		"A.Gone, A.Gone of a value, A.V of a value, A.W"},
	{"methods of embedded types", `type A struct{ b }; type b struct{}; func (*b) M() {}`,
		`type A struct{}; func (*A) M() {}`, ""},
	{"interfaces", `type I interface { M(); N() int }; type Other interface { I }`,
		`type I interface { M(); N() string; More() }; type Other interface { M(); N() string }`,
		"I.More, I.N, Other.N"},
	{"interfaces that only their package can implement",
		`type I interface { M() }; type J interface { m() }`,
		`type I interface { M(); m() }; type J interface { n() }`,
		"I.m"},
	{"comparable", `type A struct{ a int }`, `type A struct{ a []int }`,
		"A =="},
	{"underlying types", `type A struct{}; type B interface{}; type C func(int); type D int`,
		`type A interface{}; type B struct{}; type C func(string); type D string`,
		"A, B, C, D"},
	{"aliases of ours",
		`type A struct{ X int }; type I interface{ Get() *A }; func F(A) I { return nil }`,
		`import "core"; type A = core.Thing; type I = core.Getter; func F(core.Thing) core.Getter { return nil }`, ""},
	{"an alias of the wrong type", `type A struct{ X int }; func F(A) {}`,
		`import "core"; type A struct{ X int }; func F(core.Thing) {}`,
		"F"},
	{"generic aliases",
		`type L[T comparable] struct{ X []T }; func (*L[T]) Add(T) *L[T] { return nil }; type A = L[any]; func F[T comparable](L[T]) A { return A{} }`,
		`import "core"; type L[T comparable] = core.List[T]; type A = core.List[any]; func F[S comparable](L[S]) L[any] { return A{} }`, ""},
	{"generic aliases of less general types", `type L[T any] struct{ X T }; func F(L[int]) {}`,
		`import "core"; type L[T any] = core.Pair[string, T]; func F(core.Pair[string, int]) {}`,
		"F"},
	{"instances", `type L[T any] struct{ X T }; func F(L[int]) {}`,
		`import "core"; type L[T any] = core.Pair[string, T]; func F(core.Pair[int, int]) {}`,
		"F"},
	{"aliases of client-go", `type A = B; type B struct{}; type C = B`,
		`type A = B; type B struct{}; type C struct{}`,
		"C"},
	{"unexported types",
		`type o struct{}; func (*o) M() {}; type P struct{}; type F func(*o); func W() func(*o) { return nil }; func G(*o) {}`,
		`type q struct{}; type F func(*q); type P struct{}; func W() func(*q) { return nil }; func G(*P) {}`,
		"G"},
	{"an unexported type that is exported", `type o struct{}; func F(o) {}`,
		`import "core"; func F(core.Thing) {}`,
		"F"},
	{"types that are one", `type A interface{ M() }; type B interface{ M() }`,
		`type A interface{ M() }; type B = A`,
		"B"},
	{"types of others", `import "other"; func F(other.T, other.G[other.T]) {}; func H(error) {}`,
		`import "other"; import "core"; func F(other.T, other.G[core.Thing]) {}; func H(error) {}`,
		"F"},
	{"recursion", `type A struct{ Next *A }; type I interface { Self() I; Each(func(I)) }`,
		`type A struct{ Next *A }; type I interface { Self() I; Each(func(I)) }`, ""},
}

func TestCompare(t *testing.T) {
	for _, test := range comparisons {
		t.Run(test.name, func(t *testing.T) {
			packages := importsOf{}
			packages.check(t, "other", `package other; type T struct{}; type G[P any] []P`)
			packages.check(t, "core", `package core
				type Thing struct{ X int }
				type Getter interface{ Get() *Thing }
				type List[E comparable] struct{ X []E }
				func (*List[F]) Add(F) *List[F] { return nil }
				func (*List[F]) More(F) {}
				type Pair[K, E any] struct{ X E }`)
			theirs := packages.check(t, "client-go/p", "package p; "+test.theirs)
			ours := packages.check(t, "ours/p", "package p; "+test.ours)

			found := compare(theirs, map[*types.Package]*types.Package{theirs: ours})
			assert.Equal(t, test.want, strings.Join(slices.Sorted(maps.Keys(found)), ", "))
		})
	}
}

// A second package of client-go that has a counterpart counts as that counterpart.
func TestCompare_TwoPackages(t *testing.T) {
	packages := importsOf{}
	their := packages.check(t, "client-go/lock", `package lock; type Lock interface{}`)
	our := packages.check(t, "ours/lock", `package lock; type Lock interface{}`)
	theirs := packages.check(t, "client-go/p",
		`package p; import "client-go/lock"; func F(lock.Lock) {}`)
	ours := packages.check(t, "ours/p", `package p; import "ours/lock"; func F(lock.Lock) {}`)

	assert.Empty(t,
		compare(theirs, map[*types.Package]*types.Package{theirs: ours, their: our}))
	assert.Equal(t, map[string]string{
		"F": "is func(ours/lock.Lock), client-go has func(client-go/lock.Lock)"},
		compare(theirs, map[*types.Package]*types.Package{theirs: ours}))
}

// importsOf maps paths to packages that were checked.
type importsOf map[string]*types.Package

func (p importsOf) Import(path string) (*types.Package, error) {
	if pkg, ok := p[path]; ok {
		return pkg, nil
	}
	return importer.Default().Import(path)
}

func (p importsOf) check(t *testing.T, path, source string) *types.Package {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path+".go", source, parser.SkipObjectResolution)
	require.NoError(t, err)
	pkg, err := (&types.Config{Importer: p}).Check(path, fset, []*ast.File{file}, nil)
	require.NoError(t, err)
	p[path] = pkg
	return pkg
}
