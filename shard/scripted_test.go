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
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
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

// scriptedStory plays a script with an informer of a scripted server.
func scriptedStory(t *testing.T, by By, o informer.Options,
	script func(t *testing.T, server *scripted, s *Shards, i informer.SharedIndexInformer),
) {
	synctest.Test(t, func(t *testing.T) {
		quietLogs()
		s, err := New(Config{
			Name: "g", Namespace: "default", Count: 8, Client: restClient(t, newLink(nil)),
		})
		require.NoError(t, err)
		server := &scripted{list: func(metav1.ListOptions) (runtime.Object, error) {
			return listOf("5"), nil
		}}
		i := informer.NewSharedIndexInformer(server, &corev1.ConfigMap{}, s.Options(by, o))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); i.Run(ctx) }()
		time.Sleep(time.Second)
		synctest.Wait()
		script(t, server, s, i)
		cancel()
		<-done
		synctest.Wait()
	})
}

// A server sends a delete twice while a new shard is listed. The queue takes one of them, and the
// shard is stored.
func TestStory_ADeleteArrivesTwice(t *testing.T) {
	scriptedStory(t, ByNamespace, informer.Options{}, func(
		t *testing.T, server *scripted, s *Shards, i informer.SharedIndexInformer,
	) {
		shard := shardOf("ns", 8)
		gone := versioned("ns/a", "12", "u")
		server.deletesWhileItLists(versioned("ns/a", "7", "u"), gone, gone)
		s.caches.assign(newShardSet(8, shard))
		time.Sleep(20 * time.Second)
		synctest.Wait()
		assert.True(t, s.caches.stored().has(shard), "the shard is stored")
		assert.Empty(t, i.GetStore().ListKeys())
	})
}

// While a new shard is listed, a server sends the delete of an object that it never showed. The
// shard is stored although the queue drops the delete.
func TestStory_AnUnknownObjectIsDeleted(t *testing.T) {
	for name, inOrder := range map[string]bool{"DeltaFIFO": false, "RealFIFO": true} {
		t.Run(name, func(t *testing.T) {
			scriptedStory(t, ByNamespace, informer.Options{InOrder: inOrder}, func(
				t *testing.T, server *scripted, s *Shards, i informer.SharedIndexInformer,
			) {
				shard := shardOf("ns", 8)
				server.deletesWhileItLists(versioned("ns/b", "7", "u"),
					versioned("ns/a", "12", "u"))
				s.caches.assign(newShardSet(8, shard))
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				assert.True(t, s.caches.stored().has(shard), "the shard is stored")
				assert.Equal(t, []string{"ns/b"}, i.GetStore().ListKeys())
			})
		})
	}
}

// A list of a new shard has an object twice, as pages may that are not of one version.
func TestStory_AnObjectIsListedTwice(t *testing.T) {
	for name, by := range map[string]By{"uid": ByUID, "namespace": ByNamespace} {
		for _, inOrder := range []bool{false, true} {
			t.Run(fmt.Sprint(name, inOrder), func(t *testing.T) {
				scriptedStory(t, by, informer.Options{InOrder: inOrder}, func(
					t *testing.T, server *scripted, s *Shards, i informer.SharedIndexInformer,
				) {
					server.mu.Lock()
					server.list = func(metav1.ListOptions) (runtime.Object, error) {
						return listOf("9", versioned("ns/a", "7", "u"), versioned("ns/a", "8", "u"),
							versioned("ns/a", "7", "u")), nil
					}
					server.mu.Unlock()
					s.caches.assign(allShards(8))
					time.Sleep(10 * time.Minute)
					synctest.Wait()
					assert.True(t, s.caches.stored().all(), "all shards are stored")
				})
			})
		}
	}
}

// Versions that are no numbers: every move lists everything.
func TestStory_VersionsThatAreNoNumbers(t *testing.T) {
	scriptedStory(t, ByUID, informer.Options{}, func(
		t *testing.T, server *scripted, s *Shards, i informer.SharedIndexInformer,
	) {
		server.mu.Lock()
		server.list = func(metav1.ListOptions) (runtime.Object, error) {
			return listOf("v9", versioned("ns/a", "v7", "u")), nil
		}
		server.mu.Unlock()
		s.caches.assign(newShardSet(8, 1, 2))
		time.Sleep(10 * time.Minute)
		s.caches.assign(allShards(8))
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		assert.True(t, s.caches.stored().all(), "all shards are stored")
		assert.Equal(t, []string{"ns/a"}, i.GetStore().ListKeys())
	})
}

// With pages of one object, a list of a collection with one object is not taken for a question.
func TestStory_PagesOfOneObject(t *testing.T) {
	o := informer.Options{}
	o.Reflector.WatchListPageSize = 1
	scriptedStory(t, ByUID, o, func(
		t *testing.T, server *scripted, s *Shards, i informer.SharedIndexInformer,
	) {
		now := versioned("ns/a", "7", "u")
		var expired bool
		server.mu.Lock()
		server.list = func(o metav1.ListOptions) (runtime.Object, error) {
			server.mu.Lock()
			defer server.mu.Unlock()
			if expired && o.ResourceVersion != "" {
				return nil, apierrors.NewResourceExpired("too old")
			}
			return listOf(now.ResourceVersion, now), nil
		}
		server.mu.Unlock()
		s.caches.assign(allShards(8))
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, []string{"ns/a"}, i.GetStore().ListKeys())

		server.mu.Lock()
		now, expired = versioned("ns/b", "20", "v"), true // ns/a was deleted meanwhile
		w := server.watches[len(server.watches)-1]
		server.mu.Unlock()
		w.Error(&apierrors.NewResourceExpired("too old").ErrStatus)
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, []string{"ns/b"}, i.GetStore().ListKeys())
		server.mu.Lock()
		w = server.watches[len(server.watches)-1]
		server.mu.Unlock()
		w.Delete(versioned("ns/b", "21", "v"))
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Empty(t, i.GetStore().ListKeys(), "ns/b was deleted")
	})
}

// The list of a new shard has an object of another type, once. It is listed again soon.
func TestStory_AnObjectOfAnotherTypeIsListed(t *testing.T) {
	scriptedStory(t, ByUID, informer.Options{}, func(
		t *testing.T, server *scripted, s *Shards, i informer.SharedIndexInformer,
	) {
		wrong := true
		server.mu.Lock()
		server.list = func(metav1.ListOptions) (runtime.Object, error) {
			server.mu.Lock()
			defer server.mu.Unlock()
			if wrong {
				wrong = false
				l := &corev1.SecretList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}}
				l.Items = append(l.Items, corev1.Secret{ObjectMeta: metav1.ObjectMeta{
					Namespace: "ns", Name: "a", UID: "u", ResourceVersion: "7"}})
				return l, nil
			}
			return listOf("9", versioned("ns/a", "7", "u")), nil
		}
		server.mu.Unlock()
		s.caches.assign(allShards(8))
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.True(t, s.caches.stored().all(), "all shards are stored")
		assert.Equal(t, []string{"ns/a"}, i.GetStore().ListKeys())
	})
}
