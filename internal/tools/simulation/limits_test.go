// SPDX-License-Identifier: Apache-2.0

package simulation

import _ "unsafe" // for linkname

// The sizes from which a queue, a batch, a log, a compact store or a watch works in another way.
// init lowers them, so that a few objects reach them.

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

//go:linkname ownChunks example.com/informerstack/internal/readahead.ownChunks
var ownChunks int

//go:linkname readAheadBytes example.com/informerstack/internal/readahead.defaultBytes
var readAheadBytes int

func init() {
	for limit, small := range map[*int]int{
		&longQueue: 3, &maxBatchLen: 3, &keptItems: 3, &keptSlots: 3, &batchLen: 2,
		&recentLen: 3, &dictionaryBytes: 1 << 10, &ownChunks: 1, &readAheadBytes: 32 << 10,
	} {
		if *limit <= small { // a variable that does not exist links to a new one, which is 0
			panic("a limit is not that of its package: see the names above")
		}
		*limit = small
	}
}
