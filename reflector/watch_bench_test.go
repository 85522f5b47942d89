// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// BenchmarkWatchEvent is one event from the watch to the store.
func BenchmarkWatchEvent(b *testing.B) {
	for _, impl := range []string{"ours", "client-go"} {
		b.Run("impl="+impl, func(b *testing.B) {
			b.ReportAllocs()
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			events := make(chan watch.Event, 1024)
			lw := &ListWatch{
				func(context.Context, metav1.ListOptions) (runtime.Object, error) {
					return podList("1", ""), nil
				},
				func(context.Context, metav1.ListOptions) (watch.Interface, error) {
					return endless(events), nil
				},
			}
			target := &countingStore{until: b.N, done: cancel}
			event := modified("a@2")
			go func() {
				for range b.N {
					events <- event
				}
			}()
			runOf(impl, lw, target, Options{UseWatchList: new(bool)})(ctx)
		})
	}
}

// endless is a watch that does not end.
type endless chan watch.Event

func (e endless) ResultChan() <-chan watch.Event { return e }
func (endless) Stop()                            {}

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
