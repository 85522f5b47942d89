// SPDX-License-Identifier: Apache-2.0

package namespaces

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/internal/helpers/listwatch"
	"example.com/informerstack/store"
)

func clusterAbove(count int) func(*Options) {
	return func(o *Options) { o.ClusterAbove = count }
}

// minutes lets time pass, with the bookmarks that a server sends.
func (w *world) minutes(count int) {
	w.t.Helper()
	for range count {
		w.after(time.Minute)
		w.server.bookmark()
		w.settle()
	}
}

// fromCluster checks which namespaces are watched as the whole cluster, and N6.
func (w *world) fromCluster(namespaces ...string) {
	w.t.Helper()
	w.settle()
	var got []string
	for _, s := range w.set.Namespaces() {
		alone := w.server.openWatches(s.Namespace)
		if s.FromCluster {
			got = append(got, s.Namespace)
			assert.Zero(w.t, alone, "watches of %s", s.Namespace)
		} else {
			assert.LessOrEqual(w.t, alone, 1, "watches of %s", s.Namespace)
		}
		assert.Equal(w.t, 1, w.server.spaces[s.Namespace].lists, "lists of %s", s.Namespace)
	}
	assert.Equal(w.t, namespaces, got)
	assert.Equal(w.t, len(namespaces), w.set.ClusterStatus().Namespaces)
	assert.Equal(w.t, min(len(namespaces), 1), w.server.openWatches(metav1.NamespaceAll))
	assert.Zero(w.t, w.server.spaces[metav1.NamespaceAll].lists)
}

// More namespaces than ClusterAbove have one watch. No namespace is listed for it, and objects of
// other namespaces are dropped.
func TestStory_OneWatchOfTheCluster(t *testing.T) {
	story(t, func(w *world) {
		w.create("a/x")
		w.start()
		w.handlerSaw("add a/x@1 (initial)")
		w.add("c")
		w.minutes(1)
		w.fromCluster("a", "b", "c")
		w.update("a/x")
		w.create("z/foreign")
		w.handlerSaw("update a/x@2")
		w.fail(metav1.NamespaceAll, errForbidden) // the right is taken away
		w.update("a/x")
		w.handlerSaw("update a/x@4")
		w.fromCluster()
	}, in("a", "b"), clusterAbove(2))
}

// Namespaces that come later join the watch of the cluster when there are enough of them. When few
// are left, it ends.
func TestStory_NamespacesJoinTheWatchOfTheCluster(t *testing.T) {
	story(t, func(w *world) {
		w.create("a/x")
		w.create("b/y")
		w.start()
		w.handlerSaw("add a/x@1 (initial)", "add b/y@2 (initial)")
		w.minutes(1)
		w.fromCluster()
		w.add("c", "d")
		w.minutes(1)
		w.fromCluster("a", "b", "c", "d")
		w.update("a/x")
		w.create("z/foreign")
		w.delete("b/y")
		w.handlerSaw("update a/x@3", "delete b/y")
		w.add("z", "e")
		w.handlerSaw("add z/foreign@4")
		w.minutes(3)
		w.fromCluster("a", "b", "c", "d")
		w.update("z/foreign")
		w.add("f")
		w.minutes(1)
		w.handlerSaw("update z/foreign@6")
		w.fromCluster("a", "b", "c", "d", "e", "f", "z")
		w.remove("z", "a")
		w.handlerSaw("tombstone z/foreign@6", "tombstone a/x@3")
		w.update("a/x")
		w.add("a")
		w.handlerSaw("add a/x@7")
		w.minutes(1)
		w.holds()
		assert.NoError(w.t, w.informer.Health().Fresh(time.Now(), time.Minute+time.Second))
		w.remove("a", "b", "c", "d", "e")
		w.handlerSaw("tombstone a/x@7")
		w.minutes(1)
		w.fromCluster()
		assert.Equal(w.t, ClusterStatus{}, w.set.ClusterStatus())
	}, in("a", "b"), clusterAbove(2))
}

// Without the right to watch the cluster, each namespace is watched alone. The right is tried
// again, later and later.
func TestStory_TheClusterIsForbidden(t *testing.T) {
	story(t, func(w *world) {
		w.create("a/x")
		w.server.fail(metav1.NamespaceAll, errForbidden)
		w.start()
		w.handlerSaw("add a/x@1 (initial)")
		w.minutes(1)
		w.fromCluster()
		status := w.set.ClusterStatus()
		assert.ErrorContains(w.t, status.LastError, "whole cluster")
		assert.ErrorContains(w.t, status.LastError, "no role")
		assert.NoError(w.t, w.informer.Err())
		assert.Equal(w.t, 1, w.server.spaces["a"].opened, "watches of a namespace")
		w.minutes(500)
		assert.InDelta(w.t, 55, time.Until(w.set.ClusterStatus().RetryAfter).Minutes(), 60)
		w.heal(metav1.NamespaceAll)
		w.minutes(75)
		w.fromCluster("a", "b", "c")
		w.fail(metav1.NamespaceAll, errForbidden) // the right is taken away, and the watch ends
		w.update("a/x")
		w.after(lookPeriod) // the branch may have been opened just now
		w.handlerSaw("update a/x@2")
		w.fromCluster()
		assert.ErrorContains(w.t, w.set.ClusterStatus().LastError, "no role")
	}, in("a", "b", "c"), clusterAbove(2))
}

// A watch of the cluster that cannot be opened again, or is silent, makes no namespace old for
// long.
func TestStory_TheWatchOfTheClusterIsSick(t *testing.T) {
	for name, c := range map[string]struct {
		trouble func(w *world)
		within  time.Duration
	}{
		"sick": {func(w *world) { w.fail(metav1.NamespaceAll, errSick) }, 40 * time.Second},
		"silent when it is opened": {func(w *world) {
			w.server.hang(metav1.NamespaceAll)
			w.server.cut(metav1.NamespaceAll, false)
		}, 40 * time.Second},
		"silent": {func(w *world) { w.server.hang(metav1.NamespaceAll) }, 160 * time.Second},
		"expired": {func(w *world) {
			w.server.put("a/x")
			w.server.cut(metav1.NamespaceAll, true)
		}, 10 * time.Second},
		"empty": {func(w *world) {
			w.server.cut(metav1.NamespaceAll, false)
		}, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, func(w *world) {
				w.create("a/x")
				w.start()
				w.minutes(2)
				w.fromCluster("a", "b", "c")
				w.take()
				c.trouble(w)
				w.update("a/x")
				w.after(c.within)
				assert.Contains(w.t, w.take(), fmt.Sprintf("update a/x@%d", w.server.rv))
				w.minutes(1)
				w.after(10 * time.Second)
				assert.NoError(w.t, w.informer.Health().Fresh(time.Now(), 20*time.Second))
				w.heal(metav1.NamespaceAll)
				w.minutes(4)
				w.fromCluster("a", "b", "c")
				w.holds()
			}, in("a", "b", "c"), clusterAbove(2))
		})
	}
}

// While the watch of the cluster fails, errors name it and the namespace.
func TestStory_ErrorsNameTheWatchOfTheCluster(t *testing.T) {
	story(t, func(w *world) {
		w.create("a/x")
		w.start()
		w.minutes(2)
		w.fail(metav1.NamespaceAll, errSick)
		w.after(5 * time.Second)
		err := w.informer.Err()
		assert.ErrorContains(w.t, err, `namespace "a"`)
		assert.ErrorContains(w.t, err, "watch of the whole cluster")
		assert.ErrorContains(w.t, err, "sick")
		w.after(time.Minute)
		assert.NoError(w.t, w.informer.Err())
	}, in("a", "b", "c"), clusterAbove(2))
}

// Namespaces are added and removed while the watch of the cluster is being opened.
func TestStory_ASetThatChangesInTheMiddleOfASwitch(t *testing.T) {
	story(t, func(w *world) {
		for _, key := range []string{"a/x", "b/x", "c/x", "d/x"} {
			w.create(key)
		}
		w.server.hang(metav1.NamespaceAll)
		w.start()
		w.take()
		w.after(20 * time.Second)
		w.fromCluster()
		w.remove("b", "c")
		w.add("c", "d", "e")
		w.settle()
		w.update("c/x")
		w.update("a/x")
		w.heal(metav1.NamespaceAll)
		w.handlerSaw("tombstone b/x@2", "tombstone c/x@3", "add c/x@3", "add d/x@4",
			"update c/x@5", "update a/x@6")
		w.server.spaces["c"].lists-- // it was added again
		w.after(10 * time.Second)
		w.fromCluster("a", "c", "d", "e")
		w.update("b/x")
		w.update("c/x")
		w.add("b")
		w.handlerSaw("update c/x@8", "add b/x@7")
		w.holds()
	}, in("a", "b", "c"), clusterAbove(2))
}

// A namespace that takes no event delays no other. It gets all later, from a watch of its own.
func TestStory_ASlowNamespaceLeavesTheCluster(t *testing.T) {
	var transforming chan struct{}
	story(t, func(w *world) {
		w.create("b/x")
		w.start()
		w.handlerSaw("add b/x@1 (initial)")
		w.minutes(2)
		w.fromCluster("a", "b", "c")
		w.create("a/x")
		w.after(5 * time.Second) // a pause
		w.create("z/foreign")
		w.after(5 * time.Second) // a is not current: see checkClaims
		for range 2 * branchLen {
			w.create("a/x")
		}
		w.create("b/y")
		w.handlerSaw(fmt.Sprintf("add b/y@%d", w.server.rv))
		w.fromCluster("b", "c")
		close(transforming)
		w.after(3 * time.Second)
		assert.Contains(w.t, w.take(), fmt.Sprintf("update a/x@%d", w.server.rv-1))
		w.fromCluster("b", "c")
		w.holds()
	}, in("a", "b", "c"), func(o *Options) {
		transforming = make(chan struct{}) // in the bubble
		o.ClusterAbove = 1
		o.Reflector.Transform = func(obj any) (any, error) {
			if name, _ := store.ObjectToName(obj); name.Namespace == "a" {
				<-transforming
			}
			return obj, nil
		}
	})
}

// A change that the store refuses concerns its namespace: it lists again, and opens its branch
// again, which has all later changes or ends.
func TestStory_ALostChangeOfABranch(t *testing.T) {
	story(t, func(w *world) {
		w.create("a/x")
		w.start()
		w.minutes(2)
		w.take()
		w.store.refuse("a", 1)
		w.update("a/x")
		assert.True(w.t, w.status("a").CurrentAsOf.IsZero())
		assert.False(w.t, w.status("b").CurrentAsOf.IsZero())
		w.after(10 * time.Second)
		w.handlerSaw("update a/x@2")
		w.update("a/x")
		w.handlerSaw("update a/x@3")
		assert.Equal(w.t, 2, w.server.spaces["a"].lists)
		assert.Equal(w.t, 1, w.server.spaces["b"].lists)
		assert.True(w.t, w.status("a").FromCluster)
		w.holds()
		w.server.hang("a") // so its list takes long
		w.store.refuse("a", 1)
		w.update("a/x")
		w.after(5 * time.Second)
		for range 2 * branchLen {
			w.create("a/x")
		}
		w.handlerSaw()
		assert.False(w.t, w.status("a").FromCluster)
		w.heal("a")
		w.handlerSaw(fmt.Sprintf("update a/x@%d", w.server.rv))
		w.update("a/x")
		w.handlerSaw(fmt.Sprintf("update a/x@%d", w.server.rv))
	}, in("a", "b", "c"), clusterAbove(2))
}

// While the cluster is busy with other namespaces, Health is current, and one namespace does not
// ask for itself.
func TestStory_ABusyClusterIsCurrent(t *testing.T) {
	story(t, func(w *world) {
		w.create("a/x")
		w.start()
		w.minutes(2)
		for range 300 {
			w.create("z/foreign")
			w.after(200 * time.Millisecond)
			if w.server.rv%50 == 0 {
				w.update("a/x")
			}
			require.NoError(w.t, w.informer.Health().Fresh(time.Now(), 70*time.Second))
		}
		require.NoError(w.t, w.informer.Health().Fresh(time.Now(), 12*time.Second))
		for _, namespace := range []string{"a", "b", "c"} {
			assert.Zero(w.t, w.server.spaces[namespace].questions)
		}
		assert.Less(w.t, w.server.spaces[metav1.NamespaceAll].questions, 12)
	}, in("a", "b", "c"), clusterAbove(2))
}

// A branch is opened without the server. So its opening is no contact, and what the watch of the
// whole cluster gets from the server is, even if it is nothing new.
func TestStory_ContactOfABranch(t *testing.T) {
	assert.True(t, listwatch.IsUnanswered(&branchWatch{}))
	story(t, func(w *world) {
		w.create("a/x")
		w.start()
		w.minutes(2)
		w.fromCluster("a", "b", "c")
		bookmark := time.Now()
		w.after(30 * time.Second)
		for _, s := range w.set.Namespaces() {
			assert.Equal(w.t, bookmark, s.Reflector.LastContact)
		}
	}, in("a", "b", "c"), clusterAbove(2))
}

// The right to watch the whole cluster is enough for the switch. Without the right to list it,
// Health is not current while the cluster is never quiet.
func TestStory_TheClusterMayBeWatchedAndNotListed(t *testing.T) {
	story(t, func(w *world) {
		w.server.spaceLocked(metav1.NamespaceAll).noList = errForbidden
		w.create("a/x")
		w.start()
		w.minutes(2)
		w.fromCluster("a", "b", "c")
		busy := time.Now()
		for range 300 {
			w.create("z/foreign")
			w.after(200 * time.Millisecond)
			w.informer.Health()
		}
		w.fromCluster("a", "b", "c")
		require.NoError(w.t, w.informer.Err())
		assert.Less(w.t, w.informer.Health().CurrentAsOf.Sub(busy), 5*time.Second)
		w.after(5 * time.Second)
		w.create("z/foreign")
		w.after(5 * time.Second)
		require.NoError(w.t, w.informer.Health().Fresh(time.Now(), 10*time.Second))
	}, in("a", "b", "c"), clusterAbove(2))
}

// A namespace joins with a version that is older than that of the cluster's watch: what it has not
// seen is repeated, and before, it is not current.
func TestStory_AnOldNamespaceJoinsTheCluster(t *testing.T) {
	story(t, func(w *world) {
		w.create("a/x")
		w.start()
		w.minutes(2)
		w.add("d", "e")
		w.after(10 * time.Second)
		w.take()
		w.server.hang("d") // its watch is silent
		w.create("d/x")
		w.after(5 * time.Second) // a pause
		w.update("a/x")
		w.create("z/foreign")
		w.after(5 * time.Second)
		w.handlerSaw("update a/x@3")
		w.server.mute(metav1.NamespaceAll)
		w.add("f")
		w.after(15 * time.Second)
		assert.True(w.t, w.status("d").FromCluster)
		w.handlerSaw()
		w.heal(metav1.NamespaceAll)
		w.minutes(1)
		w.handlerSaw("add d/x@2")
		w.fromCluster("a", "b", "c", "d", "e", "f")
		w.heal("d")
		w.settle()
		w.holds()
	}, in("a", "b", "c"), clusterAbove(2))
}

// A member that asks for less than its branch has sent may have lost events on the way: it watches
// alone.
func TestFeed_OpensNoBranchBeforeItsEvents(t *testing.T) {
	for from, isOpened := range map[string]bool{"4": false, "": false, "5": true, "6": true} {
		m := newMember(newSet(nil, Options{ClusterAbove: 1}), "a")
		f := &feed{branches: map[string]*branch{
			"a": {member: m, isGranted: true, newest: "5", sent: "5"},
		}}
		w := f.openBranch(m, metav1.ListOptions{ResourceVersion: from})
		assert.Equal(t, isOpened, w != nil, from)
		assert.Equal(t, isOpened, f.branches["a"] != nil, from)
	}
}

// A watch of the cluster ends and is opened again, as each watch does. So does a branch.
func TestStory_WatchesOfTheClusterEnd(t *testing.T) {
	story(t, func(w *world) {
		w.create("a/x")
		w.start()
		w.take()
		for i := range 60 {
			w.minutes(1)
			if i%7 == 0 {
				w.server.cut(metav1.NamespaceAll, false)
			}
			rv := w.update("a/x")
			w.after(5 * time.Second)
			w.handlerSaw(fmt.Sprintf("update a/x@%d", rv))
		}
		w.fromCluster("a", "b", "c")
		for _, namespace := range []string{"a", "b", "c"} {
			assert.Equal(w.t, 1, w.server.spaces[namespace].opened)
		}
	}, in("a", "b", "c"), clusterAbove(2))
}

// take returns the calls since the last check.
func (w *world) take() []string {
	w.settle()
	w.handler.mu.Lock()
	defer w.handler.mu.Unlock()
	calls := w.handler.calls
	w.handler.calls = nil
	return calls
}
