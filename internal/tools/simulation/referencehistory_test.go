// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// history is what a handler received, with what explains the changes that it did not receive.
type history struct {
	handler, impl string
	gate          *gate
	seeing        view
	added         time.Time
	cut           bool // the handler was removed, or its process ended, before the script's end
	calls         []notification
}

// listing is a list from its request to its end. A change may be hidden by it if it was made before
// the end, and the next change of the object was delivered after the request.
type listing struct {
	sent  time.Time
	once  sync.Once
	ended time.Time
}

// endOfList is what ends the initial events of a streaming list.
var endOfList = []byte("initial-events-end")

// listing returns a listing if r is a list.
func (g *gate) listing(r *http.Request) *listing {
	if !isFetch(r) || !isList(r) {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	l := &listing{sent: time.Now()}
	g.listings = append(g.listings, l)
	if g.lists != nil {
		g.lists()
	}
	return l
}

// isList reports whether a request for the objects is a list, perhaps a streaming one.
func isList(r *http.Request) bool {
	query := r.URL.Query()
	return query.Get("watch") == "" || query.Get("sendInitialEvents") == "true"
}

func (l *listing) end() {
	if l != nil {
		l.once.Do(func() { l.ended = time.Now() })
	}
}

// read notes the end of a streaming list.
func (l *listing) read(part []byte) {
	if l != nil && bytes.Contains(part, endOfList) {
		l.end()
	}
}

// state is a state of an object that a user made: what a handler should learn.
type state struct {
	what string // the user's write, or "gone"
	made time.Time
}

// states returns the states of key in the collection, and the number of the state that each version
// belongs to: a write of a controller does not make another state.
func (v view) states(key string) (all []state, byVersion map[uint64]int) {
	all, byVersion = []state{{what: "gone"}}, map[uint64]int{}
	for _, s := range v.byKey[key] {
		what := "gone"
		if v.selects(s) {
			what = s.write
		}
		if all[len(all)-1].what != what {
			all = append(all, state{what, s.seen})
		}
		byVersion[s.rv] = len(all) - 1
	}
	return all, byVersion
}

// delivered returns the notification of each state; zero if the state was not delivered.
func (h *history) delivered(all []state, byVersion map[uint64]int, key string) []notification {
	first := make([]notification, len(all))
	last := 0
	for _, c := range h.calls {
		if c.key != key {
			continue
		}
		n := byVersion[c.rv]
		if c.what == "delete" {
			for n = max(n, last); n < len(all)-1 && all[n].what != "gone"; {
				n++
			}
		}
		if last = n; first[n].at.IsZero() {
			first[n] = c
		}
	}
	return first
}

// maySkip reports whether a reason is known why the handler did not get state n.
func (h *history) maySkip(n int, all []state, got []notification) bool {
	next := time.Now() // the object came and went
	isDelivered := func(d notification) bool { return !d.at.IsZero() }
	later := slices.IndexFunc(got[n:], isDelivered)
	if later >= 0 {
		next = got[n+later].at
	}
	isFirst, isGone := !slices.ContainsFunc(got[:n], isDelivered), all[n].what == "gone"
	return later < 0 && h.cut ||
		isFirst && (isGone || !all[n].made.After(h.added)) ||
		h.listed(all[n].made, next)
}

// listed reports whether a list may show a change that was made at one time, and no older one, to a
// handler that got it, or the one after it, at another.
func (h *history) listed(made, delivered time.Time) bool {
	return slices.ContainsFunc(h.gate.listings, func(l *listing) bool {
		return !l.sent.After(delivered) && (l.ended.IsZero() || !l.ended.Before(made))
	})
}

// compare returns each state that only one of two handlers got, or that only one of them got as a
// tombstone, for no reason that is known.
func (h *history) compare(other *history) (differences []string) {
	for key := range h.seeing.byKey {
		all, versions := h.seeing.states(key)
		same, theirs := other.seeing.states(key)
		if what(all) != what(same) {
			return []string{fmt.Sprintf("harness: users wrote %s and %s", what(all), what(same))}
		}
		a, b := h.delivered(all, versions, key), other.delivered(same, theirs, key)
		for n := 1; n < len(all); n++ {
			differences = append(differences, h.differs(key, n, all, a, b)...)
			differences = append(differences, other.differs(key, n, same, b, a)...)
		}
	}
	return differences
}

// differs returns how the handler got state n otherwise than the other one, if that is its fault.
func (h *history) differs(key string, n int, all []state, got, others []notification) []string {
	problem := ""
	switch {
	case got[n].at.IsZero() && !others[n].at.IsZero() && !h.maySkip(n, all, got):
		problem = "did not get"
	case got[n].tombstone && !others[n].tombstone && !h.listed(all[n].made, got[n].at):
		problem = "got a tombstone for"
	default:
		return nil
	}
	return []string{fmt.Sprintf("history: %s on %s %s %s %s, made %v after the handler was added",
		h.handler, h.impl, problem, key, all[n].what, all[n].made.Sub(h.added))}
}

func what(all []state) string {
	var names []string
	for _, s := range all {
		names = append(names, s.what)
	}
	return strings.Join(names, " ")
}

func (w *world) countRequests() {
	counted := map[*gate]bool{}
	for _, h := range w.report.histories {
		if !counted[h.gate] {
			counted[h.gate] = true
			w.report.requests += h.gate.total
		}
	}
}

// noteRecovery notes how long it took after all faults until the store was current.
func (p *process) noteRecovery() {
	if p.healed.IsZero() || !maps.Equal(p.seeing.latest(), p.stored()) {
		return
	}
	if took := time.Since(p.healed); took > 0 {
		p.report.recoveries = append(p.report.recoveries, took)
	}
	p.healed = time.Time{}
}
