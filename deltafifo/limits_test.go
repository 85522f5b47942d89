// SPDX-License-Identifier: Apache-2.0

package deltafifo

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"unsafe"

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
	compareRandom(t, 20, func(rnd *rand.Rand) (script []operation) {
		for range 6 {
			for range 1 + rnd.IntN(20) {
				script = append(script, operationOf(
					byte(rnd.IntN(13)), byte(rnd.Uint32()), byte(len(script))))
			}
			for range rnd.IntN(25) {
				pops := []string{"pop", "batch"}
				script = append(script, op(pops[rnd.IntN(2)]))
			}
		}
		return script
	})
}
