// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
)

const mega = 1 << 20

var sink []byte

func TestLive_CountsReachableMemory(t *testing.T) {
	before := Live()
	kept := make([]byte, 20*mega)
	assert.InDelta(t, 20*mega, Live()-before, mega)
	runtime.KeepAlive(kept)
	assert.InDelta(t, 0, Live()-before, mega)
}

// Garbage does not count; memory that was reachable at some time does.
func TestPeak_IsOfReachableObjects(t *testing.T) {
	before := Live()
	peak := Peak(func() {
		kept := make([]byte, 50*mega)
		for range 40 {
			sink = make([]byte, mega)
			runtime.GC() // no collection by itself: memory allocated during one would count
		}
		runtime.KeepAlive(kept)
		sink = nil
	}) - before
	assert.InDelta(t, 51*mega, peak, 8*mega)
}

func TestHeapInUse_CountsGarbageToo(t *testing.T) {
	before := Live()
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // stay until it has been sampled
	used := HeapInUse(func() {
		for range 100 {
			sink = make([]byte, mega)
		}
	}) - before
	sink = nil
	assert.Greater(t, used, int64(90*mega))
}
