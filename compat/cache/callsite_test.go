// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	clientgo "k8s.io/client-go/tools/cache"

	"example.com/informerstack/compat/cache"
)

var unused = &cache.ListWatch{}

// The line directives place what follows them in files of a program, shop, and of the client-go
// that it was swapped with.

//line /home/me/src/shop/main.go:10
func ofProgram() *cache.Reflector { return cache.NewReflector(unused, nil, nil, 0) }

//line /home/me/src/shop/main.go:20
func ofSwappedProgram() *cache.Reflector { return handsOn() }

func runs(i cache.SharedInformer, stopCh chan struct{})   { i.Run(stopCh) }
func starts(i cache.SharedInformer, stopCh chan struct{}) { go i.Run(stopCh) }

func ofClientGo() *clientgo.Reflector { return clientgo.NewReflector(unused, nil, nil, 0) }

//line /home/me/src/shop/copy/client-go/tools/cache/reflector.go:30
func handsOn() *cache.Reflector {
	_, r := cache.NewNamespaceKeyedIndexerAndReflector(unused, nil, 0)
	return r
}

//line callsite_test.go:50

// A reflector is called after the program's line, also where client-go's name for the function is
// between them, and an informer's after the line that runs it. client-go means to do so, and finds
// its own line unless it is vendored.
func TestDifference_ReflectorIsNamedAfterTheProgram(t *testing.T) {
	require.Equal(t, "shop/main.go:10", ofProgram().Name())
	require.Equal(t, "shop/main.go:20", ofSwappedProgram().Name())
	require.Regexp(t, `k8s\.io/client-go@.*/tools/cache/reflector\.go:\d+$`, ofClientGo().Name())

	for name, run := range map[string]func(cache.SharedInformer, chan struct{}){
		"shop/main.go:22": runs, "shop/main.go:23": starts,
	} {
		synctest.Test(t, func(t *testing.T) {
			var seen log
			i := cache.NewSharedInformer(unlistable(t), &v1.Pod{}, 0)
			require.NoError(t, i.SetWatchErrorHandler(
				func(r *cache.Reflector, _ error) { seen.note("%s", r.Name()) },
			))
			stopCh := make(chan struct{})
			time.AfterFunc(time.Millisecond, func() { close(stopCh) })
			run(i, stopCh)
			time.Sleep(time.Second)
			require.Equal(t, []string{name}, seen.take())
		})
	}
}
