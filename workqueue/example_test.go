// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/informerstack/workqueue"
)

// A worker gets an item, works on it, and is done with it.
func Example() {
	q := workqueue.NewTyped(workqueue.Config[string]{})
	q.Add("1")
	q.Add("2")
	q.Add("3")
	q.Add("1") // waits already
	fmt.Println(q.Len(), "queued")

	q.ShutDown() // so that the worker ends when nothing is left
	for {
		item, shutdown := q.Get()
		if shutdown {
			break
		}
		fmt.Println("work on", item)
		q.Done(item)
	}
	// Output:
	// 3 queued
	// work on 1
	// work on 2
	// work on 3
}

// An item that is added while a worker has it goes to no other worker; it is queued when that
// worker is done.
func ExampleTyped_Done() {
	q := workqueue.NewTyped(workqueue.Config[string]{})
	q.Add("1")
	q.Add("2")
	one, _ := q.Get()
	q.Add("1")
	fmt.Println("waiting:", q.Snapshot().Ready, "again:", q.Snapshot().Again)
	q.Done(one)
	fmt.Println("waiting:", q.Snapshot().Ready)
	// Output:
	// waiting: [2] again: [1]
	// waiting: [2 1]
}

// A worker that ends with its context.
func ExampleTypedRateLimitingQueue() {
	q := workqueue.NewTypedRateLimitingQueue(
		workqueue.DefaultTypedControllerRateLimiter[string](),
		workqueue.Config[string]{},
	)
	defer q.ShutDown()
	ctx, cancel := context.WithCancel(context.Background())
	reconcile := func(key string) error {
		cancel() // the program is stopped
		return nil
	}
	processNextWorkItem := func(ctx context.Context) bool {
		key, quit := q.GetWithContext(ctx)
		if quit {
			return false
		}
		defer q.Done(key)
		if err := reconcile(key); err != nil {
			q.AddRateLimited(key)
			return true
		}
		q.Forget(key)
		return true
	}

	q.Add("ns/a")
	q.Add("ns/b")
	for processNextWorkItem(ctx) {
		fmt.Println("worked")
	}
	fmt.Println("left:", q.Len())
	// Output:
	// worked
	// left: 1
}

// An item that failed too often is put aside.
func ExampleTypedRateLimitingQueue_NumRequeues() {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](
		time.Microsecond,
		time.Millisecond,
	)
	q := workqueue.NewTypedRateLimitingQueue(limiter, workqueue.Config[string]{})
	defer q.ShutDown()
	deadLetters := workqueue.NewTyped(workqueue.Config[string]{})

	q.Add("ns/a")
	for deadLetters.Len() == 0 {
		key, _ := q.Get()
		if q.NumRequeues(key) == 3 {
			deadLetters.Add(key)
			q.Forget(key)
		} else {
			q.AddRateLimited(key) // it fails every time
		}
		q.Done(key)
	}
	fmt.Println(deadLetters.Snapshot().Ready, q.NumRequeues("ns/a"))
	// Output: [ns/a] 0
}

func ExampleNewTypedBucketRateLimiter() {
	limiter := workqueue.NewTypedBucketRateLimiter[string](10, 3) // 10 a second, 3 at once
	for _, item := range []string{"a", "b", "c", "d", "e"} {
		fmt.Println(item, limiter.When(item).Round(10*time.Millisecond))
	}
	// Output:
	// a 0s
	// b 0s
	// c 0s
	// d 100ms
	// e 200ms
}

func ExampleNewTypedItemExponentialFailureRateLimiter() {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](
		5*time.Millisecond,
		1000*time.Second,
	)
	for range 5 {
		fmt.Print(limiter.When("a"), " ")
	}
	for range 15 {
		limiter.When("a")
	}
	fmt.Println("...", limiter.When("a"))
	fmt.Println("b:", limiter.When("b"))
	limiter.Forget("a")
	fmt.Println("a, forgotten:", limiter.When("a"))
	// Output:
	// 5ms 10ms 20ms 40ms 80ms ... 16m40s
	// b: 5ms
	// a, forgotten: 5ms
}

func ExampleNewTypedItemFastSlowRateLimiter() {
	limiter := workqueue.NewTypedItemFastSlowRateLimiter[string](time.Second, 10*time.Second, 3)
	for range 5 {
		fmt.Print(limiter.When("a"), " ")
	}
	// Output: 1s 1s 1s 10s 10s
}

func ExampleNewTypedMaxOfRateLimiter() {
	limiter := workqueue.NewTypedMaxOfRateLimiter(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](
			5*time.Millisecond,
			1000*time.Second,
		),
		workqueue.NewTypedItemFastSlowRateLimiter[string](time.Millisecond, 30*time.Millisecond, 2),
	)
	for range 5 {
		fmt.Print(limiter.When("a"), " ")
	}
	// Output: 5ms 10ms 30ms 40ms 80ms
}

func ExampleNewTypedWithMaxWaitRateLimiter() {
	limiter := workqueue.NewTypedWithMaxWaitRateLimiter(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second, time.Hour),
		3*time.Second,
	)
	for range 4 {
		fmt.Print(limiter.When("a"), " ")
	}
	// Output: 1s 2s 3s 3s
}

func ExampleNewTypedErrorTypeRateLimiter() {
	limiter := workqueue.NewTypedErrorTypeRateLimiter[string](workqueue.ErrorDelays{})
	configMaps := schema.GroupResource{Resource: "configmaps"}
	for _, err := range []error{
		apierrors.NewTimeoutError("the server was slow", 0),
		apierrors.NewConflict(configMaps, "a", errors.New("it has changed")),
		apierrors.NewTooManyRequestsError("not so fast"),
		apierrors.NewTooManyRequests("come back", 7), // Retry-After: 7
		errors.New("no such volume"),                 // 100ms, doubled for each failure before
		fmt.Errorf("get: %w", context.DeadlineExceeded),
	} {
		fmt.Println(limiter.WhenError("a", err))
	}
	// Output:
	// 100ms
	// 1s
	// 30s
	// 7s
	// 1.6s
	// 100ms
}

// Two tenants. One adds three keys at once, and the other one is served in its turn.
func ExampleFair() {
	fair := workqueue.NewFair(workqueue.FairConfig[string]{
		Group: func(key string) string {
			namespace, _, _ := strings.Cut(key, "/")
			return namespace
		},
	}, workqueue.Config[string]{})
	queue := workqueue.NewTypedRateLimitingQueue(
		workqueue.DefaultTypedControllerRateLimiter[string](),
		workqueue.Config[string]{Queue: fair})
	defer queue.ShutDown()

	for _, key := range []string{"red/1", "red/2", "red/3", "blue/1"} {
		queue.Add(key)
	}
	queue.AddWithOpts(workqueue.AddOpts{Priority: 10}, "red/3")
	for range 4 {
		key, _ := queue.Get()
		fmt.Println(key)
		queue.Done(key)
	}
	// Output:
	// red/3
	// red/1
	// blue/1
	// red/2
}
