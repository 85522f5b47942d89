// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/informerstack/workqueue"
)

// goroutinesInAll starts goroutines until there are n, each with frames of its own.
func goroutinesInAll(t testing.TB, n int) {
	stop := make(chan struct{})
	var running sync.WaitGroup
	t.Cleanup(func() {
		close(stop)
		running.Wait() // other tests count goroutines, too
	})
	var wait func(deep int)
	wait = func(deep int) {
		if deep == 0 {
			<-stop
			return
		}
		wait(deep - 1)
	}
	for runtime.NumGoroutine() < n {
		running.Go(func() { wait(10) })
	}
}

// With too many goroutines no look is taken: neither one at stacks, which stops the process, unless
// it is asked for, nor one at requests, which takes processor time.
func TestLooks_AreNotTakenOfTooManyGoroutines(t *testing.T) {
	j := New()
	j.Record(time.Hour)
	queue := NewRateLimitingQueue(j, "settings", workqueue.NewTypedRateLimitingQueue[string](
		nil, workqueue.Config[string]{}))
	defer queue.ShutDown()
	queue.Add("a")
	_, _ = queue.Get()

	goroutinesInAll(t, maxStopped+1)
	goroutines, stop := TooMany()
	require.Greater(t, goroutines, maxStopped)
	require.Equal(t, time.Duration(goroutines)*stopTime, stop)
	stack, at := queue.Workers()["a"].Stack(false)
	require.Nil(t, stack)
	require.Zero(t, at)
	require.Zero(t, j.workerLook.at)
	require.Zero(t, j.Facts(1).TooMany)
	require.Len(t, j.looks.last, 1)

	stack, at = queue.Workers()["a"].Stack(true)
	require.NotEmpty(t, stack)
	require.NotZero(t, at)
	known, _ := queue.Workers()["a"].Stack(false)
	require.Equal(t, stack, known, "what was seen is kept")

	goroutinesInAll(t, maxProfiled+1)
	j.looks.next = time.Time{}
	require.Greater(t, j.Facts(1).TooMany, maxProfiled)
	require.Len(t, j.looks.last, 1)
}

// For how long a look at stacks stops the process at most, and the processor time of one at
// requests, each with as many goroutines as are looked at without asking.
func BenchmarkLargestLook(b *testing.B) {
	b.Run("of=stacks", func(b *testing.B) {
		goroutinesInAll(b, maxStopped)
		var l workerLook
		for b.Loop() {
			l.stacksOf(map[int64]bool{goroutine(): true})
		}
	})
	b.Run("of=requests", func(b *testing.B) {
		goroutinesInAll(b, maxProfiled)
		for b.Loop() {
			throttled()
		}
	})
}
