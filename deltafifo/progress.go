// SPDX-License-Identifier: Apache-2.0

package deltafifo

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
)

// version is a resourceVersion, and a time when the collection was at it.
type version struct {
	resourceVersion string
	asOf            time.Time // zero if it is not known
}

// progress knows when the first list has been processed, and up to which resourceVersion every
// change has been processed. It counts items, which are processed in the order in which they were
// added. The queue's mu guards all fields except completes. Receiving from synced needs no lock.
//
//	P1  the items after the first processed ones, up to added, are queued or being processed
//	P2  synced is closed  <=>  !initial  <=>  begun && processed >= firstList
//	P3  every change up to the version of a mark is in the items up to the mark
//	P4  completes is the newest version that the items in processing reach, until it is reported
type progress struct {
	added, processed int // items so far

	initial   bool // the first list has not been processed
	begun     bool // the first list, or a change before it, has arrived
	firstList int  // the items up to its end
	synced    chan struct{}

	// reached is Options.Reached. If it is nil, versions are not tracked.
	reached   func(resourceVersion string, asOf time.Time)
	ordered   bool     // changes arrive in the order of their resourceVersions
	marks     []mark   // oldest first, each with more items than the one before
	failed    int      // the items up to the newest that failed; 0 if a list has repaired that
	completes *version // the consumer alone uses it while it processes
}

// mark is a version that is reached when the first items have been processed, unless one of them
// has failed since the last list. A list replaces everything, so its own version is reached even if
// one of the first apart items has failed: those that hold no part of it.
type mark struct {
	version
	items int
	apart int // 0 if the version is not that of a list
}

// Done returns a channel that closes when HasSynced becomes true.
func (p *progress) Done() <-chan struct{} { return p.synced }

// HasSynced is true once the content of the first Replace has been popped and processed. It is true
// at once if an Add, Update or Delete came before the first Replace. It does not block.
func (p *progress) HasSynced() bool {
	select {
	case <-p.synced:
		return true
	default:
		return false
	}
}

// Stored calls Reached now, and not after the process function has returned. A process function may
// call it once, when it has applied all its deltas. An informer calls it before it notifies
// handlers.
func (p *progress) Stored() {
	if v := p.completes; v != nil {
		p.completes = nil
		p.reached(v.resourceVersion, v.asOf)
	}
}

// begin notes that the first list, or a change before it, has arrived. The items up to firstList
// are those of the list. Calls after the first are ignored.
func (p *progress) begin(firstList int) {
	if !p.begun {
		p.begun, p.firstList = true, firstList
		p.checkSynced()
	}
}

func (p *progress) checkSynced() {
	if p.initial && p.begun && p.processed >= p.firstList {
		p.initial = false
		close(p.synced)
	}
}

// changed notes that obj was just added. Its version is reached with it, but not before the first
// list, because the order of such changes is not known.
func (p *progress) changed(obj any) {
	if !p.begun {
		p.begin(0)
	}
	if !p.ordered {
		return
	}
	if m, err := meta.Accessor(obj); err == nil && m.GetResourceVersion() != "" {
		p.received(version{resourceVersion: m.GetResourceVersion()}, 0)
	}
}

// replaced notes that a list was just added. The first apart items hold no part of it.
func (p *progress) replaced(resourceVersion string, apart int) {
	p.begin(p.added)
	p.received(version{resourceVersion: resourceVersion}, apart)
}

// received notes that every change up to v has been added, see mark. "" is the version of a server
// without versions; it is reported too, because a list repairs what was lost before.
func (p *progress) received(v version, apart int) {
	if p.reached == nil {
		return
	}
	p.ordered = v.resourceVersion != "" && v.resourceVersion != "0"
	m := mark{v, p.added, apart}
	if last := len(p.marks) - 1; last >= 0 && p.marks[last].items == p.added {
		m.apart = max(apart, p.marks[last].apart)
		p.marks[last] = m
	} else {
		p.marks = append(p.marks, m)
	}
	if p.processed == p.added {
		p.take(p.processed)
		p.Stored()
	}
}

// take takes the marks up to items. The newest that counts is reported next.
func (p *progress) take(items int) {
	for len(p.marks) > 0 && p.marks[0].items <= items {
		if m := &p.marks[0]; m.apart >= p.failed {
			p.failed, p.completes = 0, &m.version
		}
		p.marks = p.marks[1:]
	}
}
