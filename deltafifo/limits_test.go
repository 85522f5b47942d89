// SPDX-License-Identifier: Apache-2.0

package deltafifo

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/cache"
)

// smallLimits lowers the limits of the queues until the test ends, so that a few objects cross
// them.
func smallLimits(t testing.TB) {
	long, batch := longQueue, maxBatchLen
	t.Cleanup(func() { longQueue, maxBatchLen = long, batch })
	longQueue, maxBatchLen = 2, 3
}

// limitBatches gives a queue of client-go the same limit.
func limitBatches(q *cache.RealFIFO) *cache.RealFIFO {
	size := reflect.ValueOf(q).Elem().FieldByName("batchSize")
	*(*int)(unsafe.Pointer(size.UnsafeAddr())) = maxBatchLen
	return q
}

// Scripts that fill and drain the queue again and again cross each limit, and have the same outcome
// as on the model and on client-go.
func TestModel_CrossesLimits(t *testing.T) {
	smallLimits(t)
	for name, k := range kinds {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			for seed := range uint64(20) {
				rnd := rand.New(rand.NewPCG(seed, 2))
				var script []operation
				for range 6 {
					for range 1 + rnd.IntN(20) {
						script = append(script, operationOf(
							byte(rnd.IntN(13)), byte(rnd.Uint32()), byte(len(script))))
					}
					for range rnd.IntN(25) {
						op := operation{"pop", nil}
						if rnd.IntN(2) == 0 {
							op = operation{"batch", nil}
						}
						script = append(script, op)
					}
				}
				impls := []string{naive, ours, clientGo}
				if k.losing {
					impls = impls[:2] // TestDifference_LostKeyFailsNoReplace
				}
				compare(t, k, impls, script)
			}
		})
	}
}

// A queue that becomes empty after more keys than it keeps room for loses no key, and is usable as
// before: with each number of keys around the limit, three times.
func TestLongQueueKeepsItsContent(t *testing.T) {
	for _, n := range []int{longQueue, longQueue + 1, 2 * longQueue} {
		f := NewDeltaFIFO(Options{})
		f.Close() // a Pop of a lost key must not block
		for round := range 3 {
			var want, got []string
			for i := range n {
				key := fmt.Sprintf("ns/%d", i)
				want = append(want, fmt.Sprintf("%s: added@%d", key, round))
				require.NoError(t, f.Add(object(key, fmt.Sprint(round))))
			}
			for range n {
				_, err := f.Pop(func(obj any, _ bool) error {
					got = append(got, describe(obj.(Deltas)))
					return nil
				})
				require.NoError(t, err)
			}
			require.Equal(t, want, got)
			f.checkLaws(t)
		}
	}
}
