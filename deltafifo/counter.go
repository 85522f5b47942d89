// SPDX-License-Identifier: Apache-2.0

package deltafifo

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
)

// counter counts the items that pass through a queue. So it knows when the first list has been
// processed, and up to which resourceVersion every change has been processed.
//
// Items are numbered in the order in which they were queued, starting at 0. An item is a key of a
// DeltaFIFO or a delta of a RealFIFO. The queue's mu guards all fields except stored. Receiving
// from synced needs no lock.
//
//	P1  popped <= queued; the items popped, ..., queued-1 are in the queue
//	P2  processing holds the first number of each batch that is being processed, in order;
//	    all items before done() are processed
//	P3  synced is closed  <=>  begun && done() >= firstEnd
//	P4  versions[i].end > done(), and the ends ascend strictly: every change up to versions[i] is
//	    processed when the items before its end are processed
//	P5  stored is the version that the only batch in processing completes, until it is reported
type counter struct {
	queued, popped uint64
	processing     []uint64 // more than one only if several consumers process without the lock

	begun    bool          // the first list, or a change before it, has arrived
	firstEnd uint64        // the number after the first list's last item
	synced   chan struct{} // closed once

	reached  func(resourceVersion string, asOf time.Time) // nil: versions are not tracked
	ordered  bool                                         // changes arrive in resourceVersion order
	failed   bool                                         // a change was lost after the newest list
	versions fifo[receivedVersion]
	stored   receivedVersion // used by the consumer alone while it processes
}

// receivedVersion is a resourceVersion. Every change up to it was queued before the item end.
type receivedVersion struct {
	end             uint64
	resourceVersion string
	asOf            time.Time
}

// len returns how many items are in the queue.
func (c *counter) len() int { return int(c.queued - c.popped) }

// done returns the number of the first item that has not been processed.
func (c *counter) done() uint64 {
	if len(c.processing) > 0 {
		return c.processing[0]
	}
	return c.popped
}

// begin notes that the items before end are the first list. Calls after the first are ignored.
func (c *counter) begin(end uint64) {
	if c.begun {
		return
	}
	c.begun, c.firstEnd = true, end
	c.checkSynced()
}

func (c *counter) checkSynced() {
	if c.begun && c.done() >= c.firstEnd && !c.isSynced() {
		close(c.synced)
	}
}

func (c *counter) isSynced() bool {
	select {
	case <-c.synced:
		return true
	default:
		return false
	}
}

// firstLeft returns how many items of the first list are in the queue.
func (c *counter) firstLeft() int {
	if !c.begun || c.popped >= c.firstEnd {
		return 0
	}
	return int(c.firstEnd - c.popped)
}

// pop notes that n items are removed to be processed. It returns the number of the first one.
func (c *counter) pop(n int) (first uint64) {
	first = c.popped
	c.popped += uint64(n)
	c.processing = append(c.processing, first)
	if len(c.processing) == 1 {
		c.stored = c.versionBefore(c.popped)
	}
	return first
}

// versionBefore removes the versions that are reached when the items before end are processed, and
// returns the newest of them.
func (c *counter) versionBefore(end uint64) (newest receivedVersion) {
	n := 0
	for _, v := range c.versions.items() {
		if v.end > end {
			break
		}
		newest, n = v, n+1
	}
	c.versions.pop(n)
	return newest
}

// reportStored reports the version that the batch in processing completes.
func (c *counter) reportStored() {
	if c.stored.end == 0 {
		return
	}
	v := c.stored
	c.stored = receivedVersion{}
	c.reached(v.resourceVersion, v.asOf)
}

// finish notes that the batch which begins with first is processed. After a failure the consumer
// lacks a change, so no resourceVersion is reached before the next list.
func (c *counter) finish(first uint64, ok bool) {
	i := slices.Index(c.processing, first)
	c.processing = slices.Delete(c.processing, i, i+1)
	c.checkSynced()
	if !ok {
		c.forgetVersions()
		c.stored, c.failed = receivedVersion{}, true
	}
	if v := c.versionBefore(c.done()); v.end > 0 {
		c.stored = v
	}
	c.reportStored()
}

// replace notes that a list arrives, which repairs any loss before it.
func (c *counter) replace() {
	c.forgetVersions()
	c.failed = false
}

// listed notes that a list at resourceVersion was queued. The first one is the first list. The time
// at which the list was current is not known before receive is called.
func (c *counter) listed(resourceVersion string) {
	c.begin(c.queued)
	c.receive(resourceVersion, time.Time{})
}

func (c *counter) forgetVersions() {
	c.ordered = false
	c.versions = fifo[receivedVersion]{}
}

// changed notes the resourceVersion of an object that was just queued. It ignores changes before
// the first list, because their order is not known.
func (c *counter) changed(obj any) {
	if !c.ordered {
		return
	}
	if m, err := meta.Accessor(obj); err == nil && m.GetResourceVersion() != "" {
		c.await(receivedVersion{end: c.queued, resourceVersion: m.GetResourceVersion()})
	}
}

// receive notes that every change up to resourceVersion has been queued. "" is the version of a
// server that has none; it is reported too, because what was lost before a list is repaired then.
func (c *counter) receive(resourceVersion string, asOf time.Time) {
	if c.reached == nil || c.failed {
		return
	}
	c.ordered = resourceVersion != "" && resourceVersion != "0"
	c.await(receivedVersion{end: c.queued, resourceVersion: resourceVersion, asOf: asOf})
}

// await reports v once the items before its end are processed.
func (c *counter) await(v receivedVersion) {
	versions := c.versions.items()
	last := len(versions) - 1
	switch {
	case v.end <= c.done():
		c.reached(v.resourceVersion, v.asOf)
	case last >= 0 && versions[last].end == v.end:
		versions[last] = v
	default:
		c.versions.push(v)
	}
}
