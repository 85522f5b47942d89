// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"example.com/informerstack/apitest"
	"example.com/informerstack/reflector"
)

// The requests that a process may send in a minute. The waits of a reflector's backoff are 0.8 s,
// 1.6 s and so on, but a watch that ends after a change is opened again at once, so each change of
// the last minutes may cost one request more. An elector makes an attempt of up to three requests
// every retryPeriod.
const (
	requestsPerMinute = 60
	refusalsPerMinute = 24 // that are not due to a change
	electionPerMinute = 3*int(time.Minute/retryPeriod) + 3
)

// checkAlways checks the invariants that hold at any time.
func (p *process) checkAlways() {
	if isClosed(p.ended) {
		return
	}
	for _, h := range p.allHandlers() {
		h.checkCalls()
		h.checkSynced()
	}
	p.checkVersion()
	if p.has(spaced) { // it has several reflectors
		p.checkSpaces()
	} else {
		p.waits.check(p)
	}
	if p.impl != clientGo && !p.has(spaced) {
		p.checkDuties(p.informer.Health())
		p.checkArrived()
	}
	p.work.checkAlways()
	p.checkDevtools()
	requests, refusals, election := p.gate.lastMinute()
	if p.has(inTurn) {
		requests, refusals = requests/2, refusals/2 // it asks for a number before each list
	}
	if p.has(spaced) {
		requests, refusals = requests/len(allSpaces), refusals/(len(allSpaces)+1)
	}
	if requests > min(requestsPerMinute+len(p.truth.times), storm) ||
		refusals > refusalsPerMinute || election > electionPerMinute {
		p.violate(7, "%s sent %d lists and watches, of which %d were refused, and %d requests for"+
			" the lease, in a minute", p.name, requests, refusals, election)
	}
}

// stored returns the versions in the store by key.
func (p *process) stored() map[string]uint64 {
	all := map[string]uint64{}
	for _, obj := range p.informer.GetStore().List() {
		cm := obj.(*corev1.ConfigMap)
		all[cm.Namespace+"/"+cm.Name] = number(cm.ResourceVersion)
	}
	return all
}

// checkVersion checks that the store holds every change up to the version and the time that it
// reports, and each object in a state that it had.
func (p *process) checkVersion() {
	health := p.informer.Health()
	p.short = p.short && health.Reflector.Phase == reflector.BackingOff
	rv := number(health.ResourceVersion)
	stored := p.stored()
	for key, have := range stored {
		if s, ok := p.seeing.exact(key, have); !ok || !p.seeing.selects(s) {
			p.violate(1, "%s stores %s@%d, which never existed", p.name, key, have)
		}
	}
	synced := p.informer.HasSynced()
	if !synced && !p.synced {
		return
	}
	if !p.synced {
		p.synced = true
		p.cover("informer synced")
		if rv < p.started && (rv > 0 || p.seeing.spaces == nil) { // it may be zero
			p.violate(4, "%s has synced at %d, and started at %d", p.name, rv, p.started)
		}
	}
	if !synced {
		p.violate(4, "%s: HasSynced was true and is not", p.name)
	}
	if p.isGone() {
		p.checkGone(len(stored), health.CurrentAsOf)
	}
	dropped := p.seeing.deletedAfter
	if p.has(custom) { // its version does not move while the kind is gone
		dropped = p.seeing.leftAfter
	}
	for key := range p.seeing.byKey {
		if !p.owes(key) {
			continue
		}
		have, exists := stored[key]
		want := p.seeing.at(key, rv)
		if have < want && !(!exists && dropped(key, want)) ||
			want == 0 && exists && have < rv {
			p.violate(4, "%s reports version %d, and stores %s@%d, want %d or newer", p.name, rv,
				key, have, want)
		}
		p.checkAsOf(4, key, have, health.CurrentAsOf)
		if !p.met && !p.short && p.impl != clientGo {
			p.checkAsOf(10, key, have, time.Now().Add(-currentWithin))
		}
	}
}

// checkAsOf checks that the store holds every change of key that the server had long before asOf.
func (p *process) checkAsOf(invariant int, key string, have uint64, asOf time.Time) {
	if asOf.IsZero() || p.late || !p.lagEnd.IsZero() || !asOf.After(p.caughtUp) {
		return
	}
	if s := p.seeing.space(key); s != nil && (invariant == 10 || p.has(custom)) &&
		(s.met || !s.isWell() || !asOf.After(s.since)) {
		return
	}
	newest, gone := uint64(0), false
	for _, s := range slices.Backward(p.seeing.byKey[key]) {
		if s.seen.Before(asOf) {
			newest, gone = s.rv, !p.seeing.selects(s)
			break
		}
	}
	if have < newest && !(have == 0 && (gone || p.seeing.deletedAfter(key, newest))) {
		p.violate(invariant, "%s is current as of %v, and stores %s@%d, want %d", p.name,
			asOf.Sub(p.begun), key, have, newest)
	}
}

// checkQuiet checks what must hold when all faults ended long ago.
func (p *process) checkQuiet() {
	health := p.informer.Health()
	watches := len(p.server.Watches(onlyOf(p, "watch")))
	switch {
	case p.has(spaced):
		p.checkQuietSpaces(watches)
	case p.isGone():
		p.checkQuietGone()
	case watches != 1 || health.Reflector.Phase != reflector.Watching:
		p.violate(7, "%s has %d open watches and is %s", p.name, watches, health.Reflector.Phase)
	}
	if want, got := p.seeing.latest(), p.stored(); !maps.Equal(want, got) {
		p.violate(1, "%s stores %v, want %v", p.name, got, want)
		return
	}
	p.checkObjects()
	if !p.informer.HasSynced() {
		if p.isGone() { // it is required
			return
		}
		p.violate(4, "%s has not synced", p.name)
	}
	if err := health.Fresh(time.Now(), 3*time.Minute); err != nil && p.impl != clientGo {
		p.violate(4, "%s: %v", p.name, err)
	}
	for _, h := range p.allHandlers() {
		h.checkQuiet()
	}
	p.work.checkQuiet()
}

// checkObjects compares each stored object with the server's, and the indexes with the objects.
func (p *process) checkObjects() {
	indexer := p.informer.GetIndexer()
	p.checkIndexes(indexer)
	for _, obj := range indexer.List() {
		cm := obj.(*corev1.ConfigMap)
		want := p.ofKind(&corev1.ConfigMap{ObjectMeta: *cm.ObjectMeta.DeepCopy()})
		if err := p.server.Get(want); err != nil {
			p.violate(1, "%s stores %s: %v", p.name, cm.Name, err)
			continue
		}
		marked(want)
		if a, b := content(want), content(cm); a != b {
			p.violate(1, "%s stores %s, want %s", p.name, b, a)
		}
	}
}

func content(cm *corev1.ConfigMap) string {
	return fmt.Sprintf("%s/%s %v %v %v", cm.Namespace, cm.Name, cm.Labels, cm.Annotations, cm.Data)
}

// checkNothingRuns checks that no goroutine of the bubble is left but the script's.
func (w *world) checkNothingRuns() {
	left := bubbleGoroutines()
	if len(left) > 0 {
		w.violate(8, "%d goroutines are left:\n%s", len(left), strings.Join(left, "\n\n"))
	}
	if open := w.server.Watches(apitest.Match{}); len(open) > 0 {
		w.violate(8, "%d watches are open", len(open))
	}
}
