// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"runtime"
	"strings"

	"k8s.io/apimachinery/pkg/util/naming"
)

// makers are the folders of files that make reflectors for others. That of client-go has, in a program that was swapped, the
// functions that hand calls on to these ones. The last is where goroutines begin, as a build with -trimpath spells it.
var makers = func() []string {
	_, file, _, _ := runtime.Caller(0)
	root := strings.TrimSuffix(file, "compat/cache/callsite.go")
	return []string{root + "reflector/", root + "informer/", root + "compat/cache/", root + "compat/adapt/", "client-go/tools/cache/", "runtime/asm_"}
}()

// callsite is the file and line of the program that made a reflector, or ran an informer: in the stack, or else the go
// statement. It is "" if neither is near.
//
// Source: tools/cache/reflector.go NewReflectorWithOptions
func callsite() string {
	if name := naming.GetNameFromCallsite(makers...); name != "????" {
		return name
	}
	return ""
}

// isHandedOn tells whether the function that asks, of that name, was called by the one of client-go: in a program that was
// swapped it does nothing else.
func isHandedOn(name string) bool {
	var caller [1]uintptr
	runtime.Callers(3, caller[:])
	frame, _ := runtime.CallersFrames(caller[:]).Next()
	return frame.Function == "k8s.io/client-go/tools/cache."+name
}
