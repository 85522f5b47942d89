// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

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
		content := q.Snapshot()
		want := map[string]int{"low": -100, "high": 5, "later": 5}
		first, taken := "high", 5
		if !priorities {
			want, first, taken = nil, "low", 0
		}
		assert.Equal(t, want, content.Priorities)
		assert.Len(t, content.Waiting, 3)
		item, priority, _ := q.GetWithPriority()
		assert.Equal(t, first, item)
		assert.Equal(t, taken, priority)
		assert.Equal(t, taken, q.TakenPriority(item))
		assert.Len(t, q.Workers(), 1)
		for item, want := range map[string]Cause{
			"later":  {Kind: Delay, Delay: time.Minute},
			"again":  {Kind: Retry},
			"failed": {Kind: Retry, Error: "no volume"},
		} {
			_, facts := j.About(item)
			if assert.Len(t, facts, 1, item) && assert.NotEmpty(t, facts[0].Waiting, item) {
				cause := facts[0].Waiting[0]
				cause.Time = time.Time{}
				assert.Equal(t, want, cause, item)
			}
		}
	}
}
