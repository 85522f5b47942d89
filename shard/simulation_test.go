// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/informerstack/controller"
	"example.com/informerstack/internal/helpers/done"
)

var (
	seeds = flag.Uint64("seeds", 9, "how many TestSimulation plays; TestModel two thirds")
	first = flag.Uint64("first", 0, "the first seed of TestSimulation")
)

// In a simulation clocks run at different speeds: the fastest by a twentieth.
const (
	simLease    = 60 * time.Second
	simDeadline = 40 * time.Second
	simRetry    = 8 * time.Second
	simDrain    = 10 * time.Second
	simCount    = 12
	// simBusy is how long a reconcile takes at most, even if its context is done.
	simBusy = 50 * time.Second
	// simBound is the time in which every shard has an owner, once all is well: a lease, a drain
	// of a stubborn reconcile, and a few retries.
	simBound = simLease + simDrain + simBusy + 6*simRetry
)

// simulation is a world in which everything that can go wrong does.
type simulation struct {
	*world
	random  *rand.Rand
	ledger  *ledger
	living  []*process
	starts  int
	edited  time.Time               // when a person has last changed a Lease
	backups []*coordinationv1.Lease // of a server that is to be restored
	served  map[Shard]time.Time     // when each shard was last active somewhere
	deletes bool                    // people also delete the Leases of members
	speeds  []int
	objects *objects
}

// Replicas join, leave, die, are paused and cut off; their clocks run at different speeds; requests
// fail, hang, are late, are done twice, or lose their answers; clocks are set; people delete and
// edit Leases; caches list again; reconciles ignore their context; objects change all the time. See
// I1 to I5 at Shards. The bad times are followed by good ones, three times for each seed.
func TestSimulation(t *testing.T) {
	for seed := *first; seed < *first+*seeds; seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { simulate(t, seed) })
		})
	}
}

func simulate(t *testing.T, seed uint64) {
	w := newWorld(t, simCount)
	s := &simulation{
		world: w, random: rand.New(rand.NewPCG(seed, 1)), speeds: []int{60, 60, 58, 57},
		objects: newObjects(2 * simCount), ledger: newLedger(w), served: map[Shard]time.Time{},
	}
	w.gradual = true
	s.deletes = s.random.IntN(2) == 0
	w.change = func(c *Config) {
		c.LeaseDuration, c.RenewDeadline, c.RetryPeriod = simLease, simDeadline, simRetry
		c.DrainTimeout = simDrain
	}
	w.moved = s.ledger.moved
	defer s.end()
	defer s.logFailure()
	for range 1 + s.random.IntN(4) {
		s.enter()
	}
	hectic := 2000 + s.random.IntN(12000)
	for range 3 {
		for range 30 {
			s.pause(time.Duration(s.random.IntN(hectic)) * time.Millisecond)
			s.trouble()
			if t.Failed() {
				return
			}
		}
		s.calm()
		if t.Failed() {
			return
		}
	}
}

// logFailure logs the last of what happened.
func (s *simulation) logFailure() {
	const shown = 300
	s.eventLog.mu.Lock()
	defer s.eventLog.mu.Unlock()
	if all := s.lines; s.t.Failed() {
		s.t.Log("\n" + strings.Join(all[max(0, len(all)-shown):], "\n"))
	}
}

// pause lets time pass, and checks the invariants all the time.
func (s *simulation) pause(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(min(900*time.Millisecond, time.Until(end)))
		if s.random.IntN(3) == 0 {
			s.objects.change(s.random.IntN(len(s.objects.versions)))
		}
		synctest.Wait()
		s.check()
		s.note()
	}
}

// note notes which shards are served.
func (s *simulation) note() {
	for _, p := range s.living {
		for _, shard := range p.owns() {
			if state := p.slots[shard].look().state; state == Active {
				s.served[shard] = time.Now()
			}
		}
	}
}

// enter starts a replica, with a clock of some speed. For a while after the server was restored
// no replica may start: it cannot know of members that the copy does not know.
func (s *simulation) enter() {
	s.starts++
	s.enterAs(fmt.Sprint("p", s.starts))
}

func (s *simulation) enterAs(name string) *process {
	seconds := s.speeds[s.random.IntN(len(s.speeds))]
	faster := float64(simLease/time.Second) / float64(seconds)
	p := s.newProcess(name, func(c *Config) {
		c.LeaseDuration = time.Duration(seconds) * time.Second
		c.RenewDeadline = time.Duration(float64(simDeadline) / faster)
		c.RetryPeriod = time.Duration(float64(simRetry) / faster)
	})
	translate := translation(seconds)
	p.link.translate = func(data []byte, sent bool) []byte {
		return p.skewed(translate(data, sent), sent)
	}
	p.caches.uses("object", ByUID)
	p.start()
	s.work(p)
	s.living = append(s.living, p)
	return p
}

// translation shows a process with a fast clock the durations in Leases as its clock will count
// them, and others the durations that it writes as theirs will.
func translation(seconds int) func(data []byte, sent bool) []byte {
	const field = `"leaseDurationSeconds":`
	fast := fmt.Appendf(nil, "%s%d", field, seconds)
	usual := fmt.Appendf(nil, "%s%d", field, simLease/time.Second)
	return func(data []byte, sent bool) []byte {
		if sent {
			return bytes.ReplaceAll(data, fast, usual)
		}
		return bytes.ReplaceAll(data, usual, fast)
	}
}

// renewTime is the time in a Lease that processes compare with their own clock.
var renewTime = regexp.MustCompile(`"renewTime":"[^"]*"`)

// skewed shows a process whose clock is ahead the times in Leases as that clock has them, and
// others what that clock says.
func (p *process) skewed(data []byte, sent bool) []byte {
	ahead := time.Duration(p.ahead.Load())
	if ahead == 0 {
		return data
	}
	if !sent {
		ahead = -ahead
	}
	return renewTime.ReplaceAllFunc(data, func(field []byte) []byte {
		name, value, _ := bytes.Cut(field, []byte(`:`))
		var at metav1.MicroTime
		if err := at.UnmarshalJSON(value); err != nil {
			return field
		}
		shifted, _ := metav1.NewMicroTime(at.Add(ahead)).MarshalJSON() // it never fails
		return slices.Concat(name, []byte(":"), shifted)
	})
}

// trouble makes one thing go wrong, or end.
func (s *simulation) trouble() {
	if len(s.living) == 0 {
		s.enter()
		return
	}
	p := s.living[s.random.IntN(len(s.living))]
	switch s.random.IntN(29) {
	case 0, 1:
		if len(s.living) < 6 {
			s.enter()
		}
	case 2, 3:
		s.leave(p)
	case 4:
		s.kill(p)
	case 5, 6:
		p.stopProcess(true)
	case 7, 8, 9:
		p.stopProcess(false)
	case 10, 11:
		p.cutOff(true)
	case 12, 13:
		p.cutOff(false)
	case 14, 15, 16:
		p.link.setWeather(s.forecast(s.random.IntN(3)))
	case 17:
		s.edit()
	case 18:
		s.roll()
	case 19:
		p.endWatches()
	case 20, 21, 22:
		s.edit()
	case 23:
		p.loseCaches()
	case 24:
		ahead := time.Duration(s.random.IntN(7200)-3600) * time.Second
		s.event("candidate", "the clock of %s is set: %v ahead", p.name, ahead)
		p.ahead.Store(int64(ahead))
	case 25:
		s.event("candidate", "the cache of %s is empty, and lists nothing any more", p.name)
		p.broken.Store(true)
		p.loseCaches()
	case 26:
		for range 1 + s.random.IntN(4) { // a crash loop
			s.kill(p)
			s.pause(time.Duration(s.random.IntN(20)) * time.Second)
			p = s.enterAs(p.name)
			s.pause(time.Duration(s.random.IntN(60)) * time.Second)
		}
	case 27:
		s.event("server", "its Leases are copied")
		s.backups = s.backup()
	case 28:
		if s.backups != nil && !s.deletes {
			s.ledger.restored()
			s.restore(s.backups)
			s.backups, s.edited = nil, time.Now()
			s.pause(2 * simLease)
		}
	}
}

// kill ends a process without a word.
func (s *simulation) kill(p *process) {
	s.event("candidate", "%s is killed", p.name)
	s.living = slices.DeleteFunc(s.living, func(l *process) bool { return l == p })
	p.crash()
}

// loseCaches makes the caches of a process list again.
func (p *process) loseCaches() {
	p.caches.mu.Lock()
	all := slices.Collect(maps.Keys(p.caches.all))
	p.caches.mu.Unlock()
	for _, c := range all {
		c.(*fakeCache).lose()
	}
}

// intrude starts a replica that shares the objects by another value. It must not join.
func (s *simulation) intrude() {
	p := s.newProcess("other")
	p.caches.uses("object", ByNamespace)
	p.start()
	s.pause(2 * simRetry)
	if !p.returned() || p.err == nil {
		s.t.Errorf("I4: a replica with another By joins: %v", p.err)
	}
	p.cancel()
}

// leave stops a replica in order.
func (s *simulation) leave(p *process) {
	s.living = slices.DeleteFunc(s.living, func(l *process) bool { return l == p })
	p.stop()
}

// roll replaces all replicas one by one.
func (s *simulation) roll() {
	s.event("candidate", "rolling update")
	surge := s.random.IntN(2) == 0
	for _, p := range slices.Clone(s.living) {
		if surge {
			s.enter()
			s.pause(time.Duration(s.random.IntN(20)) * time.Second)
		}
		s.leave(p)
		if !surge {
			s.pause(time.Duration(s.random.IntN(20)) * time.Second)
			s.enter()
		}
	}
}

// edit is what a person does to a Lease of the group: the holder is erased or replaced, the
// duration of a member's Lease is lowered or raised, or the Lease is deleted. If one deletes the
// Lease of a member, another change at once may bring two replicas to one shard: a new replica
// cannot know of another if its Lease was deleted together with that of a shard.
func (s *simulation) edit() {
	if s.deletes && time.Since(s.edited) < 2*simLease {
		return
	}
	all, err := s.server.List("leases", "default")
	require.NoError(s.t, err)
	if s.random.IntN(3) == 0 {
		all = slices.DeleteFunc(all, func(lease unstructured.Unstructured) bool {
			return !s.processes[0].leases.isMember(lease.GetName())
		})
	}
	if len(all) == 0 {
		return
	}
	s.edited = time.Now()
	name := all[s.random.IntN(len(all))].GetName()
	isMember := s.processes[0].leases.isMember(name)
	if busy := s.ledger.busy(); busy != nil && !isMember && s.random.IntN(2) == 0 {
		name = s.processes[0].leases.shardName(busy[s.random.IntN(len(busy))])
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	if s.server.Get(lease) != nil {
		return // a shard has lost its Lease before
	}
	if (!isMember || s.deletes) && s.random.IntN(2) == 0 {
		s.event("server", "a person deletes %s", lease.Name)
		require.NoError(s.t, s.server.Delete(lease))
		return
	}
	switch {
	case !isMember && s.random.IntN(4) == 0: // as if it had been taken in between
		lease.Spec.LeaseTransitions = new(int32(tokenOf(lease).Transitions) + 2)
	case isMember && s.random.IntN(2) == 0: // lower, as it is, or higher
		seconds := 1 + s.random.IntN(int(2*simLease/time.Second))
		lease.Spec.LeaseDurationSeconds = new(int32(seconds))
	case !isMember && len(s.living) > 0 && s.random.IntN(2) == 0:
		p := s.living[s.random.IntN(len(s.living))]
		lease.Spec.HolderIdentity = new(p.Status().Identity)
	default:
		lease.Spec.HolderIdentity = new("")
	}
	s.event("server", "a person edits %s: holder %q, %v",
		lease.Name, holderOf(lease), leaseDuration(lease))
	require.NoError(s.t, s.server.Update(lease))
}

// forecast returns what becomes of requests: of a good, a bad or a very bad network.
func (s *simulation) forecast(grade int) func(*http.Request) weather {
	if grade == 0 {
		return nil
	}
	random := rand.New(rand.NewPCG(s.random.Uint64(), 0))
	var locked = make(chan struct{}, 1)
	return func(r *http.Request) weather {
		locked <- struct{}{}
		defer func() { <-locked }()
		seconds := func(n int) time.Duration {
			return time.Duration(random.IntN(n*1000)) * time.Millisecond
		}
		if strings.Contains(r.URL.RawQuery, "watch=") {
			return weather{back: seconds(2 * grade * grade * grade)}
		}
		if grade == 1 && random.IntN(2) == 0 {
			return weather{}
		}
		switch random.IntN(9) {
		case 0:
			return weather{fails: true}
		case 1:
			return weather{there: seconds(60), late: true}
		case 2:
			return weather{there: seconds(20)}
		case 3:
			return weather{back: seconds(20)}
		case 4:
			return weather{twice: r.Method != http.MethodGet}
		case 5:
			return weather{loses: true}
		case 6, 7:
			return weather{code: []int{500, 504, 409, 429}[random.IntN(4)]}
		}
		return weather{}
	}
}

// calm makes all well and checks I2, I3 and I5.
func (s *simulation) calm() {
	s.event("server", "all is well")
	if len(s.living) == 0 {
		s.enter()
	}
	for _, p := range s.processes { // those that are about to leave, too
		if !p.dead && !p.returned() {
			p.stopProcess(false)
			p.link.setWeather(nil)
			p.cutOff(false)
			p.endWatches()
		}
	}
	sick := s.random.IntN(2) == 0 && !s.living[0].broken.Load() // one at least is well
	for _, p := range s.living {
		if !sick && p.broken.Swap(false) {
			p.wakeUp()
		}
	}
	end := time.Now().Add(simDeadline + simRetry + simBound)
	s.pause(2*simLease + simRetry) // the last request has arrived, and what it renewed is over
	if s.anyBroken() {
		s.endure()
		return
	}
	if s.random.IntN(3) == 0 {
		s.intrude()
	}
	for time.Now().Before(end) && !s.settled() {
		s.pause(time.Second)
	}
	s.checkSettled()
	s.world.mu.Lock()
	before := len(s.log)
	s.world.mu.Unlock()
	limited := slices.ContainsFunc(s.living[0].Status().Members, isLimited)
	s.pause(30 * time.Second)
	s.world.mu.Lock()
	for _, m := range s.log[before:] {
		if !limited && (m.acquired() || m.released()) {
			s.t.Errorf("I5: moves while nothing changes: %v", m)
		}
	}
	s.world.mu.Unlock()
	s.objects.setQuiet(true)
	for end := time.Now().Add(4 * simBusy); time.Now().Before(end) && !s.objects.reached(); {
		s.pause(time.Second)
	}
	s.objects.setQuiet(false)
	s.objects.check(s.t)
}

func (s *simulation) anyBroken() bool {
	return slices.ContainsFunc(s.living, func(p *process) bool { return p.broken.Load() })
}

// simServed is the time without an owner that works, at most, while a member is well and others
// cannot fill their caches: one of them may take a shard and give it back.
const simServed = simBound + syncWithin*simLease + 2*simRetry

// endure checks I2 while some members cannot fill their caches.
func (s *simulation) endure() {
	for shard := range Shard(simCount) {
		s.served[shard] = time.Now()
	}
	for end := time.Now().Add(2 * simServed); time.Now().Before(end); {
		s.pause(time.Second)
		for shard, last := range s.served {
			if time.Since(last) > simServed {
				s.t.Errorf("I2: shard %d has no owner that works for it", shard)
				s.checkSettled()
				return
			}
		}
	}
}

// settled reports whether every shard is active in one process, with the token of the shard's
// Lease, no process takes one that is gone for a member, and loads are even, unless a member is
// limited after the bad times.
func (s *simulation) settled() bool {
	owners, loads, limited := map[Shard]int{}, []int{}, false
	for _, p := range s.living {
		members := p.Status().Members
		if len(members) != len(s.living) {
			return false
		}
		limited = limited || slices.ContainsFunc(members, isLimited)
		n := 0
		for shard, slot := range p.slots {
			now := slot.look()
			if now.state == Active && now.right.token == tokenOf(s.lease(Shard(shard))) {
				owners[Shard(shard)]++
				n++
			}
		}
		loads = append(loads, n)
	}
	return len(owners) == simCount && (limited || slices.Max(loads)-slices.Min(loads) <= 1)
}

func isLimited(m MemberStatus) bool { return m.Limited }

func (s *simulation) checkSettled() {
	if s.settled() {
		return
	}
	s.t.Errorf("I2: not settled %v after all is well", simBound)
	for _, p := range s.living {
		status := p.Status()
		s.t.Logf("%s %s joined=%v err=%v members=%v", p.name, status.Identity, status.Joined,
			status.LastError, status.Members)
		for _, shard := range status.Shards {
			s.t.Logf("  %+v", shard)
		}
	}
}

// work runs a cache and a controller beside a process.
func (s *simulation) work(p *process) {
	random := rand.New(rand.NewPCG(s.random.Uint64(), 0))
	var mu sync.Mutex
	below := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return random.IntN(n)
	}
	milliseconds := func(n int) time.Duration { return time.Duration(below(n)) * time.Millisecond }
	value := func(key int) (string, bool) { return p.value(Shard(key % simCount)), true }
	for shard := range Shard(simCount) {
		p.value(shard)
	}
	cache := newFakeCache(p, s.objects)
	reconcile := func(ctx context.Context, key int) (controller.Result, error) {
		c := &call{p: p, shard: Shard(key % simCount), ctx: ctx}
		if !cache.has(key) && !cache.lostNow() && ctx.Err() == nil {
			s.t.Errorf("I3: %s reconciles an object of shard %d, which its cache does not hold",
				p.name, c.shard)
		}
		p.step()
		version := s.objects.version(key)
		s.ledger.begin(c)
		defer s.ledger.end(c)
		stubborn := below(8) == 0
		lasts := milliseconds(1000)
		if below(5) == 0 {
			lasts = milliseconds(int(simBusy / time.Millisecond))
		}
		for end := time.Now().Add(lasts); time.Now().Before(end); {
			s.ledger.write(c)
			if stubborn {
				ctx = context.Background()
			}
			done.Sleep(ctx, min(500*time.Millisecond, time.Until(end)))
			if p.step(); ctx.Err() != nil {
				return controller.Result{}, ctx.Err()
			}
		}
		s.ledger.write(c)
		if c.ctx.Err() == nil && !p.dead {
			s.objects.done(key, version)
		}
		return controller.Result{}, nil
	}
	c := controller.New("objects", Reconcile(p.Shards, value, reconcile),
		// A timer of 0 runs at once, and two at a time can crash the race detector of Go 1.26.
		controller.Options[int]{Workers: 3, GracePeriod: time.Nanosecond})
	cache.enqueue, cache.pass = c.Enqueue, func() { _ = p.link.pass(p.alive) }
	cache.takes = func() time.Duration { return milliseconds(3000) }
	p.register(cache)
	p.done.Go(func() { cache.run(p.alive) })
	p.done.Go(func() { _ = c.Run(p.alive) })
}
