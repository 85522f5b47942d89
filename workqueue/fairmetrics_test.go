// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/informerstack/workqueue"
)

// The depth of each priority is that of its dirty items, also after a priority has risen.
func TestFair_PriorityDepth(t *testing.T) {
	depth := map[int]int{}
	q := workqueue.NewFair(workqueue.FairConfig[string]{}, workqueue.Config[string]{
		Metrics: workqueue.Metrics{
			Depth:         func(int) { t.Error("Depth was called, too") },
			PriorityDepth: func(priority, change int) { depth[priority] += change },
		}})
	defer q.ShutDown()
	q.AddWithPriority("a", -100)
	q.AddWithPriority("b", -100)
	q.Add("a") // rises
	q.AddWithPriority("a", -5)
	require.Equal(t, map[int]int{-100: 1, 0: 1}, depth)

	item, priority, _ := q.GetWithPriority()
	require.Equal(t, "a", item)
	require.Zero(t, priority)
	require.Equal(t, map[int]int{-100: 1, 0: 0}, depth)
	q.AddWithPriority("a", -100) // again
	q.AddWithPriority("a", 7)    // rises
	require.Equal(t, map[int]int{-100: 1, 0: 0, 7: 1}, depth)
	q.Done("a")
	for range 2 {
		item, _ = q.Get()
		q.Done(item)
	}
	require.Equal(t, map[int]int{-100: 0, 0: 0, 7: 0}, depth)
}

// The ten groups with the most items are reported every 500 ms, with the sums over all.
func TestFair_ReportsGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var most []workqueue.Group
		var all workqueue.GroupTotals
		q := workqueue.NewFair(workqueue.FairConfig[string]{Group: groupOf},
			workqueue.Config[string]{Metrics: workqueue.Metrics{
				Groups: func(m []workqueue.Group, a workqueue.GroupTotals) { most, all = m, a },
			}})
		for group := range 12 {
			for n := range group + 2 {
				q.Add(fmt.Sprintf("g%02d/%d", group, n))
			}
		}
		_, _ = q.Get() // of g00
		time.Sleep(501 * time.Millisecond)
		q.ShutDown()
		require.Len(t, most, 10)
		require.Equal(t, workqueue.Group{Name: "g11", Queued: 13, Weight: 1}, most[0])
		require.Equal(t, "g02", most[9].Name)
		require.Equal(t, workqueue.GroupTotals{Groups: 12, Queued: 89, Working: 1}, all)
	})
}

// A queue knows the priority with which a worker got an item until its Done.
func TestFair_TakenPriority(t *testing.T) {
	q := ours(workqueue.Config[string]{Queue: workqueue.NewFair(
		workqueue.FairConfig[string]{}, workqueue.Config[string]{})})
	defer q.ShutDown()
	q.AddWithPriority("a", -100)
	require.Zero(t, q.TakenPriority("a"), "no worker has it")
	_, _ = q.Get()
	q.Add("a")
	require.Equal(t, -100, q.TakenPriority("a"))
	q.Done("a")
	require.Zero(t, q.TakenPriority("a"))
	_, priority, _ := q.GetWithPriority()
	require.Zero(t, priority)
}

// An Add that supersedes a wait keeps the higher of the two priorities.
func TestAddSupersedesDelayed_KeepsThePriority(t *testing.T) {
	q := ours(workqueue.Config[string]{AddSupersedesDelayed: true, Queue: workqueue.NewFair(
		workqueue.FairConfig[string]{}, workqueue.Config[string]{})})
	defer q.ShutDown()
	q.AddAfterWithPriority("a", time.Hour, 3)
	q.AddWithPriority("a", -100)
	q.AddAfterWithPriority("b", time.Hour, -100)
	q.Add("b")
	require.Empty(t, q.Snapshot().Waiting)
	for _, want := range []int{3, 0} {
		_, priority, _ := q.GetWithPriority()
		require.Equal(t, want, priority)
	}
}

// AddWithOpts lets an ErrorRateLimiter decide by the error.
func TestAddWithOpts_PassesTheError(t *testing.T) {
	limiter := workqueue.NewTypedErrorTypeRateLimiter[string](workqueue.ErrorDelays{
		Timeout: time.Minute, BaseDelay: time.Hour, MaxDelay: 2 * time.Hour})
	q := workqueue.NewTypedRateLimitingQueue[string](limiter, workqueue.Config[string]{})
	defer q.ShutDown()
	now := time.Now()
	q.AddWithOpts(workqueue.AddOpts{RateLimited: true, Err: timeout{}}, "a")
	q.AddWithOpts(workqueue.AddOpts{RateLimited: true, Err: errors.New("no")}, "b")
	waiting := q.Snapshot().Waiting
	require.WithinDuration(t, now.Add(time.Minute), waiting[0].Due, time.Minute/2)
	require.WithinDuration(t, now.Add(time.Hour), waiting[1].Due, time.Minute)
}

type timeout struct{}

func (timeout) Error() string { return "timeout" }
func (timeout) Timeout() bool { return true }
