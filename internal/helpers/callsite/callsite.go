// SPDX-License-Identifier: Apache-2.0

// Package callsite names things after their place in the program: a reflector after the line that
// made it, or that runs its informer, a queue after the function that made it or that adds to it.
//
//	program -> compat/cache, informer -> reflector -> [callsite]
//	program -> compat/workqueue -> observe/journal -> [callsite]
//
// Read callsite.go; then go test ./internal/helpers/callsite ./reflector ./compat/cache.
// Goroutines: none. Locking: one mutex, of the stacks with a known function.
package callsite

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/naming"
)

// makers are the files that make reflectors for others. Those of client-go's tools/cache are here
// for a swapped program: there client-go's functions call this module's.
var makers = func() []string {
	_, file, _, _ := runtime.Caller(0)
	root := strings.TrimSuffix(file, "internal/helpers/callsite/callsite.go")
	return []string{
		file, root + "reflector/reflector.go", root + "reflector/options.go", root + "informer/",
		root + "compat/cache/", root + "compat/adapt/", "client-go/tools/cache/",
		"runtime/asm_", // where goroutines begin, as a build with -trimpath spells it
	}
}()

// Name returns the file and line of the first caller outside of the packages that make reflectors,
// or of the go statement that started them. It returns "" if it finds neither.
//
// Source: tools/cache/reflector.go NewReflectorWithOptions
func Name() string {
	if name := naming.GetNameFromCallsite(makers...); name != "????" {
		return name
	}
	return ""
}

// Function returns the first function on the way to the caller that belongs to no package with one
// of the names, two at most, such as "main.NewController".
func Function(without ...string) string {
	return caller(without).name
}

// Place returns Function and its line, as stacks have it: "main.NewController main.go:48".
func Place(without ...string) string {
	s := caller(without)
	return fmt.Sprintf("%s %s:%d", s.name, filepath.Base(s.file), s.line)
}

// stack is what a site depends on: mostly the innermost calls alone, which are found four times as
// fast as all of them.
type stack struct {
	pcs     [16]uintptr // 0 beyond its end
	without [2]string
}

type innermost struct {
	pcs     [4]uintptr
	without [2]string
}

// site is a line of a function.
type site struct {
	name, file string
	line       int
}

// known has the sites that were found, because a worker asks for the same one with each key. The
// site of an innermost has no name if it depends on further calls.
var known = struct {
	sync.Mutex
	sites map[stack]site
	near  map[innermost]site
}{sites: map[stack]site{}, near: map[innermost]site{}}

// maxKnown bounds both maps of known. A program has few stacks on which it calls a queue.
const maxKnown = 1024

func caller(without []string) site {
	var near innermost
	runtime.Callers(3, near.pcs[:])
	copy(near.without[:], without)
	known.Lock()
	found, ok := known.near[near]
	known.Unlock()
	if !ok {
		found = findNear(near, without)
	}
	if found.name != "" {
		return found
	}
	s := stack{without: near.without}
	runtime.Callers(3, s.pcs[:])
	known.Lock()
	found, ok = known.sites[s]
	known.Unlock()
	if !ok {
		found = findFar(s, without)
	}
	return found
}

// findNear and findFar are functions of their own because what they look up escapes.
func findNear(near innermost, without []string) site {
	pcs := near.pcs
	found, isLast := find(pcs[:], without)
	if isLast {
		found = site{}
	}
	known.Lock()
	defer known.Unlock()
	put(known.near, near, found)
	return found
}

func findFar(s stack, without []string) site {
	pcs := s.pcs
	found, _ := find(pcs[:], without)
	known.Lock()
	defer known.Unlock()
	put(known.sites, s, found)
	return found
}

func put[K comparable](sites map[K]site, key K, found site) {
	if len(sites) >= maxKnown {
		clear(sites)
	}
	sites[key] = found
}

// find returns the first site in a package without one of the names, or the last one.
func find(pcs []uintptr, without []string) (found site, isLast bool) {
	frames := runtime.CallersFrames(pcs)
	for {
		frame, more := frames.Next()
		name := frame.Function[strings.LastIndex(frame.Function, "/")+1:]
		of, _, _ := strings.Cut(name, ".")
		isOther := !slices.Contains(without, of)
		if isOther || !more {
			return site{name, frame.File, frame.Line}, !isOther
		}
	}
}
