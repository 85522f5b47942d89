// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"example.com/informerstack/compat/cache"
	"example.com/informerstack/informer"
)

// If one handler is added twice, it gets each call twice, and each registration is removed alone.
func TestHandlers_OneAddedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t)
		i, other := cache.NewSharedInformer(
			source,
			&v1.Pod{},
			0,
		), cache.NewSharedInformer(source, &v1.Pod{}, 0)
		count := func() int {
			return len(i.(interface{ Status() informer.Status }).Status().Handlers)
		}
		var seen log
		handler := seen.handler()
		first, err := i.AddEventHandler(handler)
		require.NoError(t, err)
		second, err := i.AddEventHandler(handler)
		require.NoError(t, err)
		require.Equal(t, 2, count())
		require.NoError(t, other.RemoveEventHandler(first), "not its own: nothing to do")
		require.Equal(t, 2, count())

		defer run(i)()
		synctest.Wait()
		source.Add(pod("a", 0))
		synctest.Wait()
		require.Equal(t, []string{"add a@1 initial=false", "add a@1 initial=false"}, seen.take())

		require.NoError(t, i.RemoveEventHandler(first))
		require.NoError(t, i.RemoveEventHandler(first))
		require.Equal(t, 1, count())
		source.Add(pod("b", 0))
		synctest.Wait()
		require.Equal(t, []string{"add b@2 initial=false"}, seen.take())

		require.NoError(t, i.RemoveEventHandler(second))
		require.Zero(t, count())
	})
}

// Hundreds of handlers are added and removed while objects change and the informer stops. Each gets
// consistent calls: an object is added before it is updated or deleted. No goroutine stays behind.
func TestHandlers_ComeAndGoByTheHundred(t *testing.T) {
	source := newSource(t)
	i := cache.NewSharedInformer(source, &v1.Pod{}, 0)
	ctx, cancel := context.WithCancel(t.Context())
	var running, adders sync.WaitGroup
	running.Go(func() { i.RunWithContext(ctx) })
	for worker := range 20 {
		adders.Go(func() {
			random := rand.New(rand.NewPCG(uint64(worker), 5))
			var mine []cache.ResourceEventHandlerRegistration
			for {
				if len(mine) > 0 && random.IntN(2) == 0 {
					last := mine[len(mine)-1]
					mine = mine[:len(mine)-1]
					assert.NoError(t, i.RemoveEventHandler(last))
					continue
				}
				registration, err := i.AddEventHandler(trueStory(t))
				if err != nil {
					assert.ErrorContains(t, err, "stopped already")
					return
				}
				mine = append(mine, registration)
			}
		})
	}
	random := rand.New(rand.NewPCG(0, 6))
	for range 2000 {
		p := pod(fmt.Sprint("p", random.IntN(10)), 0)
		if _, exists, _ := i.GetStore().Get(p); exists && random.IntN(2) == 0 {
			source.Delete(p)
		} else {
			source.Modify(p)
		}
	}
	cancel()
	adders.Wait()
	running.Wait()
	require.True(t, i.IsStopped())
}

// trueStory returns a handler that checks that its calls are consistent.
func trueStory(t *testing.T) cache.ResourceEventHandler {
	known := map[string]bool{}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			assert.False(t, known[obj.(*v1.Pod).Name], "added twice")
			known[obj.(*v1.Pod).Name] = true
		},
		UpdateFunc: func(_, obj any) {
			assert.True(t, known[obj.(*v1.Pod).Name], "updated before it was added")
		},
		DeleteFunc: func(obj any) {
			key, err := cache.DeletionHandlingObjectToName(obj)
			assert.NoError(t, err)
			delete(known, key.Name)
		},
	}
}

// typedLog is a typed handler that notes its calls.
func typedLog(seen *log) cache.TypedResourceEventHandler[*v1.Pod] {
	return cache.TypedResourceEventHandlerDetailedFuncs[*v1.Pod]{
		AddFunc: func(p *v1.Pod, initial bool) {
			seen.note("add %s initial=%v", p.Name, initial)
		},
		UpdateFunc: func(oldPod, p *v1.Pod) { seen.note("update %s to %s", oldPod.Name, p.Name) },
		DeleteFunc: func(d cache.DeletedObject[*v1.Pod]) { seen.note("delete %s", d.GetKey()) },
	}
}

// A nil function is not called.
func TestTypedDetailedFuncs(t *testing.T) {
	var seen log
	for _, handler := range []cache.TypedResourceEventHandler[*v1.Pod]{
		typedLog(&seen), cache.TypedResourceEventHandlerDetailedFuncs[*v1.Pod]{},
	} {
		handler.OnAdd(pod("a", 1), true)
		handler.OnUpdate(pod("a", 1), pod("a", 2))
		handler.OnDelete(cache.DeletedObject[*v1.Pod]{OptionalObj: pod("a", 2)})
	}
	require.Equal(t, []string{"add a initial=true", "update a to a", "delete ns/a"}, seen.take())
}

// The typed filter turns some updates into adds or deletes, as the untyped one does.
func TestTypedFiltering(t *testing.T) {
	in, out := podOnNode("a", 1, "in", ""), podOnNode("a", 1, "", "")
	var seen log
	handler := cache.TypedFilteringResourceEventHandler[*v1.Pod]{
		FilterFunc: func(p *v1.Pod) bool { return p == nil || p.Spec.NodeName != "" },
		Handler:    typedLog(&seen),
	}
	handler.OnAdd(out, true)
	handler.OnAdd(in, true)
	handler.OnUpdate(in, in)
	handler.OnUpdate(in, out)
	handler.OnUpdate(out, out)
	handler.OnUpdate(out, in)
	handler.OnDelete(cache.DeletedObject[*v1.Pod]{OptionalObj: out})
	handler.OnDelete(cache.DeletedObject[*v1.Pod]{OptionalObj: in})
	handler.OnDelete(cache.DeletedObject[*v1.Pod]{
		FinalStateUnknown: &cache.DeletedFinalStateUnknown{Key: "ns/b"},
	})
	require.Equal(t, []string{
		"add a initial=true", "update a to a", "delete ns/a", "add a initial=false", "delete ns/a",
		"delete ns/b",
	}, seen.take())
}
