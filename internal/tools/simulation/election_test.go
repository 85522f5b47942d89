// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"sync"
	"time"

	"example.com/informerstack/leaderelection"
)

// ledger is a storage that keeps the newest fencing token, and refuses writes with an older one.
type ledger struct {
	mu     sync.Mutex
	newest leaderelection.FencingToken
	by     string
}

// write returns another process that has written with the same token, or "".
func (l *ledger) write(name string, token leaderelection.FencingToken) (accepted bool, by string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if token.Before(l.newest) {
		return false, ""
	}
	if token == l.newest && l.by != name {
		return true, l.by
	}
	l.newest, l.by = token, name
	return true, ""
}

// isOf reports whether a process was the last one that wrote.
func (l *ledger) isOf(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.by == name
}

// mayLead returns why a process other than this one may lead, as the server knows it, or "".
func (p *process) mayLead() string {
	lease := newLease()
	if err := p.server.Get(lease); err != nil {
		return err.Error()
	}
	spec := lease.Spec
	switch {
	case spec.HolderIdentity == nil || *spec.HolderIdentity == "":
		return "the lease has no holder"
	case *spec.HolderIdentity != p.name:
		return "the holder is " + *spec.HolderIdentity
	case time.Since(spec.RenewTime.Time) >= leaseDuration:
		return "the lease has expired"
	}
	return ""
}

// mayBegin checks what must hold when a reconcile begins, whether or not its context has ended.
func (p *process) mayBegin(key string) {
	if !p.informer.HasSynced() {
		p.violate(4, "%s begins %s before its informer has synced", p.name, key)
	}
	if p.elector == nil {
		return
	}
	if why := p.mayLead(); why != "" {
		p.violate(6, "%s begins %s: %s", p.name, key, why)
	}
}

// mayAct checks invariant 6 when a reconcile does something. Its goroutine asks its context first.
func (p *process) mayAct(ctx context.Context, what string) {
	if p.elector == nil || ctx.Err() != nil {
		return
	}
	if why := p.mayLead(); why != "" {
		p.violate(6, "%s %s: %s", p.name, what, why)
	}
	token, ok := leaderelection.FencingTokenFromContext(ctx)
	if !ok {
		p.violate(6, "%s %s without a token", p.name, what)
		return
	}
	p.token.Store(&token)
	accepted, by := p.tokens.write(p.name, token)
	if !accepted {
		p.violate(6, "%s %s with the old token %v", p.name, what, token)
	}
	if by != "" {
		p.violate(6, "%s %s with the token of %s, %v", p.name, what, by, token)
	}
}

// checkElection checks that each live context belongs to the only process that may lead.
func (w *world) checkElection() {
	leaders := 0
	for _, p := range append(w.processes, w.killed...) {
		if p.elector == nil {
			continue
		}
		if p.elector.IsLeader() {
			leaders++
		}
		p.work.mu.Lock()
		for ctx, key := range p.work.live {
			if isClosed(ctx.Done()) {
				continue
			}
			if why := p.mayLead(); why != "" {
				p.violate(6, "%s has a live context for %s: %s", p.name, key, why)
			}
		}
		p.work.mu.Unlock()
	}
	if leaders > 1 {
		w.violate(6, "%d processes lead", leaders)
	}
	for _, p := range w.processes {
		p.writeLate()
	}
}

// writeLate checks that the ledger refuses the token of a former leader.
func (p *process) writeLate() {
	token := p.token.Load()
	if token == nil || p.tokens.isOf(p.name) {
		return
	}
	if accepted, _ := p.tokens.write(p.name, *token); accepted {
		p.violate(6, "%s writes with the old token %v", p.name, token)
	}
}

// checkOneLeader checks that a process leads when all is well.
func (w *world) checkOneLeader() {
	candidates, leaders := 0, 0
	for _, p := range w.processes {
		if p.elector != nil && (!p.isGone() || p.informer.HasSynced()) { // others wait for that
			candidates++
			if p.elector.IsLeader() {
				leaders++
			}
		}
	}
	if candidates > 0 && leaders != 1 {
		w.violate(6, "%d of %d candidates lead", leaders, candidates)
	}
}
