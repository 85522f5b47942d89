// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"context"
	"errors"
	"fmt"

	"example.com/informerstack/compat/workqueue"
)

// The worker of every tutorial about controllers. Only the import of workqueue is changed.
func Example() {
	queue := workqueue.NewTypedRateLimitingQueue(
		workqueue.DefaultTypedControllerRateLimiter[string](),
	)
	queue.Add("default/good")
	queue.Add("default/bad")

	sync := func(key string) error {
		if key == "default/bad" {
			return errors.New("it is bad")
		}
		return nil
	}
	processNextItem := func() bool {
		key, quit := queue.Get()
		if quit {
			return false
		}
		defer queue.Done(key)
		err := sync(key)
		switch {
		case err == nil:
			fmt.Println("synced", key)
			queue.Forget(key)
		case queue.NumRequeues(key) < 3:
			queue.AddRateLimited(key)
		default:
			fmt.Println("gave up", key, "after", queue.NumRequeues(key), "retries:", err)
			queue.Forget(key)
			queue.ShutDown()
		}
		return true
	}
	for processNextItem() {
	}
	// Output:
	// synced default/good
	// gave up default/bad after 3 retries: it is bad
}

func ExampleParallelizeUntil() {
	squares := make([]int, 5)
	workqueue.ParallelizeUntil(context.Background(), 2, len(squares), func(piece int) {
		squares[piece] = piece * piece
	}, workqueue.WithChunkSize(2))
	fmt.Println(squares)
	// Output: [0 1 4 9 16]
}
