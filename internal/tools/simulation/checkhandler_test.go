// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"maps"
	"time"
)

// checkCalls checks the new calls of the handler: invariants 2 and 3.
func (h *handler) checkCalls() {
	calls := h.takeCalls()
	h.mu.Lock()
	removed, until := h.removed, h.until
	h.mu.Unlock()
	if h.shutDown && len(calls) > 0 {
		h.p.violate(8, "%s is called after its ShutdownChan closed: %v", h.name, calls[0])
	}
	for _, n := range calls {
		if removed && (h.over || n.at.After(until)) { // it may begin at the same instant
			h.p.violate(8, "%s is called after it was removed: %v", h.name, n)
		}
		if why := h.illegal(n); why != "" {
			h.p.violate(2, "%s got %v: %s (it knows version %d; history %v)",
				h.name, n, why, h.known[n.key], h.p.seeing.byKey[n.key])
			if h.p.violated() {
				return
			}
		}
		h.checkLookup(n)
		h.apply(n)
	}
	h.over = removed && !time.Now().Before(until)
	h.shutDown = h.shutDown || isClosed(h.handle.ShutdownChan())
	h.checkDrained()
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// illegal returns why the notification cannot follow those before it; "" if it can.
func (h *handler) illegal(n notification) string {
	known, exists := h.known[n.key]
	state, happened := h.p.seeing.exact(n.key, n.rv)
	// In these cases a delete of an unknown object is reported.
	unseen := h.options.Coalesce || h.p.queue == "real" || h.p.refused || h.p.impl == clientGo
	switch {
	case n.tombstone && n.rv == 0:
		return "the tombstone has no object"
	case !happened:
		return "the server never had this version"
	case n.rv < h.last[n.key]:
		return "the versions go back"
	case n.what != "delete" && !h.p.seeing.selects(state):
		return "the object does not exist in this version"
	case n.what == "add" && exists:
		return "an add of a known object"
	case n.what == "add" && n.rv == h.last[n.key]:
		return "an add of the version that was deleted"
	case n.what == "update" && !exists:
		return "an update of an unknown object"
	case n.what == "update" && n.oldRV != known:
		return "the old object is another"
	case n.what == "update" && n.old != n.uid && h.options.SplitRecreated:
		return "the update hides a delete"
	case n.what == "delete" && !exists && !unseen:
		return "a delete of an unknown object"
	case n.tombstone && exists && n.rv != known && !h.p.refused: // it has the newest queued object
		return "the tombstone has another object"
	case n.tombstone && !h.p.seeing.leftAfter(n.key, n.rv):
		return "the object was not deleted"
	case n.what == "delete" && !n.tombstone && h.p.seeing.selects(state):
		return "the object exists in this version"
	case n.what == "update" && n.oldRV == n.rv && h.options.SkipUnchanged && h.neverResyncs():
		return "an unchanged object"
	}
	return ""
}

func (h *handler) neverResyncs() bool {
	return h.period() == 0
}

// checkLookup checks what the store held during the call. An object that was dropped may be back in
// the same version: then the handler gets an add.
func (h *handler) checkLookup(n notification) {
	left := h.p.seeing.leftAfter(n.key, n.rv)
	h.back[n.key] = n.lookup == n.rv && n.tombstone && h.p.seeing.wasOut(n.key, n.rv)
	switch {
	case h.back[n.key]:
	case n.lookup == 0 && n.what != "delete" && !left,
		n.lookup != 0 && n.lookup < n.rv,
		n.lookup == n.rv && n.what == "delete":
		h.p.violate(3, "%s got %v: the store was older", h.name, n)
	}
}

func (h *handler) apply(n notification) {
	h.history.calls = append(h.history.calls, n)
	if n.what == "update" && n.rv == n.oldRV {
		h.repeats[n.key] = append(h.repeats[n.key], n.at)
	} else {
		h.changed[n.key], h.repeats[n.key] = n.at, nil
	}
	h.last[n.key] = n.rv
	if n.what == "delete" {
		delete(h.known, n.key)
		if h.p.seeing.wasOut(n.key, n.rv) { // it may come back
			delete(h.last, n.key)
		}
		return
	}
	h.known[n.key] = n.rv
}

// checkSynced checks that HasSynced becomes true only when the handler knows every object that has
// been in the collection since before the first list, or since the handler was added.
func (h *handler) checkSynced() {
	if h.synced || !h.handle.HasSynced() {
		return
	}
	h.synced = true
	h.p.cover("handler synced")
	for key := range h.p.seeing.byKey {
		rv := h.p.seeing.at(key, h.from)
		if rv == 0 || h.p.seeing.leftAfter(key, rv) {
			continue
		}
		if _, ok := h.known[key]; !ok {
			h.p.violate(4, "%s has synced, and does not know %s@%d", h.name, key, rv)
		}
	}
}

// checkQuiet checks that the handler has got the final state.
func (h *handler) checkQuiet() {
	if h.isRemoved() {
		if !h.shutDown {
			h.p.violate(8, "%s was removed, and its ShutdownChan is open", h.name)
		}
		return
	}
	if want := h.p.seeing.latest(); !maps.Equal(want, h.known) {
		h.p.violate(2, "%s knows %v, want %v", h.name, h.known, want)
	}
	for key, is := range h.back {
		if is && !h.options.Coalesce { // which may merge the add with a delete
			h.p.violate(3, "%s got a tombstone of %s, and the store has it", h.name, key)
		}
	}
	if h.p.impl != clientGo && !h.p.has(spaced) { // its queue is not wrapped
		h.checkResyncs()
	}
	status := h.handle.Status()
	if !status.HasSynced || status.Pending > 0 && h.p.resync == "once" { // not in a resync
		h.p.violate(4, "%s is not up to date: %+v", h.name, status)
	}
}
