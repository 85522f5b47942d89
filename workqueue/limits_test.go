// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/workqueue"
)

// Waves of items, many more than the limits, leave no item behind and return none twice: added
// directly, after a delay, and again while workers have them.
func TestModel_WavesOfItems(t *testing.T) {
	workqueue.SmallLimits(t)
	for seed := range uint64(5) {
		onBoth(t, func(t *testing.T, impl string, q queue) {
			random, m := rand.New(rand.NewPCG(seed, 3)), newModel()
			has := func() {
				got := next(q)
				require.Equal(t, m.get(), got)
				if random.IntN(4) == 0 { // it changes while a worker has it
					q.Add(got)
					m.add(got)
				}
				q.Done(got)
				m.done(got)
			}
			for wave := range 5 {
				for i := range 1 + random.IntN(200) {
					item := fmt.Sprint(random.IntN(300))
					if random.IntN(3) > 0 {
						q.Add(item)
						m.add(item)
						continue
					}
					d := time.Duration(1+i) * time.Millisecond // no two are due at once
					q.AddAfter(item, d)
					m.addAfter(item, d)
				}
				for len(m.queue) > random.IntN(4) {
					has()
				}
				checkLaws(t, q)
				after(time.Second)
				m.sleep()
				for len(m.queue) > 0 {
					has()
				}
				require.Zero(t, q.Len(), "after wave %d", wave)
				checkLaws(t, q)
			}
		})
	}
}

// remembered is what a limiter must know of an item: its failures, the time of the last one, and
// the number of failures of all items until then.
type remembered struct {
	count int
	at    time.Time
	total int
}

// R1 to R4 with random failures, pauses and successes of many items: a count is exact while it is
// recent, and afterwards exact or 0. The generations are replaced by age and by size.
func TestLimiter_Model(t *testing.T) {
	const maxLen = 40
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 4))
			limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[int](
				time.Second, 40*time.Second)
			workqueue.SetMaxRemembered(limiter, maxLen)
			known, total := map[int]remembered{}, 0
			check := func(item int) {
				t.Helper()
				k, got := known[item], limiter.NumRequeues(item)
				recent := time.Since(k.at) < workqueue.Remembered && total-k.total < maxLen/2
				if recent || got != 0 {
					require.Equal(t, k.count, got, "item %d, %v ago", item, time.Since(k.at))
					return
				}
				delete(known, item)
			}
			for range 2000 {
				item := random.IntN(10 << (seed % 5))
				check(item)
				switch op := random.IntN(20); {
				case op < 16:
					before := known[item].count
					total++
					known[item] = remembered{before + 1, time.Now(), total}
					want := min(time.Second<<min(before, 30), 40*time.Second)
					require.Equal(t, want, limiter.When(item))
				case op < 18:
					limiter.Forget(item)
					delete(known, item)
					require.Zero(t, limiter.NumRequeues(item))
				case op == 18:
					time.Sleep(time.Duration(random.Int64N(int64(time.Hour))))
				default:
					time.Sleep(time.Duration(random.Int64N(int64(workqueue.Remembered))))
				}
				workqueue.CheckLimiter(t, limiter)
			}
			for item := range 160 {
				check(item)
			}
		})
	}
}

// An empty queue keeps its map, or its heap, for up to as many items as its limit says. The largest
// number since the map is new counts, and not the last.
func TestLimits_AreExact(t *testing.T) {
	workqueue.SmallLimits(t) // 2
	synctest.Test(t, func(t *testing.T) {
		drain := func(q interface {
			workqueue.TypedInterface[int]
			CheckLaws(testing.TB)
		}) {
			for q.Len() > 0 {
				serve(q)
			}
			q.CheckLaws(t)
		}
		for n, want := range []int{0, 1, 2, 0, 0} {
			q := workqueue.NewTyped(workqueue.Config[int]{})
			d := workqueue.NewTypedDelayingQueue(workqueue.Config[int]{})
			for i := range n {
				q.Add(i)
				d.AddAfter(i, time.Second)
			}
			after(time.Second)
			drain(q)
			drain(d)
			assert.Equal(t, want, q.MostDirty(), "%d items", n)
			assert.Equal(t, want, d.Slots(), "%d items", n)
			d.ShutDown()
		}
		q := workqueue.NewTyped(workqueue.Config[int]{})
		for i := range 3 {
			q.Add(i)
		}
		for i := range 3 {
			item, _ := q.Get()
			if i == 2 {
				q.Add(3)
			}
			q.Done(item)
		}
		assert.Equal(t, 3, q.MostDirty())
		drain(q)
		assert.Zero(t, q.MostDirty())
	})
}
