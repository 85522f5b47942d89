// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/workqueue"
)

// plainQueue has no priorities.
type plainQueue struct {
	workqueue.ExtendedInterface[string]
}

// A queue with options notes the same reasons as one without, and passes the priorities on; one
// without priorities below gets the items without them.
func TestRateLimitingQueue_AddWithOpts(t *testing.T) {
	for _, priorities := range []bool{true, false} {
		j := New()
		j.Record(time.Hour)
		var inner workqueue.ExtendedInterface[string] = workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Hour, time.Hour),
			workqueue.Config[string]{Queue: workqueue.NewFair(
				workqueue.FairConfig[string]{}, workqueue.Config[string]{})})
		if !priorities {
			inner = plainQueue{inner}
		}
		q := NewRateLimitingQueue(j, "work", inner)
		defer q.ShutDown()
		q.AddWithOpts(workqueue.AddOpts{Priority: -100}, "low")
		q.AddWithOpts(workqueue.AddOpts{Priority: 5}, "high")
		q.AddWithOpts(workqueue.AddOpts{After: time.Minute, Priority: 5}, "later")
		q.AddWithOpts(workqueue.AddOpts{RateLimited: true}, "again")
		q.AddWithOpts(workqueue.AddOpts{RateLimited: true, Err: errors.New("no volume")}, "failed")
		q.AddAfter("plainly later", time.Minute)
		q.AddRateLimited("plainly again")
		q.AddFailed("plainly failed", errors.New("no volume"))
		content := q.Snapshot()
		want := map[string]int{"low": -100, "high": 5, "later": 5}
		first, taken := "high", 5
		if !priorities {
			want, first, taken = nil, "low", 0
		}
		assert.Equal(t, want, content.Priorities)
		assert.Len(t, content.Waiting, 6)
		item, priority, _ := q.GetWithPriority()
		assert.Equal(t, first, item)
		assert.Equal(t, taken, priority)
		assert.Equal(t, taken, q.TakenPriority(item))
		assert.Len(t, q.Workers(), 1)
		for _, item := range []string{"later", "again", "failed"} {
			want := causeOf(t, j, "plainly "+item)
			assert.Equal(t, want, causeOf(t, j, item))
		}
		assert.Equal(t, time.Minute, causeOf(t, j, "later").Delay)
		assert.Equal(t, "no volume", causeOf(t, j, "failed").Error)
	}
}

// causeOf returns the only reason why a key waits, without its time.
func causeOf(t *testing.T, j *Journal, key string) Cause {
	t.Helper()
	_, facts := j.About(key)
	require.Len(t, facts, 1)
	require.Len(t, facts[0].Waiting, 1)
	cause := facts[0].Waiting[0]
	cause.Time = time.Time{}
	return cause
}
