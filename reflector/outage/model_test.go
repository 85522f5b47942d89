// SPDX-License-Identifier: Apache-2.0

package outage

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// backoff makes a reflector's waits: 0.8 s, doubled to 30 s, plus up to as much again, from the
// beginning after two minutes.
type backoff struct {
	random    *rand.Rand
	next      time.Duration
	reset     time.Time
	restarted bool // since a watch has lived
}

func (b *backoff) restart() {
	if !b.restarted {
		b.next = 800 * time.Millisecond
	}
	b.restarted = true
}

func (b *backoff) wait() time.Duration {
	if now := time.Now(); now.Sub(b.reset) > 2*time.Minute {
		b.next, b.reset = 800*time.Millisecond, now
	}
	d := b.next
	b.next = min(2*b.next, 30*time.Second)
	return d + time.Duration(b.random.Int64N(int64(d)))
}

// span is a time during which a server fails.
type span struct{ from, to time.Duration }

// kinds are the kinds of members. A newcomer is a failing one that comes during an outage.
var kinds = []string{"healthy", "forbidden", "failing", "newcomer"}

// plan is a random sequence of outages and the members that live through it.
type plan struct {
	outages []span
	members []string // their kinds
	length  time.Duration
}

func newPlan(random *rand.Rand) plan {
	p := plan{length: time.Minute}
	for range 6 {
		long := time.Duration(1+random.IntN(1000)) * 100 * time.Millisecond
		p.outages = append(p.outages, span{p.length, p.length + long})
		p.length += long + time.Duration(15+random.IntN(200))*time.Second
	}
	p.members = []string{"healthy"}
	for _, kind := range kinds {
		for range random.IntN(6) {
			p.members = append(p.members, kind)
		}
	}
	return p
}

// outage returns the present outage or the next one. After the last, it returns a span that never
// begins.
func (p plan) outage(at time.Duration) span {
	for _, o := range p.outages {
		if at < o.to {
			return o
		}
	}
	return span{time.Hour, time.Hour}
}

// player is a member in a plan.
type player struct {
	plan     plan
	kind     string
	member   Member
	backoff  backoff
	began    time.Time
	requests []time.Duration
	early    []int           // for each recovery, the requests before their time
	took     []time.Duration // from the end of each outage to the first answer
}

func (p *player) run(ctx context.Context) {
	if p.kind == "newcomer" {
		sleep(ctx, p.plan.outages[2].from+time.Second)
	}
	p.early = []int{0}
	for ctx.Err() == nil {
		at := time.Since(p.began)
		p.requests = append(p.requests, at)
		next := p.plan.outage(at)
		switch {
		case at >= next.from, p.kind == "failing", p.kind == "newcomer":
			p.member.Failed(0)
		case p.kind == "forbidden":
			if p.member.Refused() {
				p.backoff.restart()
			}
		default:
			p.member.Answered()
			if last := p.plan.before(at); last > 0 && len(p.requests) > 1 {
				p.took = append(p.took, at-last)
			}
			sleep(ctx, next.from-at) // a watch
			p.backoff.restarted = false
			p.early = append(p.early, 0)
			continue
		}
		p.wait(ctx)
	}
}

// before returns the end of the outage before a time, or 0.
func (p plan) before(at time.Duration) (end time.Duration) {
	for _, o := range p.outages {
		if o.to <= at {
			end = o.to
		}
	}
	return end
}

func (p *player) wait(ctx context.Context) {
	d, began := p.backoff.wait(), time.Now()
	wake, leave := p.member.Wait(d)
	defer leave()
	if wake == nil {
		wake = time.After(d)
	}
	select {
	case <-ctx.Done():
	case <-wake:
		if time.Since(began) < min(d, minPace) {
			p.early[len(p.early)-1]++
		}
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// play plays a plan. group returns the Group of each member.
func play(t *testing.T, plan plan, random *rand.Rand, group func() *Group) (players []*player) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), plan.length)
		defer cancel()
		var running sync.WaitGroup
		for _, kind := range plan.members {
			p := &player{plan: plan, kind: kind, began: time.Now()}
			p.member.Group = group()
			p.backoff.random = rand.New(rand.NewPCG(random.Uint64(), 0))
			players = append(players, p)
			running.Go(func() { p.run(ctx) })
		}
		running.Wait()
	})
	return players
}

// sums are what members of one kind did in all plans.
type sums struct {
	requests   int
	recoveries int
	took       time.Duration
	slowest    time.Duration
}

func (s *sums) add(p *player) {
	s.requests += len(p.requests)
	for _, took := range p.took {
		s.recoveries++
		s.took += took
		s.slowest = max(s.slowest, took)
	}
}

// Whatever its peers do, a member of a Group is current as soon as it would be in a Group of its
// own, and sends hardly more requests. A refused one sends hardly more than without a Group.
func TestGroup_Model(t *testing.T) {
	const seeds = 300
	all := map[string]map[string]*sums{} // by way and kind
	for seed := range uint64(seeds) {
		plan := newPlan(rand.New(rand.NewPCG(seed, 0)))
		var shared Group
		for way, group := range map[string]func() *Group{
			"together": func() *Group { return &shared },
			"alone":    func() *Group { return &Group{} },
			"without":  func() *Group { return nil },
		} {
			if all[way] == nil {
				all[way] = map[string]*sums{}
			}
			for _, p := range play(t, plan, rand.New(rand.NewPCG(seed, 1)), group) {
				if all[way][p.kind] == nil {
					all[way][p.kind] = &sums{}
				}
				all[way][p.kind].add(p)
				for _, early := range p.early {
					require.LessOrEqual(t, early, 1, "M2: %s %s, seed %d", p.kind, way, seed)
				}
			}
		}
		require.Empty(t, shared.waiting, "O1")
	}
	for _, kind := range kinds {
		for way, sums := range all {
			if s := sums[kind]; s.recoveries > 0 {
				t.Logf("%s %s: %d requests, recoveries %v, at most %v", kind, way, s.requests,
					s.took/time.Duration(s.recoveries), s.slowest)
			} else {
				t.Logf("%s %s: %d requests", kind, way, s.requests)
			}
		}
		together, alone := all["together"][kind], all["alone"][kind]
		assert.LessOrEqual(t, together.requests, alone.requests*21/20, kind)
	}
	together, alone := all["together"]["healthy"], all["alone"]["healthy"]
	assert.LessOrEqual(t, together.slowest, maxPace+newsWindow)
	assert.LessOrEqual(t, together.took, alone.took)
	assert.LessOrEqual(t, all["together"]["forbidden"].requests,
		all["without"]["forbidden"].requests*11/10)
}
