// SPDX-License-Identifier: Apache-2.0

package path

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"example.com/informerstack/internal/tools/path/record"
)

const introduction = `# The path of one change

The informer is synced, everything is idle, and the API server sends one MODIFIED event of an object
that the informer holds. This page lists every function of the core that runs until everything is
idle again, in order: one table for each goroutine, from the bytes of the watch to the worker. There
is one informer of informer.New with a DeltaFIFO and an index, one handler, and one controller with
one worker, as in [story_test.go](../../internal/tools/path/record/story_test.go).

A function is indented below its caller. "locks" names the mutexes that it locks, and "via" the
interface through which it is called. A function that runs again in the same goroutine is listed
once. Functions of other modules, such as the JSON decoder, and of the program, such as reconcile,
are missing.

Package wire, with internal/readahead and internal/decode, has the tables before ` + "`consume`" + `, see
[wire.md](../wire.md). With a ListerWatcher of client-go, client-go decodes the event instead, and the
path begins at ` + "`consume`" + `.

` + "`go test ./internal/tools/path` derives this page from a run of instrumented source and\n" +
	"compares the two; `make update` rewrites the page.\n"

// wire are the folders of package wire and its parts.
var wire = []string{"reflector/wire", "internal/readahead", "internal/decode"}

// isOfWire reports whether the function name is in one of these folders.
func isOfWire(name string) bool {
	return slices.ContainsFunc(wire, func(folder string) bool {
		return strings.HasPrefix(name, folder+".")
	})
}

// page renders the trace as Markdown.
func page(trace record.Trace, functions map[string]function) string {
	var b strings.Builder
	b.WriteString(introduction)
	for i, g := range trace {
		fmt.Fprintf(&b, "\n## Goroutine %d: `%s`\n\n", i+1, path.Base(g.Visits[0].Function))
		fmt.Fprintf(&b, "It began in `%s` and waits for changes in `%s`.\n\n",
			path.Base(g.Bottom), path.Base(g.Waited))
		b.WriteString("| step | function | file | what it does |\n|---|---|---|---|\n")
		depths := map[string]int{}
		for step, v := range g.Visits {
			depth, listed := depths[v.Caller]
			if listed {
				depth++
			}
			depths[v.Function] = depth
			f := functions[v.Function]
			_, short, _ := strings.Cut(v.Function, ".")
			indent := strings.Repeat("·", depth)
			fmt.Fprintf(&b, "| %d | %s`%s` | [%s](../../%s/%s) | %s |\n", step+1,
				strings.TrimPrefix(indent+" ", " "), short, f.file, f.folder, f.file,
				does(v, functions))
		}
	}
	b.WriteString(totals(trace, functions))
	return b.String()
}

// does describes a function by the first sentence of its comment.
func does(v *record.Visit, functions map[string]function) string {
	sentence := functions[v.Function].doc
	if sentence == "" {
		sentence = functions[v.Via].doc // of the interface's method, or ""
	}
	if v.Literal {
		sentence = "a function literal in it"
	}
	if v.Via != "" {
		sentence = fmt.Sprintf("via `%s`: %s", interfaceOf(v.Via), sentence)
	}
	if len(v.Taken) > 0 {
		sentence = fmt.Sprintf("locks %s: %s", code(v.Taken), sentence)
	}
	return strings.ReplaceAll(sentence, "|", "\\|")
}

// interfaceOf is the interface that declares a method.
func interfaceOf(method string) string {
	return path.Base(method[:strings.LastIndex(method, ".")])
}

// code quotes names as code, with the name of the package instead of its folder.
func code(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = "`" + path.Base(name) + "`"
	}
	return strings.Join(quoted, ", ")
}

// names is a set of names.
type names map[string]bool

func (n names) sorted() []string { return slices.Sorted(maps.Keys(n)) }

// totals renders how much code the path has. A function that runs in two goroutines counts once.
func totals(trace record.Trace, functions map[string]function) string {
	called, files, single, interfaces, locks := names{}, names{}, names{}, names{}, names{}
	others, otherFiles := names{}, names{} // without package wire
	for _, g := range trace {
		for _, v := range g.Visits {
			f := functions[v.Function]
			called[v.Function], files[f.folder+":"+f.file] = true, true
			if !isOfWire(v.Function) && !isOfWire(g.Bottom) {
				others[v.Function], otherFiles[f.folder+":"+f.file] = true, true
			}
			if f.statements == 1 {
				single[v.Function] = true
			}
			if v.Via != "" {
				interfaces[interfaceOf(v.Via)] = true
			}
			for _, mutex := range slices.Concat(v.Held, v.Taken) {
				locks[mutex] = true
			}
		}
	}
	var b strings.Builder
	b.WriteString("\n## Totals\n\n| package | files | functions |\n|---|---|---|\n")
	folders := names{}
	for name := range called {
		folders[functions[name].folder] = true
	}
	for _, folder := range folders.sorted() {
		fmt.Fprintf(&b, "| %s | %d | %d |\n",
			folder, files.under(folder+":"), called.under(folder+"."))
	}
	fmt.Fprintf(&b, "| with wire | %d | %d |\n", len(files), len(called))
	fmt.Fprintf(&b, "| from `consume` on | %d | %d |\n\n", len(otherFiles), len(others))
	fmt.Fprintf(&b, "- %d of the %d functions are a single statement.\n", len(single), len(called))
	fmt.Fprintf(&b, "- %d interfaces: %s.\n", len(interfaces), code(interfaces.sorted()))
	fmt.Fprintf(&b, "- %d mutexes: %s.\n", len(locks), code(locks.sorted()))
	fmt.Fprintf(&b, "- %d hand-overs from one goroutine to the next.\n", len(trace)-1)
	return b.String()
}

// under counts the names that begin with prefix.
func (n names) under(prefix string) int {
	count := 0
	for name := range n {
		if strings.HasPrefix(name, prefix) {
			count++
		}
	}
	return count
}
