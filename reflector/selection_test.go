// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/store"
)

// reselecting is a watch that ends because another selection follows.
type reselecting struct{ *watch.FakeWatcher }

func (reselecting) Reselects() bool { return true }

// changedWatch is a watch of another selection.
type changedWatch struct {
	*watch.FakeWatcher
	dropped []string
}

func (w changedWatch) Dropped() iter.Seq[store.DeletedFinalStateUnknown] {
	return func(yield func(store.DeletedFinalStateUnknown) bool) {
		for _, key := range w.dropped {
			if !yield(store.DeletedFinalStateUnknown{Key: key}) {
				return
			}
		}
	}
}

// selecting is a server with two watches, the second of another selection, and a store that records
// its calls.
type selecting struct {
	refuse string // the key of a delete that fails
	first  reselecting
	second changedWatch
	lists  int
	calls  []string
	*Reflector
}

func (s *selecting) call(verb string, obj any) error {
	key, _ := store.DeletionHandlingMetaNamespaceKeyFunc(obj)
	s.calls = append(s.calls, fmt.Sprintf("%s %s at %s", verb, key, s.LastSyncResourceVersion()))
	if verb == "delete" && key == s.refuse {
		return errors.New("refused")
	}
	return nil
}

func (s *selecting) Add(obj any) error           { return s.call("add", obj) }
func (s *selecting) Update(obj any) error        { return s.call("update", obj) }
func (s *selecting) Delete(obj any) error        { return s.call("delete", obj) }
func (s *selecting) Resync() error               { return nil }
func (s *selecting) Replace([]any, string) error { return nil }

func (s *selecting) run(t *testing.T) {
	list := func(context.Context, metav1.ListOptions) (runtime.Object, error) {
		s.lists++
		return &v1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "10"}}, nil
	}
	watches := []watch.Interface{s.first, s.second}
	open := func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
		if len(watches) == 0 {
			return watch.NewFake(), nil
		}
		w := watches[0]
		watches = watches[1:]
		return w, nil
	}
	s.Reflector = New(&ListWatch{list, open}, &v1.Pod{}, s, Options{
		UseWatchList: new(false),
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	time.Sleep(time.Millisecond) // a watch that ends so soon is a failure otherwise
	s.first.Stop()
	synctest.Wait()
}

func selectionStory(t *testing.T, play func(t *testing.T, s *selecting)) {
	synctest.Test(t, func(t *testing.T) {
		reported = func(error, string) {}
		s := &selecting{
			first:  reselecting{watch.NewFake()},
			second: changedWatch{watch.NewFake(), []string{"gone", "lost"}},
		}
		play(t, s)
	})
}

func versioned(name, resourceVersion string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: resourceVersion}}
}

// A change of the selection removes what is not selected, and then takes everything up to the
// bookmark in any order, without a list. The version stays until then.
func TestSelectionChange(t *testing.T) {
	selectionStory(t, func(t *testing.T, s *selecting) {
		s.run(t)
		w := s.second
		w.Add(versioned("a", "15"))
		w.Modify(versioned("b", "12"))
		w.Delete(versioned("c", "13"))
		w.Add(versioned("d", "3"))
		w.Action(watch.Bookmark, versioned("", "13"))
		w.Add(versioned("e", "14"))
		synctest.Wait()
		require.Equal(t, []string{
			"delete gone at 10", "delete lost at 10", "add a at 10", "update b at 10",
			"delete c at 10", "add d at 10", "add e at 13",
		}, s.calls)
		require.Equal(t, "14", s.LastSyncResourceVersion())
		require.Equal(t, 1, s.lists)
		require.Zero(t, s.Status().Failures)
	})
}

// If the store refuses a delete, everything is listed again.
func TestSelectionChange_RefusedDelete(t *testing.T) {
	selectionStory(t, func(t *testing.T, s *selecting) {
		s.refuse = "gone"
		s.run(t)
		require.True(t, s.second.IsStopped())
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Equal(t, 2, s.lists)
		require.Equal(t, "delete gone: refused", s.Status().LastError.Error())
		require.False(t, slices.Contains(s.calls, "delete lost at 10"), "the list decides")
	})
}

// While a watch still sends what is new in the selection, the store lacks a part of it: no answer
// to a question makes it current, although the version is the server's newest.
func TestSelectionChange_IsNotCurrentBeforeTheBookmark(t *testing.T) {
	selectionStory(t, func(t *testing.T, s *selecting) {
		s.run(t)
		before := s.Status().CurrentAsOf
		for range 200 {
			s.second.Add(versioned("a", "9"))
			time.Sleep(100 * time.Millisecond)
			require.Equal(t, before, s.Status().CurrentAsOf)
		}
		require.Greater(t, s.lists, 1, "a question")
		s.second.Action(watch.Bookmark, versioned("", "10"))
		time.Sleep(foreignPause)
		require.True(t, s.Status().CurrentAsOf.After(before))
	})
}
