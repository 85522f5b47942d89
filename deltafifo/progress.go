// SPDX-License-Identifier: Apache-2.0

package deltafifo

import (
	"slices"
	"time"
)

// progress counts what passes through a queue: when the first list has been processed, and up to
// which resourceVersion everything has.
//
// Items are numbered in the order in which they were queued, starting at 0. An item is an entry
// of a DeltaFIFO or a delta of a RealFIFO. The queue's mu guards all fields; synced may be
// received from without it.
//
//	P1  popped <= queued; the items popped, ..., queued-1 are in the queue
//	P2  processing holds the first number of each batch that is being processed, in order;
//	    all items before done() are processed
//	P3  synced is closed  <=>  begun && done() >= firstEnd
//	P4  versions[i].end > done(), and the ends ascend strictly: everything up to versions[i] is
//	    processed when the items before its end are
//	P5  stored is the version that the only batch in processing completes, until it is reported
type progress struct {
	queued, popped uint64
	processing     []uint64 // more than one only if several consumers process without the lock

	begun    bool          // the first list, or a change before it, has arrived
	firstEnd uint64        // the number after the first list's last item
	synced   chan struct{} // closed once

	reached  func(resourceVersion string, asOf time.Time) // nil: versions are not tracked
	ordered  bool                                         // changes arrive in resourceVersion order
	failed   bool                                         // a change was lost and no list has come since
	versions fifo[receivedVersion]
	stored   receivedVersion // belongs to the consumer while it processes
}

// receivedVersion is a resourceVersion up to which everything was queued before the item end.
type receivedVersion struct {
	end             uint64
	resourceVersion string
	asOf            time.Time
}

func newProgress(reached func(string, time.Time)) progress {
	return progress{synced: make(chan struct{}), reached: reached}
}

// done returns the number of the first item that has not been processed.
func (p *progress) done() uint64 {
	if len(p.processing) > 0 {
		return p.processing[0]
	}
	return p.popped
}

// begin notes that the first list is what was queued from the start up to the item before end.
// Only the first call counts.
func (p *progress) begin(end uint64) {
	if p.begun {
		return
	}
	p.begun, p.firstEnd = true, end
	p.checkSynced()
}

func (p *progress) checkSynced() {
	if p.begun && p.done() >= p.firstEnd && !p.isSynced() {
		close(p.synced)
	}
}

func (p *progress) isSynced() bool {
	select {
	case <-p.synced:
		return true
	default:
		return false
	}
}

// firstLeft returns how many items of the first list are in the queue.
func (p *progress) firstLeft() int {
	if !p.begun || p.popped >= p.firstEnd {
		return 0
	}
	return int(p.firstEnd - p.popped)
}

// pop notes that n items are taken out to be processed, and returns the first one's number.
func (p *progress) pop(n int) (first uint64) {
	first = p.popped
	p.popped += uint64(n)
	p.processing = append(p.processing, first)
	if len(p.processing) == 1 {
		p.stored = p.versionBefore(p.popped)
	}
	return first
}

// versionBefore takes out the newest version that is reached when the items before end are.
func (p *progress) versionBefore(end uint64) (newest receivedVersion) {
	n := 0
	for _, v := range p.versions.items() {
		if v.end > end {
			break
		}
		newest, n = v, n+1
	}
	p.versions.pop(n)
	return newest
}

// reportStored reports the version that the batch in processing completes.
func (p *progress) reportStored() {
	if p.stored.end == 0 {
		return
	}
	v := p.stored
	p.stored = receivedVersion{}
	p.reached(v.resourceVersion, v.asOf)
}

// finish notes that the batch which begins with first is processed. A batch that failed leaves
// the consumer without a change, so that no resourceVersion is reached before the next list.
func (p *progress) finish(first uint64, ok bool) {
	i := slices.Index(p.processing, first)
	p.processing = slices.Delete(p.processing, i, i+1)
	p.checkSynced()
	if !ok {
		p.forgetVersions()
		p.stored, p.failed = receivedVersion{}, true
	}
	if v := p.versionBefore(p.done()); v.end > 0 {
		p.stored = v
	}
	p.reportStored()
}

// replace notes that a list arrives: it repairs what was lost before it. Its resourceVersion is
// not known until receive is called.
func (p *progress) replace() {
	p.forgetVersions()
	p.failed = false
}

func (p *progress) forgetVersions() {
	p.ordered = false
	p.versions = fifo[receivedVersion]{}
}

// changed notes the resourceVersion of a change that was just queued. Until the first receive
// after a list, the order of changes is not known, and so it says nothing.
func (p *progress) changed(resourceVersion string) {
	if p.ordered && resourceVersion != "" {
		p.await(receivedVersion{end: p.queued, resourceVersion: resourceVersion})
	}
}

// receive notes that every change up to resourceVersion has been queued.
func (p *progress) receive(resourceVersion string, asOf time.Time) {
	if p.reached == nil || p.failed || resourceVersion == "" {
		return
	}
	p.ordered = resourceVersion != "0"
	p.await(receivedVersion{end: p.queued, resourceVersion: resourceVersion, asOf: asOf})
}

// await reports v once the items before its end are processed.
func (p *progress) await(v receivedVersion) {
	versions := p.versions.items()
	last := len(versions) - 1
	switch {
	case v.end <= p.done():
		p.reached(v.resourceVersion, v.asOf)
	case last >= 0 && versions[last].end == v.end:
		versions[last] = v
	default:
		p.versions.push(v)
	}
}
