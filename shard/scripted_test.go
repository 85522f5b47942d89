// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/informer"
)

// scripted is a server under the control of a test: it ignores selectors.
type scripted struct {
	mu      sync.Mutex
	list    func(o metav1.ListOptions) (runtime.Object, error)
	watches []*watch.RaceFreeFakeWatcher
	onWatch func(ctx context.Context, w *watch.RaceFreeFakeWatcher)
}

func (s *scripted) IsWatchListSemanticsUnSupported() bool { return true }

func (s *scripted) ListWithContext(
	_ context.Context, o metav1.ListOptions,
) (runtime.Object, error) {
	s.mu.Lock()
	list := s.list
	s.mu.Unlock()
	return list(o)
}

// lists sets what lists return from now on.
func (s *scripted) lists(list func(o metav1.ListOptions) (runtime.Object, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = list
}

func (s *scripted) WatchWithContext(
	ctx context.Context, o metav1.ListOptions,
) (watch.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := watch.NewRaceFreeFake()
	s.watches = append(s.watches, w)
	if s.onWatch != nil {
		s.onWatch(ctx, w)
	}
	return w, nil
}

// newestWatch is the watch that was opened last.
func (s *scripted) newestWatch() *watch.RaceFreeFakeWatcher {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watches[len(s.watches)-1]
}

// after lets time pass.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func versioned(key, version, uid string) *corev1.ConfigMap {
	m := configMap(key)
	m.ResourceVersion, m.UID = version, types.UID(uid)
	return m
}

func listOf(version string, items ...*corev1.ConfigMap) *corev1.ConfigMapList {
	l := &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: version}}
	for _, i := range items {
		l.Items = append(l.Items, *i)
	}
	return l
}

// deletesWhileItLists makes the server send deletes while a list of one item is under way.
func (s *scripted) deletesWhileItLists(item *corev1.ConfigMap, gone ...*corev1.ConfigMap) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onWatch = func(ctx context.Context, w *watch.RaceFreeFakeWatcher) {
		go func() {
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Second):
			}
			for _, m := range gone {
				w.Delete(m)
			}
		}()
	}
	s.list = func(metav1.ListOptions) (runtime.Object, error) {
		time.Sleep(3 * time.Second)
		return listOf("9", item), nil
	}
}

// scriptedWorld is an informer of a scripted server, and its shards.
type scriptedWorld struct {
	*scripted
	*Shards
	informer informer.SharedIndexInformer
}

// keys are those of the objects that are stored.
func (w *scriptedWorld) keys() []string { return w.informer.GetStore().ListKeys() }

// scriptedStory plays a script with an informer of a scripted server.
func scriptedStory(t *testing.T, by By, o informer.Options, script func(w *scriptedWorld)) {
	synctest.Test(t, func(t *testing.T) {
		quietLogs()
		server := &scripted{}
		server.lists(func(metav1.ListOptions) (runtime.Object, error) { return listOf("5"), nil })
		w := &scriptedWorld{scripted: server, Shards: newShards(t, 8)}
		w.informer = informer.NewSharedIndexInformer(server, &corev1.ConfigMap{}, w.Options(by, o))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); w.informer.Run(ctx) }()
		after(time.Second)
		script(w)
		cancel()
		<-done
		synctest.Wait()
	})
}

// A server sends a delete twice while a new shard is listed. The queue takes one of them, and the
// shard is stored.
func TestStory_ADeleteArrivesTwice(t *testing.T) {
	scriptedStory(t, ByNamespace, informer.Options{}, func(w *scriptedWorld) {
		shard := shardOf("ns", 8)
		gone := versioned("ns/a", "12", "u")
		w.deletesWhileItLists(versioned("ns/a", "7", "u"), gone, gone)
		w.caches.assign(sets.New[Shard](shard))
		after(20 * time.Second)
		assert.True(t, w.caches.status().stored.Has(shard), "the shard is stored")
		assert.Empty(t, w.keys())
	})
}

// While a new shard is listed, a server sends the delete of an object that it never showed. The
// shard is stored although the queue drops the delete.
func TestStory_AnUnknownObjectIsDeleted(t *testing.T) {
	for name, inOrder := range map[string]bool{"DeltaFIFO": false, "RealFIFO": true} {
		t.Run(name, func(t *testing.T) {
			o := informer.Options{InOrder: inOrder}
			scriptedStory(t, ByNamespace, o, func(w *scriptedWorld) {
				shard := shardOf("ns", 8)
				w.deletesWhileItLists(versioned("ns/b", "7", "u"), versioned("ns/a", "12", "u"))
				w.caches.assign(sets.New[Shard](shard))
				after(10 * time.Minute)
				assert.True(t, w.caches.status().stored.Has(shard), "the shard is stored")
				assert.Equal(t, []string{"ns/b"}, w.keys())
			})
		})
	}
}

// A list of a new shard has an object twice, as pages may that are not of one version.
func TestStory_AnObjectIsListedTwice(t *testing.T) {
	for name, by := range map[string]By{"uid": ByUID, "namespace": ByNamespace} {
		for _, inOrder := range []bool{false, true} {
			t.Run(fmt.Sprint(name, inOrder), func(t *testing.T) {
				scriptedStory(t, by, informer.Options{InOrder: inOrder}, func(w *scriptedWorld) {
					w.lists(func(metav1.ListOptions) (runtime.Object, error) {
						return listOf("9", versioned("ns/a", "7", "u"), versioned("ns/a", "8", "u"),
							versioned("ns/a", "7", "u")), nil
					})
					w.caches.assign(allShards(8))
					after(10 * time.Minute)
					assert.Len(t, w.caches.status().stored, 8, "all shards are stored")
				})
			})
		}
	}
}

// Versions that are no numbers: every move lists everything.
func TestStory_VersionsThatAreNoNumbers(t *testing.T) {
	scriptedStory(t, ByUID, informer.Options{}, func(w *scriptedWorld) {
		w.lists(func(metav1.ListOptions) (runtime.Object, error) {
			return listOf("v9", versioned("ns/a", "v7", "u")), nil
		})
		w.caches.assign(sets.New[Shard](1, 2))
		after(10 * time.Minute)
		w.caches.assign(allShards(8))
		after(10 * time.Minute)
		assert.Len(t, w.caches.status().stored, 8, "all shards are stored")
		assert.Equal(t, []string{"ns/a"}, w.keys())
	})
}

// With pages of one object, a list of a collection with one object is not taken for a question.
func TestStory_PagesOfOneObject(t *testing.T) {
	o := informer.Options{}
	o.Reflector.WatchListPageSize = 1
	scriptedStory(t, ByUID, o, func(w *scriptedWorld) {
		has := func(m *corev1.ConfigMap, expired bool) {
			w.lists(func(o metav1.ListOptions) (runtime.Object, error) {
				if expired && o.ResourceVersion != "" {
					return nil, apierrors.NewResourceExpired("too old")
				}
				return listOf(m.ResourceVersion, m), nil
			})
		}
		has(versioned("ns/a", "7", "u"), false)
		w.caches.assign(allShards(8))
		after(time.Minute)
		assert.Equal(t, []string{"ns/a"}, w.keys())

		has(versioned("ns/b", "20", "v"), true) // ns/a was deleted meanwhile
		w.newestWatch().Error(&apierrors.NewResourceExpired("too old").ErrStatus)
		after(time.Minute)
		assert.Equal(t, []string{"ns/b"}, w.keys())
		w.newestWatch().Delete(versioned("ns/b", "21", "v"))
		after(time.Minute)
		assert.Empty(t, w.keys(), "ns/b was deleted")
	})
}

// The list of a new shard has an object of another type, once. It is listed again soon.
func TestStory_AnObjectOfAnotherTypeIsListed(t *testing.T) {
	scriptedStory(t, ByUID, informer.Options{}, func(w *scriptedWorld) {
		m := versioned("ns/a", "7", "u")
		w.lists(func(metav1.ListOptions) (runtime.Object, error) {
			w.lists(func(metav1.ListOptions) (runtime.Object, error) { return listOf("9", m), nil })
			return &corev1.SecretList{
				ListMeta: metav1.ListMeta{ResourceVersion: "9"},
				Items:    []corev1.Secret{{ObjectMeta: m.ObjectMeta}},
			}, nil
		})
		w.caches.assign(allShards(8))
		after(time.Minute)
		assert.Len(t, w.caches.status().stored, 8, "all shards are stored")
		assert.Equal(t, []string{"ns/a"}, w.keys())
	})
}
