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

An API server sends one MODIFIED event of a pod. The informer holds the pod, everything is synced and
idle. This page lists every function that runs until everything is idle again: one table for each
goroutine, from the bytes of the watch to the worker. [The story](` +
	`../../internal/tools/path/record/story_test.go)
has one informer with an index by namespace, one handler, and one controller with one worker.

The tables show the usual way: the server sends protobuf, informer.New reads it, and a DeltaFIFO is
between the reflector and the store. This is that way beside the others, with a DeltaFIFO / with a
RealFIFO:

`

const reading = `
- A function counts once, and so does each function literal. Calls are those that begin because of the
  change. Locks are acquisitions of a mutex; a wait for a condition ends with one.
- Other modules do not count: JSON and protobuf decoders, contexts, the network. In the third row,
  client-go reads the answer, as in a program that brings its own ListWatch.
- Of client-go, the packages cache, synctrack and workqueue count. It has no controller: there, the
  worker is the program's, and does not count.

## How to read the tables

A function is indented below its caller. "calls" is 0 for a loop that has waited for the change. A
function that is called again in the same goroutine is listed once. "locks" names the mutexes that it
locks, and "via" the interface through which it is called.

` + "`go test ./internal/tools/path` derives this page from a run of instrumented source and\n" +
	"compares the two; `make update` rewrites the page.\n"

// ways are the rows of the first table. Each has a scenario for each queue.
var ways = []struct {
	title, scenario, without string
	atOnce                   bool // before a timer fires
}{
	{title: "from the socket, protobuf", scenario: "socket protobuf"},
	{title: "from the socket, JSON", scenario: "socket JSON"},
	{title: "from a ListerWatcher", scenario: "watch"},
	{title: "of these, before a timer fires", scenario: "watch", atOnce: true},
	{
		title: "of these, without the controller", scenario: "watch", without: "controller",
		atOnce: true,
	},
	{title: "client-go, from a ListerWatcher", scenario: "client-go"},
}

// page renders the changes of all scenarios as Markdown.
func page(changes map[string]record.Change, functions map[string]function) string {
	var b strings.Builder
	b.WriteString(introduction)
	b.WriteString("| | functions | calls | files | locks | mutexes | goroutines |\n")
	b.WriteString("|---|---|---|---|---|---|---|\n")
	for _, way := range ways {
		var numbers [2][]int
		for i, queue := range []string{" DeltaFIFO", " RealFIFO"} {
			change := changes[way.scenario+queue]
			if way.atOnce {
				change.Later = nil
			}
			numbers[i] = count(change, functions, way.without).numbers()
		}
		fmt.Fprintf(&b, "| %s |", way.title)
		for i, n := range numbers[0] {
			fmt.Fprintf(&b, " %d / %d |", n, numbers[1][i])
		}
		b.WriteString("\n")
	}
	b.WriteString(reading)

	usual := changes["socket protobuf DeltaFIFO"]
	for i, g := range usual.AtOnce {
		fmt.Fprintf(&b, "\n## Goroutine %d: `%s`\n\n", i+1, path.Base(g.Visits[0].Function))
		fmt.Fprintf(&b, "It began in `%s` and waits for changes in `%s`.\n\n",
			path.Base(g.Bottom), path.Base(g.Waited))
		b.WriteString(steps(g, functions))
	}
	b.WriteString("\n## When nothing more arrives\n\nTimers that the change has set run this in " +
		"goroutine 3: see [freshness.md](../freshness.md).\n\n")
	for _, g := range usual.Later {
		b.WriteString(steps(g, functions))
	}
	b.WriteString("\n## The other ways\n\n")
	b.WriteString("| with | these run too | these do not run |\n|---|---|---|\n")
	without := count(usual, functions, "").called
	for _, other := range [][2]string{
		{"JSON", "socket JSON DeltaFIFO"}, {"a RealFIFO", "socket protobuf RealFIFO"},
	} {
		with := count(changes[other[1]], functions, "").called
		fmt.Fprintf(&b, "| %s | %s | %s |\n",
			other[0], code(with.less(without)), code(without.less(with)))
	}
	b.WriteString(totals(usual, functions))
	return b.String()
}

// steps renders the functions that a goroutine runs.
func steps(g *record.Goroutine, functions map[string]function) string {
	var b strings.Builder
	b.WriteString("| step | function | calls | file | what it does |\n|---|---|---|---|---|\n")
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
		fmt.Fprintf(&b, "| %d | %s`%s` | %d | [%s](../../%s/%s) | %s |\n", step+1,
			strings.TrimPrefix(indent+" ", " "), short, v.Calls, f.file, f.folder, f.file,
			does(v, functions))
	}
	return b.String()
}

// does describes a function by the first sentence of its comment.
func does(v *record.Visit, functions map[string]function) string {
	sentence := functions[v.Function].doc
	if sentence == "" {
		sentence = functions[v.Via].doc // of the interface's method, or ""
	}
	if v.Via != "" {
		sentence = fmt.Sprintf("via `%s`: %s", interfaceOf(v.Via), sentence)
	}
	if len(v.Locks) > 0 {
		sentence = fmt.Sprintf("locks %s: %s", code(v.Locks), sentence)
	}
	return strings.ReplaceAll(sentence, "|", "\\|")
}

// interfaceOf is the interface that declares a method.
func interfaceOf(method string) string {
	return path.Base(method[:strings.LastIndex(method, ".")])
}

// code quotes names as code, with the name of the package instead of its folder. If a name is
// repeated, it adds how often it occurs.
func code(names []string) string {
	times := map[string]int{}
	var quoted []string
	for _, name := range names {
		times[name]++
	}
	for _, name := range names {
		switch n := times[name]; {
		case n == 1:
			quoted = append(quoted, "`"+path.Base(name)+"`")
		case n > 1:
			quoted = append(quoted, fmt.Sprintf("`%s` %d times", path.Base(name), n))
		}
		times[name] = 0
	}
	return strings.Join(quoted, ", ")
}

// names is a set of names.
type names map[string]bool

func (n names) sorted() []string { return slices.Sorted(maps.Keys(n)) }

// less returns the names that are not in other.
func (n names) less(other names) []string {
	return slices.DeleteFunc(n.sorted(), func(name string) bool { return other[name] })
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

// counts is how much code the path of a change has.
type counts struct {
	called, files, interfaces, mutexes names
	locks                              []string // the mutexes, each time that one is locked
	calls, goroutines                  int
}

// count counts the code of a change. It leaves out the folder without, if it is not "".
func count(change record.Change, functions map[string]function, without string) counts {
	c := counts{
		called: names{}, files: names{}, interfaces: names{}, mutexes: names{},
		goroutines: len(change.AtOnce),
	}
	for _, g := range slices.Concat(change.AtOnce, change.Later) {
		for _, v := range g.Visits {
			f := functions[v.Function]
			if f.folder == without {
				continue
			}
			c.called[v.Function], c.files[f.folder+":"+f.file] = true, true
			c.calls += v.Calls
			if v.Via != "" {
				c.interfaces[interfaceOf(v.Via)] = true
			}
			c.locks = append(c.locks, v.Locks...)
			for _, mutex := range v.Locks {
				c.mutexes[mutex] = true
			}
		}
	}
	return c
}

// numbers are the columns of the first table.
func (c counts) numbers() []int {
	return []int{len(c.called), c.calls, len(c.files), len(c.locks), len(c.mutexes), c.goroutines}
}

// totals renders how much code the path has in each package.
func totals(change record.Change, functions map[string]function) string {
	c := count(change, functions, "")
	var b strings.Builder
	b.WriteString("\n## Totals\n\n| package | files | functions |\n|---|---|---|\n")
	folders := names{}
	for name := range c.called {
		folders[functions[name].folder] = true
	}
	for _, folder := range folders.sorted() {
		fmt.Fprintf(&b, "| %s | %d | %d |\n",
			folder, c.files.under(folder+":"), c.called.under(folder+"."))
	}
	fmt.Fprintf(&b, "\n- %d functions in %d files.\n", len(c.called), len(c.files))
	fmt.Fprintf(&b, "- %d calls.\n", c.calls)
	fmt.Fprintf(&b, "- %d interfaces: %s.\n", len(c.interfaces), code(c.interfaces.sorted()))
	fmt.Fprintf(&b, "- %d locks of %d mutexes: %s.\n", len(c.locks), len(c.mutexes), code(c.locks))
	fmt.Fprintf(&b, "- %d hand-overs from one goroutine to the next.\n", c.goroutines-1)
	return b.String()
}
