// SPDX-License-Identifier: Apache-2.0

// Package layout checks rules that the compiler does not: the direction of imports, the layout of
// files, the width of lines and the plainness of prose, that every Source line names a symbol of
// client-go, and that the docs name code and tests that exist.
package layout

import (
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
)

// rule lists the imports that a package's code, except tests, may have besides the standard
// library.
type rule struct {
	ours    []string // packages of this module
	outside []string // path prefixes
}

// machinery may be imported by every package: the types of the API and the logger.
var machinery = []string{"k8s.io/apimachinery/", "k8s.io/klog/v2", "k8s.io/utils/"}

// rules is the dependency direction: a package imports only packages to its left in the pipeline.
var rules = map[string]rule{
	"internal/freshness": {},
	"store":              {ours: []string{"internal/helpers/objects"}},
	"store/compact": {
		ours: []string{"store", "internal/helpers/objects"},
		outside: []string{"github.com/hashicorp/golang-lru/v2",
			"github.com/klauspost/compress/zstd"},
	},
	"workqueue": {outside: []string{"golang.org/x/time/rate"}},
	"deltafifo": {ours: []string{"store"}},
	"reflector": {
		ours: []string{"internal/freshness", "store", "reflector/outage", "reflector/starts",
			"internal/helpers/async",
			"internal/helpers/callsite", "internal/helpers/listwatch", "internal/helpers/objects",
			"internal/helpers/printable", "internal/helpers/shorterror"},
	},
	"reflector/wire": {
		ours: []string{"internal/decode", "internal/readahead", "internal/helpers/done"},
		outside: []string{"github.com/go-json-experiment/json/jsontext",
			"google.golang.org/protobuf/encoding/protowire", "k8s.io/client-go/rest",
			"k8s.io/client-go/util/flowcontrol"},
	},
	"internal/readahead": {},
	"internal/decode": {
		outside: []string{"github.com/go-json-experiment/json",
			"google.golang.org/protobuf/encoding/protowire"},
	},
	"reflector/starts": {},
	"reflector/outage": {outside: []string{"k8s.io/client-go/rest"}},
	"informer": {
		ours: []string{"internal/freshness", "store", "store/compact", "deltafifo", "reflector",
			"reflector/outage", "reflector/wire", "internal/helpers/done",
			"internal/helpers/objects"},
		outside: []string{"k8s.io/client-go/rest"},
	},
	"informer/factory": {ours: []string{"informer"}},
	"informer/served": {
		ours:    []string{"client", "informer", "reflector", "internal/helpers/listwatch"},
		outside: []string{"k8s.io/client-go/rest"},
	},
	"informer/namespaces": {
		ours: []string{"internal/freshness", "store", "deltafifo", "reflector",
			"reflector/outage", "reflector/wire", "informer",
			"internal/helpers/listwatch", "internal/helpers/objects"},
		outside: []string{"k8s.io/client-go/rest"},
	},
	"controller": {
		ours: []string{"workqueue", "internal/helpers/objects", "internal/helpers/termcontext"},
	},
	"leaderelection": {
		ours: []string{"leaderelection/resourcelock", "internal/helpers/done",
			"internal/helpers/termcontext"},
		outside: []string{"k8s.io/client-go/rest", "k8s.io/api/", "golang.org/x/sys/unix"},
	},
	"client": {outside: []string{"k8s.io/client-go/rest"}},
	"shard": {
		ours: []string{"store", "reflector", "informer", "controller", "leaderelection",
			"leaderelection/resourcelock", "internal/helpers/async", "internal/helpers/done",
			"internal/helpers/listwatch"},
		outside: []string{"k8s.io/client-go/rest", "k8s.io/api/"},
	},
	"internal/helpers/termcontext": {},
	"leaderelection/resourcelock":  {outside: []string{"k8s.io/client-go/rest", "k8s.io/api/"}},
	"internal/helpers/async":       {},
	"internal/helpers/boundedmap":  {outside: []string{"github.com/hashicorp/golang-lru/v2"}},
	"internal/helpers/done":        {},
	"internal/helpers/listwatch":   {},
	"internal/helpers/objects":     {},
	"internal/helpers/callsite":    {},
	"internal/helpers/shorterror":  {ours: []string{"internal/helpers/printable"}},
	"internal/helpers/hostheader":  {},
	"internal/helpers/linktoken":   {},
	"internal/helpers/manifests":   {},
	"internal/helpers/printable":   {},
	"apitest": {
		ours: []string{"apitest/internal/access", "apitest/internal/builtin",
			"apitest/internal/frontend", "apitest/internal/openapi", "apitest/internal/patch",
			"apitest/internal/table", "apitest/internal/webhook",
			"internal/helpers/hostheader", "internal/helpers/manifests"},
		outside: []string{
			"gopkg.in/evanphx/json-patch.v4", "k8s.io/api/",
			"k8s.io/client-go/applyconfigurations", "k8s.io/client-go/kubernetes/scheme",
			"k8s.io/client-go/rest", "k8s.io/kube-openapi/pkg/validation/spec", "sigs.k8s.io/json",
			"sigs.k8s.io/structured-merge-diff/", "sigs.k8s.io/yaml",
		},
	},
	"apitest/internal/access":   {outside: []string{"k8s.io/api/"}},
	"apitest/internal/builtin":  {outside: []string{"k8s.io/api/"}},
	"apitest/internal/frontend": {},
	"apitest/internal/openapi": {outside: []string{"github.com/google/gnostic-models/openapiv2",
		"google.golang.org/protobuf/proto"}},
	"apitest/internal/patch": {outside: []string{"gopkg.in/evanphx/json-patch.v4",
		"k8s.io/client-go/kubernetes/scheme"}},
	"apitest/internal/table": {
		outside: []string{"k8s.io/api/", "k8s.io/client-go/util/jsonpath"},
	},
	"apitest/internal/webhook": {outside: []string{"k8s.io/api/"}},
	"apitest/schemas": {
		ours: []string{"apitest"},
		outside: []string{"k8s.io/apiextensions-apiserver/", "k8s.io/apiserver/",
			"sigs.k8s.io/json"},
	},
	"observe/trace": {
		ours: []string{"store", "deltafifo", "reflector", "informer", "workqueue", "controller",
			"internal/helpers/listwatch", "internal/helpers/objects",
			"internal/helpers/printable"},
	},
	"observe/sizes": {ours: []string{"store", "internal/helpers/objects"}},
	"observe/metrics": {
		ours: []string{
			"store", "deltafifo", "reflector", "informer", "workqueue", "controller",
			"leaderelection", "shard", "observe/sizes",
			"internal/helpers/boundedmap", "internal/helpers/objects",
		},
		outside: []string{"github.com/prometheus/", "go.opentelemetry.io/otel/trace"},
	},
	"observe/spans": {
		ours: []string{"store", "informer", "controller", "internal/helpers/boundedmap",
			"internal/helpers/printable"},
		outside: []string{"go.opentelemetry.io/otel/"},
	},
	"observe/journal": {
		ours: []string{"store", "workqueue", "internal/helpers/callsite",
			"internal/helpers/objects", "internal/helpers/printable"},
		outside: []string{"sigs.k8s.io/structured-merge-diff/", "github.com/petermattis/goid"},
	},
	"observe/health": {
		ours: []string{"store", "reflector", "informer", "informer/served", "workqueue",
			"controller", "leaderelection", "shard", "observe/journal", "observe/sizes",
			"internal/helpers/hostheader", "internal/helpers/printable"},
	},
	"observe/operator": {
		ours: []string{"informer", "workqueue", "controller", "leaderelection",
			"leaderelection/resourcelock", "observe/health", "observe/metrics"},
		outside: []string{"github.com/prometheus/", "k8s.io/client-go/rest"},
	},
	// The program: main.go alone may import every package.
	"cmd/informerstack/cli": {
		ours: []string{"internal/helpers/printable"},
		outside: []string{"github.com/spf13/cobra", "github.com/spf13/pflag",
			"golang.org/x/term"},
	},
	"cmd/informerstack/cli/clitest": {
		ours:    []string{"cmd/informerstack/cli"},
		outside: []string{"github.com/spf13/cobra", "github.com/stretchr/testify/"},
	},
	"cmd/informerstack/realserver": {ours: []string{"cmd/informerstack/cli"}},
	"cmd/informerstack/serve": {
		ours: []string{"cmd/informerstack/cli", "cmd/informerstack/realserver",
			"cmd/informerstack/run/cluster"},
		outside: []string{"github.com/spf13/cobra", "github.com/spf13/pflag"},
	},
	"cmd/informerstack/swap": {
		ours:    []string{"cmd/informerstack/cli", "internal/tools/swap"},
		outside: []string{"github.com/spf13/cobra", "github.com/spf13/pflag"},
	},
	"cmd/informerstack/devtools": {
		ours: []string{"cmd/informerstack/cli", "observe/health",
			"internal/helpers/printable"},
		outside: []string{"github.com/spf13/cobra"},
	},
	"cmd/informerstack/replay": {
		ours: []string{"cmd/informerstack/cli", "cmd/informerstack/devtools",
			"cmd/informerstack/lab", "observe/health", "internal/helpers/linktoken",
			"internal/helpers/printable"},
		outside: []string{"github.com/spf13/cobra"},
	},
	"cmd/informerstack/run/cluster": {
		ours: []string{"cmd/informerstack/cli", "apitest", "apitest/schemas", "store"},
		outside: []string{"github.com/spf13/pflag", "k8s.io/client-go/discovery",
			"k8s.io/client-go/dynamic", "k8s.io/client-go/kubernetes/scheme",
			"k8s.io/client-go/rest", "k8s.io/client-go/tools/clientcmd"},
	},
	"cmd/informerstack/run/hops": {
		ours: []string{"cmd/informerstack/cli", "apitest", "store", "observe/trace",
			"internal/helpers/printable"},
	},
	"cmd/informerstack/run/configmaps": {
		ours:    []string{"apitest", "store", "controller"},
		outside: []string{"k8s.io/api/", "k8s.io/client-go/rest"},
	},
	"cmd/informerstack/run": {
		ours: []string{
			"apitest", "client",
			"cmd/informerstack/cli", "cmd/informerstack/lab", "cmd/informerstack/realserver",
			"cmd/informerstack/replay",
			"cmd/informerstack/run/cluster", "cmd/informerstack/run/configmaps",
			"cmd/informerstack/run/hops",
			"store", "deltafifo", "reflector", "reflector/wire", "informer", "workqueue",
			"controller", "leaderelection", "leaderelection/resourcelock", "shard",
			"observe/health", "observe/journal", "observe/metrics", "observe/trace",
			"internal/helpers/linktoken", "internal/helpers/printable",
		},
		outside: []string{
			"github.com/go-logr/logr", "github.com/prometheus/", "github.com/spf13/cobra",
			"github.com/spf13/pflag", "k8s.io/api/", "k8s.io/client-go/dynamic",
			"k8s.io/client-go/kubernetes/scheme", "k8s.io/client-go/rest",
			"k8s.io/client-go/tools/clientcmd",
		},
	},
	"cmd/informerstack/lab/export": {
		ours: []string{"cmd/informerstack/cli", "cmd/informerstack/lab",
			"cmd/informerstack/run", "internal/helpers/printable"},
		outside: []string{"github.com/spf13/cobra"},
	},
	"cmd/informerstack/lab": {
		ours: []string{
			"apitest", "store", "deltafifo", "reflector", "informer", "informer/namespaces",
			"informer/served", "workqueue", "controller", "leaderelection",
			"leaderelection/resourcelock", "observe/trace", "internal/helpers/hostheader",
			"internal/helpers/printable",
		},
		outside: []string{
			module, "k8s.io/client-go/rest", "github.com/yuin/goldmark", "golang.org/x/time/rate",
		},
	},
	"cmd/informerstack/lab/live": {
		ours: []string{
			"cmd/informerstack/lab", "cmd/informerstack/run/configmaps", "apitest", "store",
			"reflector", "reflector/wire", "informer", "workqueue", "controller", "observe/trace",
		},
		outside: []string{"github.com/go-logr/logr", "k8s.io/client-go/rest"},
	},

	"compat/adapt": {
		ours: []string{"store", "reflector", "informer", "workqueue",
			"leaderelection/resourcelock", "compat/cache", "compat/workqueue",
			"compat/internal/found", "compat/internal/provider", "compat/internal/setters",
			"observe/journal"},
		outside: []string{
			"k8s.io/client-go/tools/cache", "k8s.io/client-go/util/workqueue",
			"k8s.io/client-go/tools/leaderelection/resourcelock",
		},
	},
	"compat/cache": {
		ours: []string{"store", "deltafifo", "reflector", "reflector/outage", "reflector/wire",
			"informer", "internal/helpers/callsite", "internal/helpers/done",
			"internal/helpers/objects", "observe/journal",
			"compat/internal/found", "compat/internal/setters", "compat/decoding"},
		outside: []string{
			"k8s.io/client-go/features", "k8s.io/client-go/rest",
			"k8s.io/client-go/util/consistencydetector",
		},
	},
	"compat/devtools": {ours: []string{"store", "informer", "workqueue", "leaderelection",
		"observe/health", "observe/journal", "internal/helpers/linktoken",
		"internal/helpers/printable", "compat/internal/found"}},
	// Nothing that depends on rest.
	"compat/decoding": {
		ours: []string{"internal/decode", "internal/readahead"},
		outside: []string{"github.com/go-json-experiment/json/jsontext",
			"google.golang.org/protobuf/encoding/protowire"},
	},
	"compat/internal/found": {ours: []string{"workqueue", "observe/journal",
		"internal/helpers/printable"}},
	"compat/internal/provider": {ours: []string{"workqueue"}},
	"compat/internal/setters":  {ours: []string{"store", "reflector"}},
	"compat/requests":          {ours: []string{"compat/internal/found"}},
	"compat/cache/synctrack":   {},
	"compat/cache/testing":     {outside: []string{"k8s.io/api/"}},
	"compat/leaderelection": {
		ours: []string{"leaderelection", "compat/leaderelection/resourcelock",
			"compat/internal/found"},
		outside: []string{"k8s.io/client-go/kubernetes", "k8s.io/api/"},
	},
	"compat/leaderelection/resourcelock": {
		ours: []string{"leaderelection/resourcelock"},
		outside: []string{"k8s.io/client-go/kubernetes/typed/", "k8s.io/client-go/rest",
			"k8s.io/api/"},
	},
	"compat/watch": {ours: []string{"compat/cache", "internal/helpers/done"}},
	"compat/workqueue": {ours: []string{"workqueue", "internal/helpers/callsite",
		"observe/journal", "compat/internal/found", "compat/internal/provider"}},
}

func TestImports_FollowThePipeline(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range tree(t) {
		rule, ok := rules[f.folder()]
		if f.isTest() || isAbove(f.folder()) {
			continue
		}
		assert.True(t, ok, "rules does not name %s", f.folder())
		seen[f.folder()] = true
		for _, path := range f.imports() {
			assert.True(t, rule.allows(path), "%s must not import %s", f.path, path)
		}
	}
	for folder := range rules {
		assert.True(t, seen[folder], "rules names %s, which has no Go file", folder)
	}
}

// isAbove reports whether a folder may import every package: it is a tool, or the program, or in a
// module of its own. No other package may import it, because no rule names it.
func isAbove(folder string) bool {
	return folder == "." || folder == "cmd/informerstack" ||
		slices.ContainsFunc([]string{"internal/tools/", "e2e/", "realserver/", "compat/example/",
			"cmd/informerstack/lab/browser/"}, func(above string) bool {
			return strings.HasPrefix(folder+"/", above)
		})
}

// The README names the packages that import client-go's rest, in order.
func TestImports_OfRest(t *testing.T) {
	importers := map[string]bool{}
	for _, f := range tree(t) {
		library := !f.isTest() && !isAbove(f.folder()) &&
			!strings.HasPrefix(f.folder(), "compat/") && !strings.HasPrefix(f.folder(), "cmd/")
		if library && slices.Contains(f.imports(), "k8s.io/client-go/rest") {
			importers[f.folder()] = true
		}
	}
	sentence := "The importers of `rest` are `" +
		strings.Join(slices.Sorted(maps.Keys(importers)), "`, `") + "`, and the laboratory."
	readme := strings.Join(strings.Fields(documents(t)["README.md"]), " ")
	assert.Contains(t, readme, sentence)
}

func (r rule) allows(path string) bool {
	if rest, ok := strings.CutPrefix(path, module+"/"); ok {
		return slices.Contains(r.ours, rest)
	}
	if !strings.Contains(strings.SplitN(path, "/", 2)[0], ".") {
		return true // the standard library
	}
	return slices.ContainsFunc(slices.Concat(machinery, r.outside), func(prefix string) bool {
		return strings.HasPrefix(path, prefix)
	})
}

const header = "// SPDX-License-Identifier: Apache-2.0\n"

func TestFiles_StartWithTheLicence(t *testing.T) {
	for _, f := range tree(t) {
		assert.True(t, strings.HasPrefix(f.text, header), "%s does not start with %q", f.path,
			strings.TrimSpace(header))
	}
}

const (
	maxFileLines     = 500
	maxFunctionLines = 70
)

// A file is one noun and a function fits a screen. Tests are tables and stories, and may be longer.
func TestFiles_FitTheReader(t *testing.T) {
	for _, f := range tree(t) {
		assert.NotContains(t, []string{"util.go", "utils.go", "helpers.go", "common.go"},
			f.path[strings.LastIndex(f.path, "/")+1:])
		if f.isTest() {
			continue
		}
		assert.LessOrEqual(t, f.lines(), maxFileLines, "%s is too long", f.path)
		for _, decl := range f.ast.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok {
				lines := f.fset.Position(fn.End()).Line - f.fset.Position(fn.Pos()).Line + 1
				assert.LessOrEqual(t, lines, maxFunctionLines, "%s: %s is too long", f.path,
					fn.Name.Name)
			}
		}
	}
}

func TestExportedNames_AreDocumented(t *testing.T) {
	for _, f := range tree(t) {
		if f.isTest() || f.ast.Name.Name == "main" {
			continue
		}
		for _, decl := range f.ast.Decls {
			for _, name := range undocumented(decl) {
				t.Errorf("%s: %s has no comment", f.path, name)
			}
		}
	}
}

// undocumented lists the exported names of a declaration that have no comment. A group's comment
// covers its constants.
func undocumented(decl ast.Decl) []string {
	var names []string
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		if decl.Name.IsExported() && decl.Doc == nil &&
			(decl.Recv == nil || ast.IsExported(receiver(decl))) {
			names = append(names, decl.Name.Name)
		}
	case *ast.GenDecl:
		for _, spec := range decl.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				if spec.Name.IsExported() && decl.Doc == nil && spec.Doc == nil {
					names = append(names, spec.Name.Name)
				}
			case *ast.ValueSpec:
				if spec.Names[0].IsExported() && decl.Doc == nil && spec.Doc == nil &&
					spec.Comment == nil {
					names = append(names, spec.Names[0].Name)
				}
			}
		}
	}
	return names
}

// A package has one comment, with its place in the pipeline and the order of reading.
func TestPackages_HaveOnePackageComment(t *testing.T) {
	comments := map[string]int{}
	for _, f := range tree(t) {
		if f.isTest() {
			continue
		}
		comments[f.folder()] += 0
		if f.ast.Doc != nil {
			comments[f.folder()]++
		}
	}
	for folder, n := range comments {
		assert.Equal(t, 1, n, "package comments in %s", folder)
	}
}

// Time in tests is fake: only tests in synctest bubbles, and the harness of a package that has such
// tests, may sleep. Benchmarks run in real time.
func TestTests_DoNotSleep(t *testing.T) {
	bubbles := map[string]bool{}
	for _, f := range tree(t) {
		if slices.Contains(f.imports(), "testing/synctest") {
			bubbles[f.folder()] = true
		}
	}
	for _, f := range tree(t) {
		if f.isTest() && !strings.HasSuffix(f.path, "_bench_test.go") &&
			strings.Contains(f.text, "time"+".Sleep(") {
			assert.True(t, bubbles[f.folder()], "%s sleeps outside a synctest bubble", f.path)
		}
	}
}

func TestNothing_IsLeftUndone(t *testing.T) {
	for _, f := range tree(t) {
		for _, word := range []string{"TO" + "DO", "FIX" + "ME", "XX" + "X"} {
			assert.NotContains(t, f.text, word, "%s", f.path)
		}
	}
}

const (
	maxColumns = 100
	tabColumns = 4
)

// A line fits 100 columns, so that two files, or a file and a chapter, can be read side by side.
func TestLines_Fit100Columns(t *testing.T) {
	for _, f := range tree(t) {
		if strings.Contains(f.path, "testdata/") {
			continue
		}
		unbreakable := f.unbreakableLines()
		for i, line := range strings.Split(f.text, "\n") {
			if n := columns(line); n > maxColumns && !unbreakable[i+1] {
				t.Errorf("%s:%d: %d columns, more than %d", f.path, i+1, n, maxColumns)
			}
		}
	}
}

// columns counts the runes of a line, a tab as four.
func columns(line string) int {
	return utf8.RuneCountInString(line) + (tabColumns-1)*strings.Count(line, "\t")
}

// unbreakableLines are those that only another text would make shorter: a raw string literal
// reaches beyond the limit, or the whole line is a comment of one word, such as a URL.
func (f goFile) unbreakableLines() map[int]bool {
	unbreakable := map[int]bool{}
	lines := strings.Split(f.text, "\n")
	ast.Inspect(f.ast, func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING || lit.Value[0] != '`' {
			return true
		}
		first, last := f.position(lit.Pos()).Line, f.position(lit.End())
		for line := first; line < last.Line; line++ {
			unbreakable[line] = true
		}
		if columns(lines[last.Line-1][:last.Column-1]) > maxColumns {
			unbreakable[last.Line] = true
		}
		return true
	})
	for i, line := range lines {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "// "); ok &&
			!strings.Contains(text, " ") {
			unbreakable[i+1] = true
		}
	}
	return unbreakable
}
