// SPDX-License-Identifier: Apache-2.0

package deltafifo

// first knows when the first list has been processed. It counts items, which are processed in the
// order in which they were queued. The queue's mu guards all fields; receiving from synced needs no
// lock.
//
//	P1  of all items that were queued, the oldest, processed of them, were processed; the others
//	    are queued or being processed
//	P2  synced is closed  <=>  !initial  <=>  begun && processed >= firstList
type first struct {
	queued, processed int // items so far

	initial   bool // the first list has not been processed
	begun     bool // the first list, or a change before it, has arrived
	firstList int  // the items up to its end
	synced    chan struct{}
}

// Done returns a channel that closes when HasSynced becomes true.
func (f *first) Done() <-chan struct{} { return f.synced }

// HasSynced is true once the content of the first Replace has been popped and processed. It is true
// at once if an Add, Update or Delete came before the first Replace. It does not block.
func (f *first) HasSynced() bool {
	select {
	case <-f.synced:
		return true
	default:
		return false
	}
}

// begin notes that the first list, or a change before it, has arrived. The items up to firstList
// are those of the list. Calls after the first are ignored.
func (f *first) begin(firstList int) {
	if !f.begun {
		f.begun, f.firstList = true, firstList
		f.checkSynced()
	}
}

func (f *first) checkSynced() {
	if f.initial && f.begun && f.processed >= f.firstList {
		f.initial = false
		close(f.synced)
	}
}
