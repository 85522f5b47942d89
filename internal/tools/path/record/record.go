// SPDX-License-Identifier: Apache-2.0

// Package record notes which functions run while one change passes through the packages.
//
// Package path rewrites a copy of their source: each function calls Enter when it begins and Run
// before each statement, and each use of a mutex is reported to Lock, Unlock or Wait. Without the
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

// FileVariable names an environment variable. The tests of this package write their traces to the
// file that it names, or write nothing if it is not set.
const FileVariable = "PATH_TRACES"

// Change is what one change makes run.
type Change struct {
	AtOnce Trace // until every goroutine waits
	Later  Trace // after that, because of a timer
}

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
	Calls    int      // that began after Start
	Locks    []string // the mutexes that it locked itself, each time that it did

	ran bool
}

// call is a call that has not returned.
type call struct{ function, caller, via string }

// goroutine is the state of a running goroutine.
type goroutine struct {
	stack []call
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

// Enter notes a call of function. It returns a function that notes the end.
func Enter(function string) (exit func()) {
	mu.Lock()
	defer mu.Unlock()
	g := current()
	c := call{function: function}
	if len(g.stack) > 0 {
		g.join()
		c.caller = g.stack[len(g.stack)-1].function
	}
	if method(g.via) == method(function) {
		c.via = g.via
	}
	g.via = ""
	g.stack = append(g.stack, c)
	if v := g.ran(); v != nil {
		v.Calls++
	}
	return func() {
		mu.Lock()
		defer mu.Unlock()
		g.ran()
		g.stack = g.stack[:len(g.stack)-1]
	}
}

// Run notes that the innermost function begins a statement.
func Run() {
	mu.Lock()
	defer mu.Unlock()
	g := current()
	g.via = ""
	g.ran()
}

// Lock notes that a mutex was locked.
func Lock(mutex string) {
	mu.Lock()
	defer mu.Unlock()
	g := current()
	g.held = append(g.held, mutex)
	g.locked(mutex)
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

// Wait notes that a wait for a condition has ended: the mutex that was locked last is locked again.
func Wait() {
	mu.Lock()
	defer mu.Unlock()
	g := current()
	g.locked(g.held[len(g.held)-1])
}

// Via notes that a method of the interface value v is about to be called, and returns v.
func Via[T any](method string, v T) T {
	mu.Lock()
	defer mu.Unlock()
	current().via = method
	return v
}

// join adds the goroutine to the trace, with the calls that have not returned.
func (g *goroutine) join() {
	if !started || g.trace != nil {
		return
	}
	top := g.stack[len(g.stack)-1]
	g.trace = &Goroutine{Bottom: g.stack[0].function, Waited: top.function}
	trace = append(trace, g.trace)
	for _, c := range g.stack {
		g.visit(c)
	}
}

// ran notes that the innermost function runs. It returns its visit, or nil without a Trace.
func (g *goroutine) ran() *Visit {
	if !started {
		return nil
	}
	g.join()
	v := g.visit(g.stack[len(g.stack)-1])
	v.ran = true
	return v
}

func (g *goroutine) locked(mutex string) {
	if v := g.ran(); v != nil {
		v.Locks = append(v.Locks, mutex)
	}
}

// visit returns the visit of c's function: the first one, or a new one.
func (g *goroutine) visit(c call) *Visit {
	for _, v := range g.trace.Visits {
		if v.Function == c.function {
			return v
		}
	}
	v := &Visit{Function: c.function, Caller: c.caller, Via: c.via}
	g.trace.Visits = append(g.trace.Visits, v)
	return v
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

// method returns the last part of a function's name.
func method(function string) string { return function[strings.LastIndex(function, ".")+1:] }
