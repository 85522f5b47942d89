// SPDX-License-Identifier: Apache-2.0

// Package callsite names things after their place in the program: a reflector after the line that
// made it, or that runs its informer, a queue after the function that made it or that adds to it.
//
//	program -> compat/cache, informer -> reflector -> [callsite]
//	program -> compat/workqueue -> observe/journal -> [callsite]
//
// Read callsite.go; then go test ./reflector ./compat/cache. No goroutines, no locks.
package callsite

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

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
// of the names, such as "main.NewController".
func Function(without ...string) string {
	name, _ := caller(without)
	return name
}

// Place returns Function and its line, as stacks have it: "main.NewController main.go:48".
func Place(without ...string) string {
	name, frame := caller(without)
	return fmt.Sprintf("%s %s:%d", name, filepath.Base(frame.File), frame.Line)
}

func caller(without []string) (name string, frame runtime.Frame) {
	var pcs [16]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	for {
		frame, more := frames.Next()
		name := frame.Function[strings.LastIndex(frame.Function, "/")+1:]
		if of, _, _ := strings.Cut(name, "."); !slices.Contains(without, of) || !more {
			return name, frame
		}
	}
}
