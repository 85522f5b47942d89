// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"errors"
	"fmt"
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
type reselecting struct {
	*watch.FakeWatcher
	selection *Selection
}

func (r reselecting) Reselected() *Selection { return r.selection }

// selecting is a server with a watch that ends with another selection, and a store that records its
// calls.
type selecting struct {
	refuse bool // the first Replace with objects fails
	first  reselecting
	lists  int
	opened []string // the versions of the requests for watches
	calls  []string
	*Reflector
}

func (s *selecting) Add(any) error    { return nil }
func (s *selecting) Update(any) error { return nil }
func (s *selecting) Delete(any) error { return nil }
func (s *selecting) Resync() error    { return nil }

func (s *selecting) Replace(list []any, version string) error {
	call := "replace at " + version
	for _, obj := range list {
		key, _ := store.MetaNamespaceKeyFunc(obj)
		call += fmt.Sprintf(" %s transformed=%v", key, obj.(*v1.Pod).Spec.NodeName)
	}
	s.calls = append(s.calls, call)
	if s.refuse && len(list) > 0 {
		s.refuse = false
		return errors.New("refused")
	}
	return nil
}

func (s *selecting) run(t *testing.T) {
	list := func(context.Context, metav1.ListOptions) (runtime.Object, error) {
		s.lists++
		return &v1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "10"}}, nil
	}
	open := func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
		s.opened = append(s.opened, o.ResourceVersion)
		if len(s.opened) == 1 {
			return s.first, nil
		}
		return watch.NewFake(), nil
	}
	s.Reflector = New(&ListWatch{list, open}, &v1.Pod{}, s, Options{
		UseWatchList: new(false), ResyncPeriod: time.Hour,
		Transform: func(obj any) (any, error) {
			obj.(*v1.Pod).Spec.NodeName += "once"
			return obj, nil
		},
	})
	t.Cleanup(background(s.Run))
	synctest.Wait()
	s.first.Stop()
	synctest.Wait()
}

func selectionStory(
	t *testing.T, items []runtime.Object, play func(t *testing.T, s *selecting),
) {
	synctest.Test(t, func(t *testing.T) {
		reported = func(error, string) {}
		play(t, &selecting{first: reselecting{watch.NewFake(), &Selection{
			Items: items, ResourceVersion: "20", AsOf: time.Now().Add(-time.Minute),
		}}})
	})
}

// The content of another selection replaces that of the store, as a list does, and the next watch
// begins there at once.
func TestSelection(t *testing.T) {
	items := []runtime.Object{pod("a@15"), pod("b@12")}
	selectionStory(t, items, func(t *testing.T, s *selecting) {
		began := time.Now()
		s.run(t)
		require.Equal(t, []string{
			"replace at 10", "replace at 20 a transformed=once b transformed=once",
		}, s.calls)
		require.Equal(t, []string{"10", "20"}, s.opened)
		require.Equal(t, 1, s.lists)
		status := s.Status()
		require.Equal(t, "20", status.ResourceVersion)
		require.Equal(t, began.Add(-time.Minute), status.CurrentAsOf, "when it was listed")
		require.Zero(t, status.Failures)
		require.Zero(t, time.Since(began))
	})
}

// A selection that cannot be stored is listed again, after a wait.
func TestSelection_IsRefused(t *testing.T) {
	for name, items := range map[string][]runtime.Object{
		"by the store": {pod("a@15")}, "another type": {&v1.Node{}},
	} {
		t.Run(name, func(t *testing.T) {
			selectionStory(t, items, func(t *testing.T, s *selecting) {
				s.refuse = true
				s.run(t)
				require.Equal(t, 1, s.lists)
				require.Equal(t, 1, s.Status().Failures)
				time.Sleep(5 * time.Second)
				synctest.Wait()
				require.Equal(t, 2, s.lists)
				require.Equal(t, []string{"10", "10"}, s.opened)
			})
		})
	}
}

// A watch that ends in another way is as any other.
func TestSelection_None(t *testing.T) {
	selectionStory(t, nil, func(t *testing.T, s *selecting) {
		s.first.selection = nil
		s.run(t)
		require.Equal(t, 1, s.Status().Failures, "it was very short")
	})
}
