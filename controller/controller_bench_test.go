// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"sync"
	"testing"

	clientgo "k8s.io/client-go/util/workqueue"
)

// BenchmarkReconcile takes 1000 keys through the workers of a reconcile that does nothing.
// client-go has no controller for keys: its row is the loop that each program writes around its
// queue, without logger, identity, panics, timeouts, attempts and dead letters.
func BenchmarkReconcile(b *testing.B) {
	for _, workers := range []int{1, 8} {
		b.Run(fmt.Sprintf("workers=%d/impl=ours", workers), func(b *testing.B) {
			var wave sync.WaitGroup
			ctx, cancel := context.WithCancel(quiet(context.Background()))
			c := New("bench", func(context.Context, string) (Result, error) {
				wave.Done()
				return Result{}, nil
			}, Options[string]{Workers: workers})
			var running sync.WaitGroup
			running.Go(func() { _ = c.Run(ctx) })
			inWaves(b, &wave, c.Enqueue)
			cancel()
			running.Wait()
		})
		b.Run(fmt.Sprintf("workers=%d/impl=client-go", workers), func(b *testing.B) {
			var wave sync.WaitGroup
			queue := clientgo.NewTypedRateLimitingQueue(
				clientgo.DefaultTypedControllerRateLimiter[string](),
			)
			reconcile := func(context.Context, string) error {
				wave.Done()
				return nil
			}
			var running sync.WaitGroup
			for range workers {
				running.Go(func() { handWrittenLoop(b.Context(), queue, reconcile) })
			}
			inWaves(b, &wave, queue.Add)
			queue.ShutDown()
			running.Wait()
		})
	}
}

// inWaves adds 1000 keys and waits for them to be reconciled, b.N times.
func inWaves(b *testing.B, wave *sync.WaitGroup, add func(key string)) {
	keys := make([]string, 1000)
	for i := range keys {
		keys[i] = fmt.Sprintf("namespace/name-%d", i)
	}
	b.ReportAllocs()
	for b.Loop() {
		wave.Add(len(keys))
		for _, key := range keys {
			add(key)
		}
		wave.Wait()
	}
}

func handWrittenLoop(
	ctx context.Context,
	queue clientgo.TypedRateLimitingInterface[string],
	reconcile func(context.Context, string) error,
) {
	for {
		key, shutdown := queue.Get()
		if shutdown {
			return
		}
		if err := reconcile(ctx, key); err != nil {
			queue.AddRateLimited(key)
		} else {
			queue.Forget(key)
		}
		queue.Done(key)
	}
}
