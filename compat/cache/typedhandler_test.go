// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"example.com/informerstack/compat/cache"
)

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
