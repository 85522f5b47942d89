// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	clientgo "k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

// BenchmarkReconcile takes 1000 keys through the workers of a reconcile that does nothing.
//
// client-go has no controller for keys: each program writes a loop around its queue. In
// impl=client-go it is the loop of Kubernetes' own controllers, which take the time of each key and
// log it at level 4. In impl=client-go-bare it does neither. Both have no identity of a call, no
// recovery from panics, no attempts and no dead letters.
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
		for _, bare := range []bool{false, true} {
			name := fmt.Sprintf("workers=%d/impl=client-go", workers)
			if bare {
				name += "-bare"
			}
			b.Run(name, func(b *testing.B) {
				var wave sync.WaitGroup
				ctx := quiet(b.Context())
				queue := clientgo.NewTypedRateLimitingQueue(
					clientgo.DefaultTypedControllerRateLimiter[string](),
				)
				reconcile := func(context.Context, string) error {
					wave.Done()
					return nil
				}
				if !bare {
					reconcile = timed(reconcile)
				}
				var running sync.WaitGroup
				for range workers {
					running.Go(func() { handWrittenLoop(ctx, queue, reconcile) })
				}
				inWaves(b, &wave, queue.Add)
				queue.ShutDown()
				running.Wait()
			})
		}
	}
}

func timed(reconcile func(context.Context, string) error) func(context.Context, string) error {
	return func(ctx context.Context, key string) error {
		logger := klog.FromContext(ctx)
		began := time.Now()
		logger.V(4).Info("Began", "key", key, "at", began)
		defer func() { logger.V(4).Info("Finished", "key", key, "after", time.Since(began)) }()
		return reconcile(ctx, key)
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
	next := func() bool {
		key, shutdown := queue.Get()
		if shutdown {
			return false
		}
		defer queue.Done(key)
		if err := reconcile(ctx, key); err != nil {
			queue.AddRateLimited(key)
		} else {
			queue.Forget(key)
		}
		return true
	}
	for next() {
	}
}
