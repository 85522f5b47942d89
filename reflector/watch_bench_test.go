// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// BenchmarkWatchEvent is one event from the watch to the store.
func BenchmarkWatchEvent(b *testing.B) {
	off := false
	for _, impl := range []string{"ours", "client-go"} {
		b.Run("impl="+impl, func(b *testing.B) {
			b.ReportAllocs()
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			lw := &benchServer{events: make(chan watch.Event, 1024)}
			target := &countingStore{until: b.N, done: cancel}
			event := watch.Event{Type: watch.Modified, Object: pod("a@2")}
			go func() {
				for range b.N {
					lw.events <- event
				}
			}()
			if impl == "ours" {
				New(lw, &v1.Pod{}, target, Options{UseWatchList: &off}).Run(ctx)
			} else {
				cache.NewReflectorWithOptions(
					lw, &v1.Pod{}, target, cache.ReflectorOptions{},
				).RunWithContext(ctx)
			}
		})
	}
}

// benchServer has no pods, and one watch.
type benchServer struct{ events chan watch.Event }

func (*benchServer) IsWatchListSemanticsUnSupported() bool { return true }

func (s *benchServer) List(metav1.ListOptions) (runtime.Object, error) {
	return podList("1", ""), nil
}

func (s *benchServer) Watch(metav1.ListOptions) (watch.Interface, error) { return s, nil }

func (s *benchServer) ListWithContext(
	_ context.Context,
	options metav1.ListOptions,
) (runtime.Object, error) {
	return s.List(options)
}

func (s *benchServer) WatchWithContext(
	_ context.Context,
	options metav1.ListOptions,
) (watch.Interface, error) {
	return s.Watch(options)
}

func (s *benchServer) ResultChan() <-chan watch.Event { return s.events }
func (*benchServer) Stop()                            {}

// countingStore is done after some updates.
type countingStore struct {
	mapStore
	until int
	done  func()
}

func (s *countingStore) Update(any) error {
	if s.until--; s.until == 0 {
		s.done()
	}
	return nil
}
