// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A package of client-go has no difference from itself, and many from another.
func TestDifferences_OfCompiledPackages(t *testing.T) {
	differences, err := Differences(clientGoModule+"/tools/cache", clientGoModule+"/tools/cache")
	require.NoError(t, err)
	assert.Empty(t, differences)

	differences, err = Differences("container/ring", "container/list")
	require.NoError(t, err)
	assert.Contains(t, differences, Difference{"Ring", "is missing, client-go has a type"})
	assert.Contains(t, differences, Difference{"List", "client-go has no such name"})
}

func TestDifferences_OfNothing(t *testing.T) {
	_, err := Differences(clientGoModule+"/util/workqueue", compatFolder+"/nowhere")
	assert.ErrorContains(t, err, compatFolder+"/nowhere")
}

func TestUnexpected(t *testing.T) {
	differences := []Difference{{"Known", "is missing"}, {"News.Field", "is missing"}}
	assert.Equal(t, []string{
		"News.Field: is missing",
		"Equal: is listed as different, and is not",
	}, unexpected(differences,
		map[string]string{"Known": "it has no use", "Equal": "it had no use"}))
	assert.Equal(t, []string{"Known: is listed as different without a reason"},
		unexpected(differences[:1], map[string]string{"Known": " "}))
}

// A difference that is known for one version is expected for that version only, and an older
// client-go may lack names.
func TestCheck_OlderClientGo(t *testing.T) {
	differences := []Difference{{"News", noSuchName}, {"Queue.Len", "is missing"}}
	known := map[string]string{"v0.36 Queue.Len": "it came later", "Equal": "on both"}
	assert.Equal(t, differences, olderDifferences(slices.Clone(differences), "v0.37.9"))
	assert.Equal(t, differences[1:], olderDifferences(slices.Clone(differences), "v0.36.3"))
	assert.Equal(t, map[string]string{"Equal": "on both"}, knownAt(known, "v0.37.2"))
	assert.Equal(t, map[string]string{"Equal": "on both", "Queue.Len": "it came later"},
		knownAt(known, "v0.36.3"))

	_, version, err := differencesAndVersion(clientGoModule+"/util/workqueue",
		compatFolder+"/workqueue")
	require.NoError(t, err)
	assert.Regexp(t, `^v0\.3[67]\.\d+$`, version)
}

// comparisons are pairs of tiny packages. Both are called p; ours may mention the package core,
// which is ours too, and theirs the package other, which both mention.
var comparisons = []struct {
	name         string
	theirs, ours string
	want         []string
}{
	{"equal", `type A struct{ X int }; func F(a A) *A { return nil }; const C = 1; var V []A`,
		`type A struct{ X int }; func F(b A) *A { return nil }; const C = 1; var V []A`, nil},
	{"missing", `const C = 1; var V int; func F() {}; type T int; var v int`, ``,
		[]string{
			"C: is missing, client-go has a constant",
			"F: is missing, client-go has a function",
			"T: is missing, client-go has a type",
			"V: is missing, client-go has a variable",
		}},
	{"added", ``, `var V int`, []string{"V: client-go has no such name"}},
	{"kinds", `func F() {}`, `var F func()`,
		[]string{"F: is a variable, client-go has a function"}},
	{"values of constants", `const C = "a"; const D = 1 << 10`, `const C = "b"; const D = 1024`,
		[]string{`C: is "b", client-go has "a"`}},
	{"types of constants", `type S string; const C S = "a"`, `type S string; const C = "a"`,
		[]string{`C: is untyped string, client-go has p.S`}},
	{"signatures",
		`func F(a int, b ...string) error { return nil }; func G(chan<- int) {}; func H(func([]string)) {}`,
		`func F(a int, b []string) error { return nil }; func G(chan int) {}; func H(func([2]string)) {}`,
		[]string{
			"F: is func(a int, b []string) error, client-go has func(a int, b ...string) error",
			"G: is func(chan int), client-go has func(chan<- int)",
			"H: is func(func([2]string)), client-go has func(func([]string))",
		}},
	{"type parameters", `type L[T comparable] []T; func F[T any, M map[string]T](M) {}`,
		`type L[T any] []T; func F[T any, M map[string]int](M) {}`,
		[]string{
			"F: is func[T any, M map[string]int](M), client-go has func[T any, M map[string]T](M)",
			"L: has type parameters [T any], client-go's are [T comparable]",
		}},
	{"type parameters that changed places",
		`func F[A, B any](A, B) (B, A) { panic(0) }; type T[A, B any] map[string]func(A, B)`,
		`func F[C, D any](C, D) (C, D) { panic(0) }; type T[C, D any] map[string]func(D, C)`,
		[]string{
			"F: is func[C, D any](C, D) (C, D), client-go has func[A, B any](A, B) (B, A)",
			"T: is map[string]func(D, C), client-go has map[string]func(A, B)",
		}},
	{"type parameters that are new", `type N struct{}; func F(N) {}`,
		`type N[T any] struct{}; func F(N[int]) {}`,
		[]string{
			"F: is func(p.N[int]), client-go has func(p.N)",
			"N: has type parameters [T any], client-go's are []",
		}},
	{"types without names", "var A [2]int; var S struct{ X int `json:\"x\"` }; var I interface{ " +
		"M() int }; var J interface{ M() }",
		"var A [3]int; var S struct{ X int `json:\"y\"` }; var I interface{ M() string }; var J " +
			"interface{ M() }",
		[]string{
			"A: is [3]int, client-go has [2]int",
			"I: is interface{M() string}, client-go has interface{M() int}",
			`S: is struct{X int "json:\"y\""}, client-go has struct{X int "json:\"x\""}`,
		}},
	{"constraints",
		`func F[T ~int | string](T) {}; func G[T interface{ ~[]byte; Len() int }](T) {}`,
		`func F[T int | string](T) {}; func G[T interface{ ~[]byte; Len() int }](T) {}`,
		[]string{"F: is func[T int | string](T), client-go has func[T ~int | string](T)"}},
	{"fields", `type A struct{ X, Y int; B; z int }; type B struct{ M map[string]int }`,
		`type A struct{ X string; B B; w int; More int }; type B struct{ M map[int]int }`,
		[]string{
			"A.B: is embedded in one of the two only",
			"A.X: is string, client-go has int",
			"A.Y: is missing, client-go has a field int",
			"B.M: is map[int]int, client-go has map[string]int",
		}},
	{"fields without names", `type A struct{ X, Y int }; type B struct{ X, Y int }`,
		`type A struct{ Y, X int }; type B struct{ X, Y, Z int }`,
		[]string{
			"A.X: is not field 0 as in client-go",
			"A.Y: is not field 1 as in client-go",
			"B.Z: client-go has no such field: a literal without field names does not compile",
		}},
	{"methods",
		`type A int; func (A) V() {}; func (*A) P() {}; func (A) W(int) {}; func (A) Gone() {}`,
		`type A int; func (*A) V() {}; func (A) P() {}; func (A) W(string) {}; func (A) More() {}`,
		[]string{
			"A.Gone: is missing, client-go has func()",
			"A.V: is a method of *A alone, client-go's is one of A too",
			"A.W: is func(string), client-go has func(int)",
		}},
	{"methods of embedded types", `type A struct{ b }; type b struct{}; func (*b) M() {}`,
		`type A struct{}; func (*A) M() {}`, nil},
	{"interfaces", `type I interface { M(); N() int }; type Other interface { I }`,
		`type I interface { M(); N() string; More() }; type Other interface { M(); N() string }`,
		[]string{
			"I.More: client-go has no such method: what implements its interface does not " +
				"implement ours",
			"I.N: is func() string, client-go has func() int",
			"Other.N: is func() string, client-go has func() int",
		}},
	{"interfaces that only their package can implement",
		`type I interface { M() }; type J interface { m() }`,
		`type I interface { M(); m() }; type J interface { n() }`,
		[]string{"I.m: client-go has no such method: what implements its interface does not " +
			"implement ours"}},
	{"comparable", `type A struct{ a int }`, `type A struct{ a []int }`,
		[]string{"A: cannot be compared with ==, client-go's can"}},
	{"underlying types", `type A struct{}; type B interface{}; type C func(int); type D int`,
		`type A interface{}; type B struct{}; type C func(string); type D string`,
		[]string{
			"A: is interface{}, client-go has a struct",
			"B: is struct{}, client-go has an interface",
			"C: is func(string), client-go has func(int)",
			"D: is string, client-go has int",
		}},
	{"aliases of ours",
		`type A struct{ X int }; type I interface{ Get() *A }; func F(A) I { return nil }`,
		`import "core"; type A = core.Thing; type I = core.Getter; func F(core.Thing) core.Getter { return nil }`, nil},
	{"an alias of the wrong type", `type A struct{ X int }; func F(A) {}`,
		`import "core"; type A struct{ X int }; func F(core.Thing) {}`,
		[]string{"F: is func(core.Thing), client-go has func(p.A)"}},
	{"generic aliases",
		`type L[T comparable] struct{ X []T }; func (*L[T]) Add(T) *L[T] { return nil }; type A = L[any]; func F[T comparable](L[T]) A { return A{} }`,
		`import "core"; type L[T comparable] = core.List[T]; type A = core.List[any]; func F[S comparable](L[S]) L[any] { return A{} }`, nil},
	{"generic aliases of less general types",
		`type L[T any] struct{ X T }; type N struct{ X string }; func F(L[int], N) {}`,
		`import "core"; type L[T any] = core.Pair[string, T]; type N = core.Pair[int, string]; func F(core.Pair[string, int], N) {}`, nil},
	{"instances", `type L[T any] struct{ X T }; func F(L[int]) {}`,
		`import "core"; type L[T any] = core.Pair[string, T]; func F(core.Pair[int, int]) {}`,
		[]string{"F: is func(core.Pair[int, int]), client-go has func(p.L[int])"}},
	{"aliases of client-go", `type A = B; type B struct{}; type C = B`,
		`type A = B; type B struct{}; type C struct{}`,
		[]string{"C: is p.C, client-go has p.B"}},
	{"unexported types",
		`type o struct{}; func (*o) M() {}; type P struct{}; type F func(*o); func W() func(*o) { return nil }; func G(*o) {}`,
		`type q struct{}; type F func(*q); type P struct{}; func W() func(*q) { return nil }; func G(*P) {}`,
		[]string{
			"G: is func(*p.P), client-go has func(*p.o)",
			"o.M: is missing, client-go has func()",
		}},
	{"an unexported type that is exported", `type o struct{}; func F(o) {}`,
		`import "core"; func F(core.Thing) {}`,
		[]string{"F: is func(core.Thing), client-go has func(p.o)"}},
	{"types that are one", `type A interface{ M() }; type B interface{ M() }`,
		`type A interface{ M() }; type B = A`,
		[]string{"B: is the same type as A, client-go has two"}},
	{"types of others", `import "other"; func F(other.T, other.G[other.T]) {}; func H(error) {}`,
		`import "other"; import "core"; func F(other.T, other.G[core.Thing]) {}; func H(error) {}`,
		[]string{"F: is func(other.T, other.G[core.Thing]), client-go has func(other.T, " +
			"other.G[other.T])"}},
	{"recursion", `type A struct{ Next *A }; type I interface { Self() I; Each(func(I)) }`,
		`type A struct{ Next *A }; type I interface { Self() I; Each(func(I)) }`, nil},
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

			var got []string
			for _, d := range compare(theirs, ours,
				map[*types.Package]*types.Package{theirs: ours}) {
				got = append(got, d.String())
			}
			assert.Equal(t, test.want, got)
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
		compare(theirs, ours, map[*types.Package]*types.Package{theirs: ours, their: our}))
	assert.Equal(t,
		[]Difference{{"F", "is func(ours/lock.Lock), client-go has func(client-go/lock.Lock)"}},
		compare(theirs, ours, map[*types.Package]*types.Package{theirs: ours}))
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
