// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/mod/modfile"
)

// runtimeQueue and runtimeController have the shape of controller-runtime's files.
const (
	runtimeQueue = `package priorityqueue

import "time"

type AddOpts struct {
	After       time.Duration
	RateLimited bool
	Priority    *int
}

type PriorityQueue[T comparable] interface {
	workqueue.TypedRateLimitingInterface[T]
	AddWithOpts(o AddOpts, Items ...T)
	GetWithPriority() (item T, priority int, shutdown bool)
}

type Opt[T comparable] func()

func New[T comparable](name string, o ...Opt[T]) PriorityQueue[T] {
	pq := &priorityqueue[T]{}
	return pq
}

type priorityqueue[T comparable] struct {
	lock    sync.Mutex
	items   map[T]*item[T]
	ready   bTree[*item[T]]
	waiting bTree[*item[T]]
}

func (w *priorityqueue[T]) lockedFlushAddBuffer() {}

type item[T comparable] struct {
	Key          T
	AddedCounter uint64
	Priority     int
	ReadyAt      *time.Time
}
`
	runtimeController = `package controller

func (c *Controller[request]) reconcileHandler(ctx context.Context, req request) {
	result, err := c.Reconcile(ctx, req)
	_, _ = result, err
}
`
)

// withRuntime returns what addPriorityQueue copies of a controller-runtime, and its log. change may
// change the files or the module.
func withRuntime(t *testing.T, change func(files map[string]string, m *module)) (*folder, string) {
	t.Helper()
	dir := t.TempDir()
	m := &module{Path: controllerRuntime, Version: "v0.25.2", Dir: filepath.Join(dir, "cached")}
	files := map[string]string{queueFile: runtimeQueue, reconcileFile: runtimeController,
		"go.mod": "module " + controllerRuntime + "\n", ".git/config": "", "doc.go": "package c\n"}
	change(files, m)
	for name, text := range files {
		path := filepath.Join(dir, "cached", filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o444))
	}
	require.NoError(t, os.Symlink(t.TempDir(), filepath.Join(dir, "cached", "elsewhere")))
	f := &folder{new: filepath.Join(dir, "new"), path: filepath.Join(dir, "out")}
	require.NoError(t, os.MkdirAll(filepath.Join(f.new, copyName), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(f.new, copyName, "go.mod"),
		[]byte("module "+clientGoPath+"\n"), 0o644))
	var log strings.Builder
	f.addPriorityQueue(t.Context(), &program{root: filepath.Join(dir, "program"),
		modules: map[string]*module{m.Path: m}}, &log)
	return f, log.String()
}

// The copy differs in two places, and the workspace uses it.
func TestPriorityQueue_ChangesTwoPlaces(t *testing.T) {
	f, log := withRuntime(t, func(map[string]string, *module) {})
	assert.Empty(t, log)
	to := filepath.Join(f.new, runtimeCopyName)
	text := func(name string) string {
		text, err := os.ReadFile(filepath.Join(to, filepath.FromSlash(name)))
		require.NoError(t, err)
		return string(text)
	}
	assert.Equal(t, "package c\n", text("doc.go"))
	assert.False(t, exists(filepath.Join(to, ".git")))
	assert.False(t, exists(filepath.Join(to, "elsewhere")))
	const imports = "\n\nimport \"example.com/informerstack/compat/adapt\""
	assert.Equal(t, strings.Replace(strings.Replace(runtimeController,
		"package controller", "package controller"+imports, 1), "\t_, _",
		"\tadapt.Returned(err)\n\t_, _", 1), text(reconcileFile))
	queue := text(queueFile)
	assert.Equal(t, strings.Replace(strings.Replace(runtimeQueue, "\n\nimport \"time\"",
		imports+"\nimport \"example.com/informerstack/observe/journal\"\n\nimport \"time\"", 1),
		"return pq\n", shownQueue+"\n", 1), queue)
	_, err := parser.ParseFile(token.NewFileSet(), "", queue, parser.SkipObjectResolution)
	require.NoError(t, err)

	p := &program{modules: map[string]*module{}, work: workOf(f.path, &modfile.File{})}
	w, err := newWorkspace(p, filepath.Join("..", "..", ".."), f)
	require.NoError(t, err)
	require.Len(t, w.work.replace, 1)
	assert.Equal(t, controllerRuntime, w.work.replace[0].Old.Path)
	assert.Equal(t, to, w.work.replace[0].New.Path)
}

// A controller-runtime of another shape is not copied, and one line of the log says so.
func TestPriorityQueue_UnknownShapes(t *testing.T) {
	for name, test := range map[string]struct{ file, old, new, want string }{
		"no items":       {queueFile, "items ", "byKey ", `priorityqueue.items is ""`},
		"another lock":   {queueFile, "sync.Mutex", "sync.RWMutex", `is "sync.RWMutex" and not`},
		"no delay":       {queueFile, "After  ", "Wait  ", `AddOpts.After is ""`},
		"another delay":  {queueFile, "time.Duration", "int", `AddOpts.After is "int"`},
		"a method less":  {queueFile, "\tGetWith", "\tPopWith", `PriorityQueue.GetWithPriority is`},
		"another embed":  {queueFile, "workqueue.Typed", "Typed", `LimitingInterface is "Typed`},
		"another buffer": {queueFile, "lockedFlush", "flush", `lockedFlushAddBuffer is ""`},
		"another result": {queueFile, "Opt[T]) P", "Opt[T]) *P", `New is "func(name string,`},
		"two results": {queueFile, "\treturn pq", "\tif b {\n\t\treturn pq\n\t}\n\treturn pq",
			"New does not return pq"},
		"another value":   {queueFile, "return pq", "return q", "New does not return pq"},
		"another pq":      {queueFile, "pq := &p", "pq := &q", "New does not return pq"},
		"a name is taken": {queueFile, "type Opt", "type adapt", "has the name adapt itself"},
		"another is":      {queueFile, "type Opt", "type journal", "has the name journal itself"},
		"no Go":           {queueFile, "package", "packet", "expected 'package'"},
		"no call":         {reconcileFile, "result, err", "res, err", "found 0 times result, err"},
		"two calls": {reconcileFile, "\t_, _", "\tresult, err := c.Reconcile(ctx, req)\n\t_, _",
			"found 2 times"},
		"the name": {reconcileFile, "req request", "adapt request", "has the name adapt itself"},
	} {
		t.Run(name, func(t *testing.T) {
			f, log := withRuntime(t, func(files map[string]string, _ *module) {
				text := strings.Replace(files[test.file], test.old, test.new, 1)
				require.NotEqual(t, files[test.file], text)
				files[test.file] = text
			})
			assert.Contains(t, log, "devtools do not show the priority queues of "+
				controllerRuntime+"@v0.25.2: its "+test.file+" has an unknown shape: ")
			assert.Contains(t, log, test.want)
			assert.Equal(t, 1, strings.Count(log, "\n"))
			assert.False(t, exists(filepath.Join(f.new, runtimeCopyName)))
		})
	}
}

// The program's own source is not copied, nor is an old version, which lacks the file.
func TestPriorityQueue_OtherModules(t *testing.T) {
	for want, change := range map[string]func(files map[string]string, m *module){
		"it is the program's own source": func(_ map[string]string, m *module) { m.Main = true },
		"no such file": func(files map[string]string, _ *module) {
			delete(files, queueFile)
		},
		"": func(_ map[string]string, m *module) { m.Path = "sigs.k8s.io/other" },
	} {
		f, log := withRuntime(t, change)
		assert.Contains(t, log, want)
		assert.Equal(t, min(1, len(want)), strings.Count(log, "\n"))
		assert.False(t, exists(filepath.Join(f.new, runtimeCopyName)))
	}
}
