// SPDX-License-Identifier: Apache-2.0

package deltafifo

// firstList knows when everything of the first Replace was consumed. The queue's mu guards it; only done is read without.
//
//	F1  done is closed  <=>  begun && queued == 0 && processing == 0
//	F2  the first list's items are the oldest in the queue: no other item comes out while queued > 0
type firstList struct {
	done       chan struct{} // closed once
	begun      bool          // something was added, or the first Replace came
	queued     int           // items of the first list that wait
	processing int           // items of it that were popped and whose process function has not returned
}

func newFirstList() firstList { return firstList{done: make(chan struct{})} }

// begin notes that n items make up the first list. Only the first call counts.
func (l *firstList) begin(n int) {
	if l.begun {
		return
	}
	l.begun, l.queued = true, n
	l.check()
}

// take notes that n items are popped, and returns how many of them finish must be called with.
func (l *firstList) take(n int) int {
	n = min(n, l.queued)
	l.queued -= n
	l.processing += n
	return n
}

// finish notes that n items of the first list are processed.
func (l *firstList) finish(n int) {
	if n == 0 {
		return
	}
	l.processing -= n
	l.check()
}

func (l *firstList) check() {
	if l.queued == 0 && l.processing == 0 {
		close(l.done)
	}
}

func (l *firstList) isDone() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}
