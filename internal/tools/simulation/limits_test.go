// SPDX-License-Identifier: Apache-2.0

package simulation

import _ "unsafe" // for linkname

// The sizes from which on a queue, a batch or a log works in another way. A few objects must reach
// them, or the simulation would not know those ways: see init.

//go:linkname longQueue example.com/informerstack/deltafifo.longQueue
var longQueue int

//go:linkname maxBatchLen example.com/informerstack/deltafifo.maxBatchLen
var maxBatchLen int

//go:linkname keptItems example.com/informerstack/workqueue.keptItems
var keptItems int

//go:linkname keptSlots example.com/informerstack/workqueue.keptSlots
var keptSlots int

//go:linkname batchLen example.com/informerstack/informer.batchLen
var batchLen int

//go:linkname recentLen example.com/informerstack/store/compact.recentLen
var recentLen int

//go:linkname dictionaryBytes example.com/informerstack/store/compact.dictionaryBytes
var dictionaryBytes int

func init() {
	longQueue, maxBatchLen = 3, 3
	keptItems, keptSlots = 3, 3
	batchLen = 2
	recentLen, dictionaryBytes = 3, 1<<10
}
