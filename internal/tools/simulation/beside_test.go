// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"time"
)

// slowPop makes the queue of a process late, and lets a resync or a list meet what is queued.
func (w *world) slowPop(p *process, s step) {
	p.popTakes.Store(int64(time.Second + s.d/8))
	w.during(3*s.d, func() { p.popTakes.Store(0) })
	if next := p.duties.nextResync(); s.n%2 == 0 && !next.IsZero() {
		w.advance(time.Until(next) - time.Second/2)
		w.burst(s.n)
		return
	}
	w.burst(s.n)
	w.advance(100 * time.Millisecond)
	serverKinds["expire"](w, p, s)
	w.delete(s.n)
	w.delete(s.n + 1)
}

// doInside makes the next call of a callback do something else besides. In a call of the store, a
// goroutine does it, because the store is called under locks of the informer.
func (w *world) doInside(p *process, s step) {
	name, do := w.deed(p, s)
	where := []string{"handler", "transform", "store"}[s.n/8%3]
	done := func() {
		w.note("%s: %s in a call of a %s", p.name, name, where)
		w.cover("inside " + where)
		w.cover("inside: " + name)
		do()
	}
	switch where {
	case "handler":
		p.inHandler.set(done)
	case "transform":
		p.inTransform.set(done)
	case "store":
		p.inStore.set(func() {
			go done()
			yield()
		})
		if s.n%2 == 0 { // the store is replaced
			serverKinds["expire"](w, p, s)
		}
	}
}

// deed returns something that a program may do at any time, in any goroutine.
func (w *world) deed(p *process, s step) (name string, do func()) {
	switch s.n % 8 {
	case 0, 1:
		return "add a handler", func() { p.addHandler(s.n, 0) }
	case 2, 3:
		return "remove a handler", func() { p.handlerAt(s.n).remove() }
	case 4, 5:
		return "add an index", p.addIndex
	case 6:
		return "status", func() {
			if p.impl == ours {
				_ = p.informer.Status()
			}
			_ = p.informer.GetStore().List()
			for _, h := range p.allHandlers() {
				_ = h.handle.Status()
			}
			ctx, cancel := context.WithCancel(w.ctx)
			cancel()
			_ = p.informer.WaitForResourceVersion(ctx, "999999999")
		}
	}
	return "stop", func() {
		p.stopped.Store(true)
		p.cancel()
	}
}
