// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/informerstack/apitest"
)

// A contest is a script with processes that are candidates for a lease, and nothing else. It runs
// on the elector of each implementation. A calm contest leaves so much time between its steps that
// each step has one outcome on both electors: a fault is far shorter or far longer than a term.
const (
	calmWait   = 200 * time.Second
	shortFault = 4 * time.Second
	longFault  = 90 * time.Second
)

// contestKinds are the steps of a contest. A step concerns the leader (p0) or another candidate.
var contestKinds = map[string]func(*world, *candidate, step){
	"stop":     func(_ *world, c *candidate, _ step) { c.stop() },
	"crash":    func(_ *world, c *candidate, _ step) { c.exit() },
	"isolate":  func(w *world, c *candidate, s step) { w.isolate(c, s) },
	"overload": func(w *world, c *candidate, s step) { w.failsLease(c, s, leaseErrors[s.n%4]) },
	"contend": func(w *world, c *candidate, s step) {
		conflict := apierrors.NewConflict(schema.GroupResource{}, "lock", fmt.Errorf("changed"))
		s.n |= 4 // a few conflicts, not all for a while
		w.failsLease(c, s, conflict)
	},
	"slowlease": func(w *world, c *candidate, s step) {
		delay := time.Duration(1+s.n%6)*time.Second + time.Second/2 // not exactly its timeout
		w.during(s.d, w.server.Faults().Add(apitest.Fault{Match: c.lease(""), Delay: delay}))
	},
	"touch":    func(w *world, _ *candidate, _ step) { w.touchLease() },
	"noserver": func(w *world, _ *candidate, s step) { serverKinds["refuse"](w, nil, s) },
	"busy":     func(w *world, c *candidate, s step) { c.busy.Store(int64(s.d)) },
	"droplease": func(w *world, c *candidate, s step) {
		w.during(s.d, w.server.Faults().Add(apitest.Fault{
			Match: c.lease(""), Drop: true, Times: 1 + s.n%3,
		}))
	},
}

// electionKinds are further steps, of the contests that only our electors play.
var electionKinds = map[string]func(*world, *candidate, step){
	"trap": func(_ *world, c *candidate, s step) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.trap = traps[s.n%len(traps)]
		c.trapped = []string{"", "", "/endpoints", "/leases", "/leasecand"}[s.n/8%5]
	},
	"migrate": func(w *world, c *candidate, s step) {
		next := migrates[c.lock]
		if next == "" || next == onLeases && slices.ContainsFunc(w.candidates, isOld) {
			return
		}
		w.cover("migrates to " + next)
		c.migrates = true
		if c.stop(); s.n%2 == 0 {
			c.exit()
		}
	},
	"deletelock": func(w *world, c *candidate, s step) {
		for i, half := range halves[c.lock] {
			if s.n%3 != i {
				w.deleteLock(half)
			}
		}
	},
	"unregister": func(w *world, c *candidate, _ step) {
		if obj := c.leaseCandidate(); obj != nil && w.server.Delete(obj) == nil {
			w.cover("LeaseCandidate deleted")
		}
	},
	"prefer": func(w *world, c *candidate, _ step) {
		if c.lock == coordinated {
			w.prefer(c)
		}
	},
	"ping": func(w *world, _ *candidate, _ step) { w.ping() },
}

func isOld(c *candidate) bool { return c.lock == onEndpoints }

// contestKind returns the step of that kind, or nil.
func contestKind(kind string) func(*world, *candidate, step) {
	if do := contestKinds[kind]; do != nil {
		return do
	}
	return electionKinds[kind]
}

var leaseErrors = []error{
	apierrors.NewInternalError(fmt.Errorf("boom")), apierrors.NewServiceUnavailable("away"),
	apierrors.NewTooManyRequests("slow down", 1), apierrors.NewTimeoutError("slow", 1),
}

// generateContest makes the contest of a seed. Even seeds are calm.
func generateContest(seed uint64) script {
	r := rand.New(rand.NewPCG(seed, 3))
	var s script
	release := []string{"release", "keep"}[r.IntN(2)]
	for range 2 + r.IntN(2) {
		s.setups = append(s.setups, setup{election: release, lock: onLeases})
	}
	kinds := slices.Sorted(maps.Keys(contestKinds))
	kinds = append(kinds, slices.Repeat([]string{"isolate"}, len(kinds)/2)...)
	for range 8 + r.IntN(8) {
		st := step{kind: kinds[r.IntN(len(kinds))], p: r.IntN(3) * r.IntN(2), n: r.IntN(64)}
		if st.wait = randomWait(r); seed%2 == 0 {
			st.wait = calmWait
		}
		switch {
		case seed%2 != 0:
			st.d = time.Duration(1+r.IntN(60)) * time.Second
		case r.IntN(2) == 0:
			st.d = shortFault
		default:
			st.d = longFault
		}
		s.steps = append(s.steps, st)
	}
	return s
}

// generateElection makes the contest of a seed that only our electors play: for a lease, for one of
// a coordinator, or in a migration.
func generateElection(seed uint64) script {
	r := rand.New(rand.NewPCG(seed, 4))
	pick := func(names ...string) string { return names[r.IntN(len(names))] }
	var s script
	lock := pick(onLeases, onLeases, onEndpoints, coordinated)
	for range 2 + r.IntN(2) {
		p := setup{election: pick("release", "keep"), lock: lock}
		p.traits = pick("", rejoins, again, again+"+"+abandons)
		for _, trait := range []string{fixed, stubborn} {
			if r.IntN(2) == 0 {
				p.traits = strings.Trim(p.traits+"+"+trait, "+")
			}
		}
		s.setups = append(s.setups, p)
	}
	own := map[string][]string{
		onLeases: {"trap", "deletelock"}, onEndpoints: {"trap", "deletelock", "migrate", "migrate"},
		coordinated: {"trap", "deletelock", "unregister", "prefer", "ping"},
	}[lock]
	bag := slices.Concat(own, own, slices.Sorted(maps.Keys(contestKinds)))
	bag = slices.DeleteFunc(bag, func(string) bool { return r.IntN(2) == 0 })
	bag = append(bag, "crash", "stop", "busy", "isolate", own[0])
	for range 10 + r.IntN(30) {
		s.steps = append(s.steps, step{
			wait: randomWait(r) * time.Duration(1+r.IntN(4)), kind: bag[r.IntN(len(bag))],
			p: r.IntN(3) * r.IntN(2), n: r.IntN(64), d: time.Duration(1+r.IntN(60)) * time.Second,
		})
	}
	return s
}

func (s script) isContest() bool { return s.setups[0].fetch == "" }

// isCalm reports whether each step of a contest ends before the next one.
func (s script) isCalm() bool {
	return !slices.ContainsFunc(s.steps, func(st step) bool {
		return st.wait < calmWait || st.d > shortFault && st.d < longFault || st.d > longFault
	})
}

// playContest is play for a contest.
func (w *world) playContest(s script) {
	w.troubled = time.Now()
	for i, setup := range s.setups {
		w.candidates = append(w.candidates, w.newCandidate(setup, i))
	}
	calm := w.impl != ours && s.isCalm()
	for _, st := range append(s.steps, step{wait: calmWait, kind: "quiet"}) {
		w.advance(st.wait)
		if w.violated() {
			break
		}
		if calm {
			w.endEpisode()
		}
		w.note("step %v", st)
		w.cover("step " + st.kind)
		if st.kind == "quiet" {
			w.quiet(1)
			w.checkContestQuiet()
			break
		}
		w.episode = episode{step: st.kind, since: time.Now(), leader: w.inRole(0)}
		contestKind(st.kind)(w, w.inRole(st.p), st)
		w.troubled = time.Now()
	}
	w.sumUp()
	w.heal()
	for _, c := range w.everyone {
		c.stop()
	}
	for end := time.Now().Add(stopWithin); time.Now().Before(end); {
		time.Sleep(time.Second)
		synctest.Wait()
	}
	for _, c := range w.everyone {
		if !isClosed(c.ended) {
			w.violate(8, "%s has not ended %v after its stop", c.name, stopWithin)
			c.exit()
			<-c.ended
		}
	}
	w.server.Close()
	synctest.Wait()
	w.checkNothingRuns()
}

// inRole returns the leader for 0, and other candidates for other numbers.
func (w *world) inRole(n int) *candidate {
	ordered := slices.Clone(w.candidates)
	slices.SortStableFunc(ordered, func(a, b *candidate) int {
		switch {
		case a.acts() && !b.acts():
			return -1
		case b.acts() && !a.acts():
			return 1
		}
		return 0
	})
	return ordered[n%len(ordered)]
}

// isolate breaks the network of a candidate for a while.
func (w *world) isolate(c *candidate, s step) {
	mode := []gateMode{refused, hanging, losing, slow, late}[s.n%5]
	w.cover("met isolate " + string(mode))
	c.gate.set(mode)
	w.during(s.d, func() { c.gate.set(open) })
}

// lease matches the requests of a candidate for the lease.
func (c *candidate) lease(verb string) apitest.Match {
	return apitest.Match{Verb: verb, If: func(r apitest.Request) bool {
		return r.Header.Get(nameHeader) == c.name
	}}
}

// failsLease answers requests of a candidate for the lease with err: the next one to four, or all
// for a while.
func (w *world) failsLease(c *candidate, s step, err error) {
	match := c.lease([]string{"get", "update,create", "get,list,watch,update,create"}[s.n/8%3])
	if s.n&4 != 0 && w.impl != ours {
		w.server.Faults().Fail(1+s.n%4, match, err)
		return
	}
	w.during(s.d, w.server.Faults().Fail(0, match, err))
}

// touchLease changes the labels of the lease, so that the next write of its leader is a conflict.
func (w *world) touchLease() {
	lease := newLease()
	if w.server.Get(lease) != nil {
		return
	}
	lease.Labels = map[string]string{"at": fmt.Sprint(time.Now().UnixNano())}
	_ = w.server.Update(lease)
}
