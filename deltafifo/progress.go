// SPDX-License-Identifier: Apache-2.0

package deltafifo

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
)

// version is a resourceVersion, and a time at which the collection was at it.
type version struct {
	resourceVersion string
	asOf            time.Time // zero if it is not known
}

// progress knows when the first list has been processed, and up to which resourceVersion every
// change has been processed. The queue's mu guards all fields except completes. Receiving from
// synced needs no lock.
//
// A version that is received becomes the mark of the newest item of the queue: it is reached when
// that item, and so every item before it, has been processed. If the queue is empty it is reached
// at once, or after the items that are being processed.
//
//	P1  synced is closed  <=>  begun && firstQueued == 0 && firstProcessing == 0
//	P2  every change up to the mark of an item is in that item or in one before it
//	P3  completes is the newest mark of the items that are being processed, until it is reported;
//	    late is a version that came since, while the queue was empty
type progress struct {
	begun           bool // the first list, or a change before it, has arrived
	firstQueued     int  // items of the first list that are queued
	firstProcessing int  // items of the first list that are being processed
	synced          chan struct{}

	// reached is Options.Reached. If it is nil, versions are not tracked.
	reached         func(resourceVersion string, asOf time.Time)
	ordered         bool // changes arrive in the order of their resourceVersions
	failed          bool // a change was lost after the newest list
	processing      bool
	late, completes *version // the consumer alone uses completes while it processes
}

// begin notes that the first list is the n items of the queue. Calls after the first are ignored.
func (p *progress) begin(n int) {
	if p.begun {
		return
	}
	p.begun, p.firstQueued = true, n
	p.checkSynced()
}

func (p *progress) checkSynced() {
	if p.begun && p.firstQueued == 0 && p.firstProcessing == 0 && !p.isSynced() {
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

// start notes that the n oldest items are removed to be processed, and returns how many of them are
// of the first list. mark is the newest of their marks, or nil.
func (p *progress) start(n int, mark *version) (first int) {
	first = min(n, p.firstQueued)
	p.firstQueued -= first
	p.firstProcessing += first
	p.processing = true
	if !p.failed {
		p.completes = mark
	}
	return first
}

// reportStored reports the version that the items in processing complete.
func (p *progress) reportStored() {
	if v := p.completes; v != nil {
		p.completes = nil
		p.reached(v.resourceVersion, v.asOf)
	}
}

// finish notes that items are processed, first of which are of the first list. After a failure the
// consumer lacks a change, so no version is reached before the next list.
func (p *progress) finish(first int, ok bool) {
	p.processing = false
	p.firstProcessing -= first
	p.checkSynced()
	if !ok {
		p.failed, p.ordered = true, false
		p.completes, p.late = nil, nil
	}
	if p.late != nil {
		p.completes, p.late = p.late, nil
	}
	p.reportStored()
}

// repaired notes that a list arrives. It reports whether that repairs a loss: then the marks of the
// items before the list do not count.
func (p *progress) repaired() (loss bool) {
	loss = p.failed
	p.failed = false
	return loss
}

// changed returns the version of an object that was just queued, or nil. A change before the first
// list has none, because the order of such changes is not known.
func (p *progress) changed(obj any) *version {
	if p.ordered {
		if m, err := meta.Accessor(obj); err == nil && m.GetResourceVersion() != "" {
			return &version{resourceVersion: m.GetResourceVersion()}
		}
	}
	return nil
}

// received returns the version up to which every change has been queued, or nil. "" is the version
// of a server that has none; it is reported too, because what was lost before a list is repaired
// then.
func (p *progress) received(resourceVersion string, asOf time.Time) *version {
	if p.reached == nil || p.failed {
		return nil
	}
	p.ordered = resourceVersion != "" && resourceVersion != "0"
	return &version{resourceVersion, asOf}
}

// await reports v when nothing is being processed. The queue is empty.
func (p *progress) await(v *version) {
	if p.processing {
		p.late = v
	} else {
		p.reached(v.resourceVersion, v.asOf)
	}
}
