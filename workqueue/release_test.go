// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"

	"example.com/informerstack/workqueue"
)

// releasing is a recorder that counts what is given back to it.
type releasing struct {
	*recorder
	released map[string]int
}

func (r releasing) ReleaseMetrics(name string) { r.released[name]++ }

// Who asked for metrics says once that it needs them no more: the queue, and the delaying queue around it.
func TestMetrics_AreReleasedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := releasing{newRecorder(), map[string]int{}}
		plain := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[string]{Name: "plain", MetricsProvider: provider})
		delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[string]{Name: "delaying", MetricsProvider: provider})
		nameless := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[string]{MetricsProvider: provider})
		for _, q := range []workqueue.TypedInterface[string]{plain, delaying, nameless} {
			q.ShutDown()
			q.ShutDownWithDrain()
			q.ShutDown()
		}
		assert.Equal(t, map[string]int{"plain": 1, "delaying": 2}, provider.released)
	})
}

// A queue that drains still works, and still counts.
func TestMetrics_AreReleasedAfterTheDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := releasing{newRecorder(), map[string]int{}}
		q := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[string]{Name: "q", MetricsProvider: provider})
		q.Add("a")
		item, _ := q.Get()
		go q.ShutDownWithDrain()
		synctest.Wait()
		assert.Empty(t, provider.released)
		q.Done(item)
		synctest.Wait()
		assert.Equal(t, map[string]int{"q": 1}, provider.released)
	})
}
