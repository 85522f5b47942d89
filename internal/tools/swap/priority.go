// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/types"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Devtools see the priority queues of controller-runtime in a second copy, in which two files
// change. The constructor of a queue returns
//
//	adapt.ShowPriorityQueue[T, AddOpts](name, pq, …)
//
// in place of pq, with functions that read the queue under its lock. And behind
//
//	result, err := c.Reconcile(ctx, req)
//
// follows adapt.Returned(err).
const (
	controllerRuntime = "sigs.k8s.io/controller-runtime"
	runtimeCopyName   = "controller-runtime"
	queueFile         = "pkg/controller/priorityqueue/priorityqueue.go"
	reconcileFile     = "pkg/internal/controller/controller.go"
	adaptName         = "adapt"
)

// shownQueue is what the constructor returns.
const shownQueue = `return adapt.ShowPriorityQueue[T, AddOpts](name, pq, journal.Inside[T, AddOpts]{
		Options: func(o AddOpts) (time.Duration, bool) { return o.After, o.RateLimited },
		Look: func(
			processing []T, ready func(T, int) bool, waiting func(T, int, time.Time) bool,
		) (again []T, readyTotal, waitingTotal int) {
			pq.lock.Lock()
			defer pq.lock.Unlock()
			pq.lockedFlushAddBuffer()
			for _, key := range processing {
				if i, queued := pq.items[key]; queued && i.ReadyAt == nil {
					again = append(again, key)
				}
			}
			pq.ready.Ascend(func(i *item[T]) bool { return ready(i.Key, i.Priority) })
			pq.waiting.Ascend(func(i *item[T]) bool {
				return waiting(i.Key, i.Priority, *i.ReadyAt)
			})
			return again, pq.ready.Len(), pq.waiting.Len()
		},
	})`

// queueShape are the declarations that shownQueue needs, as go/types prints them.
var queueShape = map[string]string{
	"AddOpts.After":       "time.Duration",
	"AddOpts.RateLimited": "bool",

	"PriorityQueue.TypedRateLimitingInterface": "workqueue.TypedRateLimitingInterface[T]",
	"PriorityQueue.AddWithOpts":                "func(o AddOpts, Items ...T)",
	"PriorityQueue.GetWithPriority":            "func() (item T, priority int, shutdown bool)",

	"priorityqueue.lock":    "sync.Mutex",
	"priorityqueue.items":   "map[T]*item[T]",
	"priorityqueue.ready":   "bTree[*item[T]]",
	"priorityqueue.waiting": "bTree[*item[T]]",
	"lockedFlushAddBuffer":  "func()",

	"item.Key":      "T",
	"item.Priority": "int",
	"item.ReadyAt":  "*time.Time",

	"New": "func(name string, o ...Opt[T]) PriorityQueue[T]",
}

// addPriorityQueue copies the controller-runtime of the program with the changes, if the program
// has one. One of another shape stays as it is. The log says which.
func (f *folder) addPriorityQueue(ctx context.Context, p *program, log io.Writer) {
	m := p.modules[controllerRuntime]
	if m == nil {
		return
	}
	err := errors.New("it is the program's own source")
	if !m.Main {
		err = f.copyControllerRuntime(ctx, p, m)
	}
	if err != nil {
		_ = os.RemoveAll(filepath.Join(f.new, runtimeCopyName)) // nothing uses it
		fmt.Fprintf(log, "devtools do not show the priority queues of %s: %v\n", m, err)
	}
}

// copyControllerRuntime copies the module with the changes.
func (f *folder) copyControllerRuntime(ctx context.Context, p *program, m *module) error {
	dir, err := m.files(ctx)
	if err != nil {
		return err
	}
	changed := map[string][]byte{}
	for file, change := range map[string]func(text []byte) ([]byte, error){
		queueFile: withShownQueue, reconcileFile: withReturned,
	} {
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(file)))
		if err == nil {
			changed[file], err = change(text)
		}
		if err != nil {
			return fmt.Errorf("its %s has an unknown shape: %w", file, err)
		}
	}
	to := filepath.Join(f.new, runtimeCopyName)
	err = f.copyModule(p, dir, to, func(string) bool { return false })
	for file, text := range changed {
		if err == nil {
			err = os.WriteFile(filepath.Join(to, filepath.FromSlash(file)), text, 0o644)
		}
	}
	return err
}

// withShownQueue returns the file of the queue with the changed result of New.
func withShownQueue(text []byte) ([]byte, error) {
	s, err := parseFree(queueFile, text, adaptName, "journal")
	if err != nil {
		return nil, err
	}
	shape, create := shapeOf(s.file)
	for _, name := range slices.Sorted(maps.Keys(queueShape)) {
		if want := queueShape[name]; shape[name] != want {
			return nil, fmt.Errorf("%s is %q and not %q", name, shape[name], want)
		}
	}
	var returns []*ast.ReturnStmt
	ast.Inspect(create, func(n ast.Node) bool {
		if r, ok := n.(*ast.ReturnStmt); ok {
			returns = append(returns, r)
		}
		return true
	})
	if len(returns) != 1 || s.between(returns[0].Pos(), returns[0].End()) != "return pq" ||
		!strings.Contains(s.between(create.Pos(), create.End()), "\tpq := &priorityqueue[T]{") {
		return nil, errors.New("the body of New does not return pq")
	}
	return s.replaced(returns[0], shownQueue, "compat/"+adaptName, "observe/journal")
}

// shapeOf returns the types of fields and methods of the types of a file, by type and name, and
// those of its functions, by name; and the body of New.
func shapeOf(file *ast.File) (shape map[string]string, create *ast.BlockStmt) {
	shape = map[string]string{}
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			shape[decl.Name.Name] = types.ExprString(decl.Type)
			if decl.Name.Name == "New" {
				create = decl.Body
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				if t, ok := spec.(*ast.TypeSpec); ok {
					for name, text := range membersOf(t.Type) {
						shape[t.Name.Name+"."+name] = text
					}
				}
			}
		}
	}
	return shape, create
}

// membersOf returns the types of the fields of a struct, or of the methods of an interface. An
// embedded type has its own name.
func membersOf(t ast.Expr) map[string]string {
	var fields *ast.FieldList
	switch t := t.(type) {
	case *ast.StructType:
		fields = t.Fields
	case *ast.InterfaceType:
		fields = t.Methods
	default:
		return nil
	}
	members := map[string]string{}
	for _, field := range fields.List {
		text := types.ExprString(field.Type)
		for _, name := range field.Names {
			members[name.Name] = text
		}
		if len(field.Names) == 0 {
			name, _, _ := strings.Cut(text[strings.LastIndex(text, ".")+1:], "[")
			members[name] = text
		}
	}
	return members
}

// withReturned returns the file of the controller with the added call.
func withReturned(text []byte) ([]byte, error) {
	s, err := parseFree(reconcileFile, text, adaptName)
	if err != nil {
		return nil, err
	}
	const want = "result, err := c.Reconcile(ctx, req)"
	var found []ast.Node
	ast.Inspect(s.file, func(n ast.Node) bool {
		if a, ok := n.(*ast.AssignStmt); ok && s.between(a.Pos(), a.End()) == want {
			found = append(found, a)
		}
		return true
	})
	if len(found) != 1 {
		return nil, fmt.Errorf("found %d times %s", len(found), want)
	}
	return s.replaced(found[0], want+"\n\t"+adaptName+".Returned(err)", "compat/"+adaptName)
}
