// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
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
	sent, ended time.Time
}

// endOfList is what ends the initial events of a streaming list.
var endOfList = []byte("initial-events-end")

// lists returns a listing if r is a list.
func (g *gate) lists(r *http.Request) *listing {
	query := r.URL.Query()
	isList := query.Get("watch") == "" || query.Get("sendInitialEvents") == "true"
	if !isList || r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, "/configmaps") {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	l := &listing{sent: time.Now()}
	g.listings = append(g.listings, l)
	return l
}

func (l *listing) end() {
	if l != nil && l.ended.IsZero() {
		l.ended = time.Now()
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

// delivered returns when the handler learned of each state; zero if it did not.
func (h *history) delivered(all []state, byVersion map[uint64]int, key string) []time.Time {
	times := make([]time.Time, len(all))
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
		if last = n; times[n].IsZero() {
			times[n] = c.at
		}
	}
	return times
}

// skipped returns why the handler did not learn of state n: "" if nothing explains it.
func (h *history) skipped(n int, all []state, times []time.Time) string {
	next := time.Time{}
	for _, at := range times[n+1:] {
		if !at.IsZero() {
			next = at
			break
		}
	}
	ended := next.IsZero()
	if ended {
		next = time.Now() // the object came and went
	}
	first := !slices.ContainsFunc(times[:n], func(at time.Time) bool { return !at.IsZero() })
	made := all[n].made
	switch {
	case ended && h.cut:
		return "the handler has ended"
	case first && all[n].what == "gone":
		return "the handler never had the object"
	case first && !made.After(h.added):
		return "the handler was added later"
	}
	for _, l := range h.gate.listings {
		if !l.sent.After(next) && (l.ended.IsZero() || !l.ended.Before(made)) {
			return "a list"
		}
	}
	return ""
}

// compareHistories returns each state that only one of two handlers learned of and that nothing
// explains.
func compareHistories(a, b *history) (differences []string) {
	for key := range a.seeing.byKey {
		all, versions := a.seeing.states(key)
		others, theirs := b.seeing.states(key)
		if what(all) != what(others) {
			return []string{fmt.Sprintf("harness: the users wrote %s and %s", what(all), what(others))}
		}
		had, has := a.delivered(all, versions, key), b.delivered(others, theirs, key)
		for n := range all {
			var why string
			var missing *history
			switch {
			case n == 0 || had[n].IsZero() == has[n].IsZero():
				continue
			case had[n].IsZero():
				missing, why = a, a.skipped(n, all, had)
			default:
				missing, why = b, b.skipped(n, others, has)
			}
			if why == "" {
				differences = append(differences, fmt.Sprintf("history: %s on %s did not get %s %s",
					missing.handler, missing.impl, key, all[n].what))
			}
		}
	}
	return differences
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
	if !p.healed.IsZero() && maps.Equal(p.seeing.latest(), p.stored()) {
		p.report.recoveries = append(p.report.recoveries, time.Since(p.healed))
		p.healed = time.Time{}
	}
}
