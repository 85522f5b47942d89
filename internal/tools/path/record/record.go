// SPDX-License-Identifier: Apache-2.0

// Package record notes which functions run while one change passes through the packages.
//
// Package path rewrites a copy of their source: each function calls Enter when it begins and Run
// before each statement, and each use of a mutex is reported to Lock or Unlock. Without the
// rewritten source nothing calls this package, and a Trace is empty.
package record

import (
	"bytes"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// FileVariable names an environment variable. The test of this package writes its traces to the
// file that it names, or writes nothing if it is not set.
const FileVariable = "PATH_TRACES"

// Trace lists the goroutines that ran between Start and Stop, in the order of their first calls.
type Trace []*Goroutine

// Goroutine is the part of a Trace that one goroutine ran.
type Goroutine struct {
	Bottom string // its outermost function
	Waited string // its innermost function when it began to run
	Visits []*Visit
}

// Visit is a function that ran. Functions that had been called before Start come first, outermost
// first; the others follow in the order of their first call.
type Visit struct {
	Function string
	Caller   string   // the next function outward, or ""
	Via      string   // the interface method of the call, or ""
	Held     []string // the mutexes that its goroutine held when it was called
	Taken    []string // the mutexes that it locked itself
	Literal  bool     // only a function literal in it was called

	ran bool
}

// goroutine is the state of a running goroutine.
type goroutine struct {
	stack []*Visit // the calls that have not returned
	held  []string // the mutexes, in the order of locking
	via   string   // the interface method that is being called
	trace *Goroutine
}

var (
	mu         sync.Mutex
	goroutines = map[int]*goroutine{}
	trace      Trace
	started    bool
)

// Start begins a Trace.
func Start() {
	mu.Lock()
	defer mu.Unlock()
	started, trace = true, nil
	for _, g := range goroutines {
		g.trace = nil
	}
}

// Stop ends the Trace and returns it. It returns nil if no Trace was begun.
func Stop() Trace {
	mu.Lock()
	defer mu.Unlock()
	started = false
	stopped := trace
	trace = nil
	for _, g := range stopped {
		g.Visits = slices.DeleteFunc(g.Visits, func(v *Visit) bool { return !v.ran })
	}
	return stopped
}

// Enter notes a call of function, or of a literal in it. It returns a function that notes the end.
func Enter(function string, literal bool) (exit func()) {
	mu.Lock()
	defer mu.Unlock()
	g := current()
	call := &Visit{Function: function, Held: slices.Clone(g.held), Literal: literal}
	if len(g.stack) > 0 {
		g.join()
		call.Caller = g.caller()
	}
	if method(g.via) == method(function) {
		call.Via = g.via
	}
	g.via = ""
	g.stack = append(g.stack, call)
	g.ran(call)
	return func() {
		mu.Lock()
		defer mu.Unlock()
		g.ran(call)
		g.stack = g.stack[:len(g.stack)-1]
	}
}

// Run notes that the innermost function begins a statement.
func Run() {
	mu.Lock()
	defer mu.Unlock()
	g := current()
	g.via = ""
	g.ran(g.stack[len(g.stack)-1])
}

// Lock notes that a mutex was locked.
func Lock(mutex string) {
	mu.Lock()
	defer mu.Unlock()
	g := current()
	g.held = append(g.held, mutex)
	call := g.stack[len(g.stack)-1]
	call.Taken = appendNew(call.Taken, mutex)
	g.ran(call)
}

// Unlock notes that a mutex is about to be unlocked.
func Unlock(mutex string) {
	mu.Lock()
	defer mu.Unlock()
	g := current()
	for i, held := range slices.Backward(g.held) {
		if held == mutex {
			g.held = slices.Delete(g.held, i, i+1)
			return
		}
	}
}

// Via notes that a method of the interface value v is about to be called, and returns v.
func Via[T any](method string, v T) T {
	mu.Lock()
	defer mu.Unlock()
	current().via = method
	return v
}

// caller is the function that makes a call now. A literal is passed over until its function has
// returned: it is called for that function.
func (g *goroutine) caller() string {
	top := g.stack[len(g.stack)-1]
	outer := g.stack[:len(g.stack)-1]
	same := func(v *Visit) bool { return v.Function == top.Function }
	if top.Literal && slices.ContainsFunc(outer, same) {
		return top.Caller
	}
	return top.Function
}

// join adds the goroutine to the trace, with the calls that have not returned.
func (g *goroutine) join() {
	if !started || g.trace != nil {
		return
	}
	top := g.stack[len(g.stack)-1]
	g.trace = &Goroutine{Bottom: g.stack[0].Function, Waited: top.Function}
	trace = append(trace, g.trace)
	for _, call := range g.stack {
		g.visit(call)
	}
}

// ran notes in the trace that call runs.
func (g *goroutine) ran(call *Visit) {
	if !started {
		return
	}
	g.join()
	v := g.visit(call)
	v.ran = true
	v.Literal = v.Literal && call.Literal
	for _, mutex := range call.Taken {
		v.Taken = appendNew(v.Taken, mutex)
	}
}

// visit returns the visit of call's function: the first call, or a new one.
func (g *goroutine) visit(call *Visit) *Visit {
	same := func(v *Visit) bool { return v.Function == call.Function }
	if i := slices.IndexFunc(g.trace.Visits, same); i >= 0 {
		return g.trace.Visits[i]
	}
	first := *call
	first.Taken = slices.Clone(call.Taken)
	g.trace.Visits = append(g.trace.Visits, &first)
	return &first
}

// current returns the calling goroutine. Its number is only in the text of its stack.
func current() *goroutine {
	var buffer [64]byte
	text := buffer[:runtime.Stack(buffer[:], false)]
	number, _, _ := bytes.Cut(bytes.TrimPrefix(text, []byte("goroutine ")), []byte(" "))
	id, err := strconv.Atoi(string(number))
	if err != nil {
		panic(err)
	}
	g, ok := goroutines[id]
	if !ok {
		g = &goroutine{}
		goroutines[id] = g
	}
	return g
}

func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// method returns the last part of a function's name.
func method(function string) string { return function[strings.LastIndex(function, ".")+1:] }
