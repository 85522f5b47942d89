// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// The objects that users write are few, so that many steps meet the same one.
const objectCount = 6

// generate makes the script of a seed. Each seed has its own mix of steps, without about half of
// the faults: a fault that is everywhere hides what another one shows.
func generate(seed uint64) script {
	r := rand.New(rand.NewPCG(seed, 1))
	pick := func(names ...string) string { return names[r.IntN(len(names))] }
	var s script
	groups := rand.New(rand.NewPCG(seed, 2)) // a script does not depend on them otherwise
	fairness := rand.New(rand.NewPCG(seed, 3))
	elected := r.IntN(2) == 0
	count := 1 + r.IntN(3)
	if groups.IntN(10) == 0 {
		count += 4 // a fleet, of which the script leaves most alone
	}
	for range count {
		p := setup{
			fetch: pick("list", "watchlist", "stream"), queue: pick("delta", "real"),
			election: "none", selects: pick("all", "all", "red"),
			pages: pick("whole", "whole", "pages"), resync: pick("once", "once", "resync"),
			group: []string{alone, shared, shared}[groups.IntN(3)],
		}
		if elected {
			p.election = pick("plain", "grace", "drain")
		}
		var traits []string
		for _, trait := range []string{bare, deadline, mapped, packed, plain} {
			if groups.IntN(4) == 0 {
				traits = append(traits, trait)
			}
		}
		if fairness.IntN(3) == 0 {
			traits = append(traits, fair)
		}
		p.traits = strings.Join(traits, "+")
		s.setups = append(s.setups, p)
	}
	var bag []string
	for _, kind := range stepKinds() {
		weight := steps[kind].weight
		if !steps[kind].always && r.IntN(2) == 0 {
			weight = 0
		}
		bag = append(bag, slices.Repeat([]string{kind}, weight)...)
	}
	for range 1 + r.IntN(3) {
		for range 10 + r.IntN(30) {
			s.steps = append(s.steps, step{
				wait: randomWait(r), kind: bag[r.IntN(len(bag))], p: r.IntN(3), n: r.IntN(64),
				d: time.Duration(1+r.IntN(400)) * 100 * time.Millisecond,
			})
		}
		s.steps = append(s.steps, step{wait: time.Second, kind: "quiet", n: r.IntN(64)})
	}
	for _, rare := range []struct {
		kind string
		in   int // one of so many scripts
	}{{"crowd", 5}, {"hours", 10}} { // an election of many hours would take too long
		if groups.IntN(rare.in) == 0 && !elected {
			at := r.IntN(len(s.steps))
			s.steps = slices.Insert(s.steps, at, step{kind: rare.kind, n: r.IntN(64)})
		}
	}
	if fairness.IntN(4) == 0 {
		at := fairness.IntN(len(s.steps))
		s.steps = slices.Insert(s.steps, at, step{kind: "tenants", n: fairness.IntN(64)})
	}
	return s
}

// addSteps keeps the steps before the first quiet time, and adds some of other kinds: a few of them
// at the beginning, before any fault.
func (s *script) addSteps(r *rand.Rand, kinds ...string) {
	end := slices.IndexFunc(s.steps, func(st step) bool { return st.kind == "quiet" })
	s.steps = slices.DeleteFunc(s.steps[:end+1], func(st step) bool { return st.kind == "hours" })
	add := func(at int) {
		s.steps = slices.Insert(s.steps, at, step{
			wait: randomWait(r), kind: kinds[r.IntN(len(kinds))], p: r.IntN(2), n: r.IntN(64),
			d: time.Duration(1+r.IntN(400)) * 100 * time.Millisecond,
		})
	}
	for range 4 {
		add(r.IntN(len(s.steps)))
	}
	for range 4 {
		add(0)
	}
}

// randomWait returns no time as often as a short and a long one: what happens at the same instant
// is a race.
func randomWait(r *rand.Rand) time.Duration {
	switch r.IntN(4) {
	case 0:
		return 0
	case 1:
		return time.Duration(r.IntN(100)) * time.Millisecond
	case 2:
		return time.Duration(r.IntN(3000)) * time.Millisecond
	}
	return time.Duration(r.IntN(20000)) * time.Millisecond
}
