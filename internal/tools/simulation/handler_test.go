// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"sync"
	"time"
	"weak"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/informer"
	"example.com/informerstack/store"
)

// notification is one call of a handler.
type notification struct {
	at        time.Time
	what      string // add, update or delete
	key       string
	rv, oldRV uint64
	uid, old  string // the UIDs of the two objects
	tombstone bool
	lookup    uint64 // the version in the store during the call, or 0
}

func (n notification) String() string {
	what := n.what
	if n.tombstone {
		what = "tombstone"
	}
	return fmt.Sprintf("%s %s %d->%d, the store has %d", what, n.key, n.oldRV, n.rv, n.lookup)
}

// longPeriod is a resync period that is no multiple of the informer's.
var longPeriod = 100 * time.Second

// handler records its calls, and the script's goroutine checks them.
type handler struct {
	p       *process
	name    string
	options informer.HandlerOptions
	slow    time.Duration // how long each call takes
	handle  informer.ResourceEventHandlerRegistration
	from    uint64 // what the informer's store held when the handler was added
	added   time.Time
	history *history

	mu      sync.Mutex
	calls   []notification // that were not checked yet
	begun   int            // how many calls have begun
	panics  int            // how many of the next calls panic
	removed bool
	until   time.Time         // removed: when its last call may begin
	owed    map[string]uint64 // removed with a DrainTimeout: what it should still get
	early   int               // how many calls had begun before it was removed

	// Only the script's goroutine uses these.
	synced   bool                   // HasSynced was seen
	shutDown bool                   // ShutdownChan was seen closed
	over     bool                   // its calls were checked after until
	known    map[string]uint64      // what the handler should believe: versions by key
	last     map[string]uint64      // the newest version of each key, also of deleted ones
	back     map[string]bool        // dropped, and stored again during the call
	changed  map[string]time.Time   // when it last got a change of each key
	repeats  map[string][]time.Time // when it got the same version again
}

// addHandler adds a handler with the options of the bits of n. Its calls take some time. Any
// goroutine may call addHandler.
func (p *process) addHandler(n int, slow time.Duration) {
	if p.impl != ours {
		n &= 16 // client-go has no other option, and not each of its resyncs is exact
	}
	h := &handler{
		p: p, name: fmt.Sprintf("%s.h%d", p.name, p.added.Add(1)-1), from: p.started,
		slow: slow, added: time.Now(), known: map[string]uint64{}, last: map[string]uint64{},
		back: map[string]bool{}, changed: map[string]time.Time{}, repeats: map[string][]time.Time{},
		options: informer.HandlerOptions{
			Coalesce: n&1 != 0, SplitRecreated: n&2 != 0, SkipUnchanged: n&4 != 0,
			SkipPanics: n&8 != 0,
		},
	}
	if n&16 != 0 {
		never := time.Duration(0)
		h.options.ResyncPeriod = &never
	}
	if n&48 == 48 {
		h.options.ResyncPeriod = &longPeriod
	}
	if n&32 != 0 {
		h.options.DrainTimeout = 5 * time.Second
	}
	if p.informer.HasSynced() {
		h.from = number(p.informer.Health().ResourceVersion)
	}
	handle, err := p.informer.AddEventHandlerWithOptions(p.devtools.handler(h.name, h), h.options)
	switch {
	case err != nil && p.informer.IsStopped(): // beside this step
		return
	case err != nil:
		p.violate(3, "%s: add a handler: %v", h.name, err)
		return
	}
	h.handle = handle
	h.history = &history{
		handler: h.name, impl: p.impl, gate: p.gate, seeing: p.seeing, added: h.added,
	}
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	p.report.histories = append(p.report.histories, h.history)
	p.handlers = append(p.handlers, h)
}

// allHandlers returns the handlers, also those that were removed.
func (p *process) allHandlers() []*handler {
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	return slices.Clone(p.handlers)
}

// handlerAt returns one of the handlers.
func (p *process) handlerAt(n int) *handler {
	all := p.allHandlers()
	return all[n%len(all)]
}

// remove removes the handler. Any goroutine may call it. The handler's backlog has each object that
// the store holds before.
func (h *handler) remove() {
	h.mu.Lock()
	early := h.begun
	h.mu.Unlock()
	owed := h.p.stored()
	if err := h.p.informer.RemoveEventHandler(h.handle); err != nil {
		h.p.violate(3, "%s: remove the handler: %v", h.name, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.removed {
		return
	}
	h.removed, h.until = true, time.Now().Add(h.options.DrainTimeout)
	h.history.cut = true
	if h.options.DrainTimeout > 0 {
		h.owed, h.early = owed, early
	}
}

func (h *handler) isRemoved() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.removed
}

func (h *handler) heal() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.panics = 0
}

func (h *handler) OnAdd(obj any, _ bool) { h.called("add", nil, obj) }

func (h *handler) OnUpdate(oldObj, newObj any) { h.called("update", oldObj, newObj) }

func (h *handler) OnDelete(obj any) { h.called("delete", nil, obj) }

func (h *handler) called(what string, oldObj, obj any) {
	n := notification{at: time.Now(), what: what}
	if tombstone, ok := obj.(store.DeletedFinalStateUnknown); ok {
		n.tombstone, n.key, obj = true, tombstone.Key, tombstone.Obj
	}
	if meta, ok := obj.(metav1.Object); ok {
		n.key = meta.GetNamespace() + "/" + meta.GetName()
		n.rv, n.uid = number(meta.GetResourceVersion()), string(meta.GetUID())
	}
	if meta, ok := oldObj.(metav1.Object); ok {
		n.oldRV, n.old = number(meta.GetResourceVersion()), string(meta.GetUID())
	}
	if stored, ok, _ := h.p.informer.GetStore().GetByKey(n.key); ok {
		n.lookup = number(stored.(metav1.Object).GetResourceVersion())
	}
	if old, ok := oldObj.(*corev1.ConfigMap); ok && n.oldRV != n.rv {
		h.p.replaces(old)
	}
	h.p.note("%s: %v", h.name, n)
	h.p.inHandler.run()
	h.p.cover("handler " + what)
	if n.tombstone {
		h.p.cover("handler tombstone")
	}
	h.mu.Lock()
	h.calls = append(h.calls, n)
	h.begun++
	panics := h.panics > 0
	h.panics--
	h.mu.Unlock()
	if !isOfCrowd(n.key) {
		time.Sleep(h.slow + time.Duration(h.p.hangs.Load()))
	}
	if panics {
		h.p.cover("met badhandler")
		panic(errFault)
	}
}

// replaces notes that an object is no longer in the store.
func (p *process) replaces(old *corev1.ConfigMap) {
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	p.replaced = append(p.replaced, weak.Make(old))
}

// takeCalls returns the calls since the last time.
func (h *handler) takeCalls() []notification {
	h.mu.Lock()
	defer h.mu.Unlock()
	calls := h.calls
	h.calls = nil
	return calls
}
