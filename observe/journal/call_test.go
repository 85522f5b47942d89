// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Versions are read as they were, whether they are numbers or not.
func TestVersions_AreThoseOfTheObjects(t *testing.T) {
	numbers := []string{"", "1", "65", "9999999999999999999"[:19]}
	others := []string{"0", "007", "10000000000000000000", "18446744073709551616", "-1", "+1", "1a",
		"version", strings.Repeat("9", 30)}
	for _, was := range slices.Concat(numbers, others) {
		for _, is := range slices.Concat(numbers, others) {
			v := newVersions(was, is)
			gotWas, gotIs := v.read()
			require.Equal(t, []string{was, is}, []string{gotWas, gotIs})
			areNumbers := slices.Contains(numbers, was) && slices.Contains(numbers, is)
			require.Equal(t, areNumbers, v.texts == nil, "%q %q", was, is)
		}
	}
}

// remembered is what a plain slice keeps of the calls for an object.
func remembered(calls []*call, c *call) []*call {
	changes := 0
	kept := []*call{c}
	for _, old := range slices.Backward(calls) {
		switch {
		case old.isResync() && c.isResync():
			continue
		case !old.isResync() && !c.isResync() && changes == maxLast-1:
			continue
		case !old.isResync():
			changes++
		}
		kept = append(kept, old)
	}
	slices.Reverse(kept)
	return kept
}

// The last changes and the last resync of an object are those of a slice that is made anew each
// time, and so are their bytes.
func TestModel_ObjectAgainstASlice(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 0))
		var o object
		var naive []*call
		bytes := 0
		for i := range 100 {
			c := &call{kind: Updated, bytes: int32(random.IntN(100))}
			if random.IntN(3) == 0 {
				c.kind = Resync
			}
			naive = remembered(naive, c)
			bytes += o.remember(c)
			require.Equal(t, i+1, c.number)
			require.Equal(t, len(naive), len(o.last), "seed %d", seed)
			sum := 0
			for n, kept := range naive {
				require.Same(t, kept, o.last[n], "seed %d", seed)
				require.True(t, kept.isLast)
				sum += int(kept.bytes)
			}
			require.Equal(t, sum, bytes, "seed %d", seed)
		}
	}
}

// ownersOf finds managers by sorting.
func ownersOf(before, after []metav1.ManagedFieldsEntry) []string {
	sorted := slices.Clone(after)
	slices.SortStableFunc(sorted, func(a, b metav1.ManagedFieldsEntry) int {
		return managedAt(&b).Compare(managedAt(&a))
	})
	changed := slices.DeleteFunc(slices.Clone(sorted), func(e metav1.ManagedFieldsEntry) bool {
		return slices.ContainsFunc(before, func(old metav1.ManagedFieldsEntry) bool {
			return isSameEntry(&old, &e)
		})
	})
	isOnly := len(sorted) == 1 ||
		len(sorted) > 1 && !managedAt(&sorted[0]).Equal(managedAt(&sorted[1]))
	if len(changed) == 0 && isOnly {
		changed = sorted[:1]
	}
	var names []string
	for _, e := range changed[:min(len(changed), maxCauses)] {
		names = append(names, e.Manager)
	}
	return slices.Compact(names)
}

// The managers of random entries are those that sorting finds.
func TestModel_ManagersAgainstSorting(t *testing.T) {
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 0))
		entries := func() (all []metav1.ManagedFieldsEntry) {
			for range random.IntN(8) {
				e := metav1.ManagedFieldsEntry{Manager: fmt.Sprint("manager-", random.IntN(3)),
					Operation: metav1.ManagedFieldsOperationType(fmt.Sprint(random.IntN(2)))}
				if n := random.IntN(5); n > 0 {
					at := metav1.Unix(int64(n), 0)
					e.Time = &at
				}
				all = append(all, e)
			}
			return all
		}
		before := entries()
		after := slices.Concat(before[:random.IntN(len(before)+1)], entries())
		m := managers{}
		m.find(before, after)
		require.Equal(t, ownersOf(before, after), nilIfEmpty(m.names[:m.n]), "seed %d", seed)
	}
}

func nilIfEmpty(names []string) []string {
	if len(names) == 0 {
		return nil
	}
	return names
}

// A worker and a handler that hang do not keep a recording that was forgotten, and a key that was
// taken before does not belong to the next recording.
func TestJournal_KeepsNothingOfARecordingThatHasEnded(t *testing.T) {
	recorded(t, func(t *testing.T, w *world) {
		keys, objects := w.journal.keys, w.journal.objects
		w.handle = func(key string) {
			w.queue.Add(key)
			_, _ = w.queue.Get()
			time.Sleep(25 * time.Hour)
			w.journal.Record(time.Hour)
			for _, worker := range w.journal.workers {
				assert.Nil(t, worker.taken)
			}
		}
		w.handler.OnAdd(settings("1"), false)
		assert.NotSame(t, keys, w.journal.keys)
		assert.NotSame(t, objects, w.journal.objects)
		w.queue.Forget("default/settings")
		w.queue.Done("default/settings")
		assert.Empty(t, w.journal.workers)
		assert.Empty(t, w.journal.goroutines)
		assert.Empty(t, w.journal.keys.entries)
		_, queues := w.journal.About("default/settings")
		assert.Empty(t, queues)
		synctest.Wait()
	})
}

// A key that a handler adds again for an object has one entry, and another key has its own.
func TestJournal_KnowsEachKeyThatAnObjectAdds(t *testing.T) {
	w := newRecorded(t)
	for i, key := range []string{"a", "a", "b", "a"} {
		w.handle = func(string) { w.queue.Add(key) }
		w.handler.OnAdd(settings(fmt.Sprint(i+1)), false)
		r := w.reconcile(t, nil)
		assert.Equal(t, fmt.Sprint(i+1), r.Causes[0].Call.ResourceVersion)
		assert.Equal(t, []string{"work " + key}, r.Causes[0].Call.Added)
		assert.Equal(t, key, r.Key)
	}
	assert.Len(t, w.journal.keys.entries, 2)
	assert.Equal(t, 4, w.journal.Facts(1).Arrows[0].Adds)
}
