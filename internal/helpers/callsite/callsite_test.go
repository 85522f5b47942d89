// SPDX-License-Identifier: Apache-2.0

package callsite

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// A stack has the same function each time, also after another one with the same inner calls, other
// names, or more stacks than are known.
func TestFunction_IsThatOfItsStack(t *testing.T) {
	inner := func(without ...string) string { return Function(without...) }
	outer := func(without ...string) string { return inner(without...) }
	for range 3 {
		require.Equal(t, "callsite.TestFunction_IsThatOfItsStack.func1", inner("other"))
		require.Equal(t, "callsite.TestFunction_IsThatOfItsStack.func1", outer("other"))
		require.Equal(t, "callsite.TestFunction_IsThatOfItsStack.func3",
			func() string { return Function() }())
		require.Equal(t, "testing.tRunner", outer("callsite"))
		require.Equal(t, "testing.tRunner", deep(8))
		require.Equal(t, "callsite.deep", deep(20), "the last one that is seen")
		require.Equal(t, "runtime.goexit", outer("callsite", "testing"))
	}
	var found []string
	for _, without := range []string{"other", "callsite"} {
		found = append(found, Function(without)) // one stack
	}
	require.Equal(t, []string{"callsite.TestFunction_IsThatOfItsStack", "testing.tRunner"}, found)
	known.Lock()
	for i := range maxKnown - len(known.near) {
		known.near[innermost{pcs: [4]uintptr{uintptr(i + 1)}}] = site{"x", "x", 1}
	}
	for i := range maxKnown - len(known.sites) {
		known.sites[stack{pcs: [16]uintptr{uintptr(i + 1)}}] = site{}
	}
	known.Unlock()
	require.Equal(t, "testing.tRunner", Function("callsite"))
	require.Equal(t, "callsite.TestFunction_IsThatOfItsStack", Function())
	require.LessOrEqual(t, len(known.near), 3)
	deep(8)
	require.LessOrEqual(t, len(known.sites), 2)
}

// deep looks for a function beyond its own calls.
func deep(calls int) string {
	if calls > 0 {
		return deep(calls - 1)
	}
	return Function("callsite")
}

// The line is that of the caller, not of the first caller.
func TestPlace_HasTheLine(t *testing.T) {
	places := []string{Place(), Place(),
		Place()}
	require.Equal(t, places[0], places[1])
	require.NotEqual(t, places[1], places[2])
	name, line, _ := strings.Cut(places[0], " ")
	require.Equal(t, "callsite.TestPlace_HasTheLine", name)
	require.Regexp(t, `^callsite_test\.go:\d+$`, line)
}

func TestFunction_OfManyGoroutines(t *testing.T) {
	var running sync.WaitGroup
	for i := range 8 {
		running.Go(func() {
			for range 100 {
				require.Contains(t, Function(fmt.Sprint(i)), "callsite.TestFunction_OfMany")
			}
		})
	}
	running.Wait()
}

func BenchmarkFunction(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		Function("callsite")
	}
}
