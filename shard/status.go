// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/klog/v2"

	"example.com/informerstack/leaderelection"
)

// Status is this process's part of the group, and what it knows of the others, at one moment.
type Status struct {
	Group    string
	Identity string // of the present membership, or of the last; "" before the first
	Joined   bool   // it is a member, and not about to leave
	Ready    bool   // see Shards.Ready
	Terms    int    // how often it has joined

	Shards  []ShardStatus  // by number
	Members []MemberStatus // by name, this one included
	Moves   map[string]int // how often a shard was acquired, released or lost: the keys say which
	Unknown uint64         // keys that were dropped because the shard of their object is unknown

	// Filtering is the number of informers that receive objects of other replicas, and drop them:
	// no server can select by their By, or the server did not select in or since the last list.
	Filtering int

	LastError     error // the last failure, also after a success
	LastErrorTime time.Time
}

// ShardStatus is one shard, as this process sees it.
type ShardStatus struct {
	Shard   Shard
	State   State // in this process
	Since   time.Time
	Running int                         // calls of reconcile in this process
	Token   leaderelection.FencingToken // if this process owns it
	Owner   string                      // that its Lease names; "" if it is free
	Target  string                      // the member that is to own it
}

// MemberStatus is one member, as this process sees it.
type MemberStatus struct {
	Identity string
	Shards   int  // that it owns
	Target   int  // that it is to own
	Leaving  bool // it gives up its shards
	Stuck    bool // it renews its Lease, but takes no shard, or cannot fill its caches
	Limited  bool // it does not take its share: it is stuck, new, or others like it have died young
}

// The keys of Status.Moves.
const (
	MoveAcquired = "acquired"
	MoveReleased = "released" // in good order
	MoveLost     = "lost"     // see Move.Err
)

// Status returns a snapshot. It waits for nothing, but it copies the state of every shard.
func (s *Shards) Status() Status {
	s.mu.Lock()
	status := s.status
	status.Shards, status.Members = slices.Clone(status.Shards), slices.Clone(status.Members)
	status.Moves = maps.Clone(status.Moves)
	if s.lister != nil && !status.Joined {
		if err := s.lister.Err(); err != nil {
			status.LastError = err
		}
	}
	s.mu.Unlock()
	status.Group, status.Unknown = s.config.Name, s.unknown.Load()
	status.Ready, status.Filtering = s.Ready(), s.caches.filtering()
	if status.Shards == nil {
		status.Shards = make([]ShardStatus, len(s.slots))
	}
	for i, slot := range s.slots {
		shard := &status.Shards[i]
		slot.mu.Lock()
		shard.Shard, shard.State = Shard(i), slot.state
		shard.Since, shard.Running = slot.since, slot.running
		if slot.right != nil {
			shard.Token = slot.right.token
		}
		slot.mu.Unlock()
	}
	return status
}

// Ready reports whether this process has joined and has once, in its present membership, owned
// its share, with synced caches. A rolling update that waits for the readiness of each new replica
// hands over without a gap. A new member takes its share in steps, which lasts for seven
// RetryPeriods, and longer if processes with its Identity have died young. Ready stays true while
// shards move later, unless the process cannot fill its caches.
func (s *Shards) Ready() bool {
	ready := s.ready.Load()
	return ready != nil && (*ready).Err() == nil
}

// Check returns an error if a reconcile has kept a shard, or the process from joining again, for
// longer than maxStuck after its context was done: only the end of the process helps. It also does
// so if informers have not got what they need to reconcile new shards, or to join, for maxStuck and
// for 4 LeaseDurations. It is a check for liveness.
func (s *Shards) Check(maxStuck time.Duration) error {
	var stuck []string
	for i, slot := range s.slots {
		slot.mu.Lock()
		limit := maxStuck
		if slot.state == Draining {
			limit += s.config.DrainTimeout
		}
		waiting := slot.state == Draining || !slot.state.owned()
		if slot.running > 0 && waiting && time.Since(slot.since) > limit {
			stuck = append(stuck, fmt.Sprint(i))
		}
		slot.mu.Unlock()
	}
	if stuck == nil {
		return s.checkCaches(maxStuck)
	}
	return fmt.Errorf("reconciles ignore that their context is done, and block shards %s of "+
		"group %s", strings.Join(stuck, ", "), s.config.Name)
}

// checkCaches is Check of the informers.
func (s *Shards) checkCaches(maxStuck time.Duration) error {
	since := s.lagging.Load()
	if since == nil {
		return nil
	}
	took := time.Since(*since)
	if took <= max(maxStuck, syncWithin*s.config.LeaseDuration) {
		return nil
	}
	return fmt.Errorf("informers have not filled their caches for group %s for %v: other replicas "+
		"have the shards", s.config.Name, took.Round(time.Second))
}

// noteError notes a failure that is tried again.
func (s *Shards) noteError(ctx context.Context, err error) {
	if ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "Shards: a request failed, trying again")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.LastError, s.status.LastErrorTime = err, time.Now()
}

// moved counts a move.
func (s *Shards) moved(move Move) {
	kind := ""
	switch {
	case move.Acquired():
		kind = MoveAcquired
	case move.Released() && move.Err != nil:
		kind = MoveLost
	case move.Released():
		kind = MoveReleased
	default:
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.status.Moves == nil {
		s.status.Moves = map[string]int{}
	}
	s.status.Moves[kind]++
}

// publish makes the results of a pass known: to Status, Ready and the guard.
func (t *tenure) publish() {
	joined, owned := !t.over() && !t.leaving, 0
	complete := t.pace.phase == paceFull && t.isKnown // to the others, too
	for s, slot := range t.shards.slots {
		state, _, _ := slot.look()
		if state.owned() {
			owned++
		}
		if state != Active && len(t.plan.targets) > 0 && t.plan.targets[s] == t.me {
			complete = false
		}
	}
	t.shards.ownsAll.Store(owned == len(t.shards.slots))
	switch {
	case !joined, t.pace.phase == paceStuck:
		t.shards.ready.Store(nil)
	case complete:
		t.shards.ready.Store(&t.term)
	}

	t.shards.mu.Lock()
	defer t.shards.mu.Unlock()
	status := &t.shards.status
	status.Identity, status.Joined = t.me, joined
	status.Members = t.plan.status()
	for i := range status.Members {
		p := t.shards.peers[t.shards.leases.memberName(status.Members[i].Identity)]
		status.Members[i].Leaving = p != nil && p.leaving()
	}
	if status.Shards == nil {
		status.Shards = make([]ShardStatus, len(t.shards.slots))
	}
	for s := range t.plan.owners {
		status.Shards[s].Owner = t.plan.owners[s].member
		status.Shards[s].Target = t.plan.targets[s]
	}
}

// status returns the members of a plan, by name.
func (p *plan) status() []MemberStatus {
	members := map[string]*MemberStatus{}
	member := func(identity string) *MemberStatus {
		if members[identity] == nil {
			l, limited := p.limits[identity]
			members[identity] = &MemberStatus{
				Identity: identity, Stuck: l.stuck, Limited: limited,
			}
		}
		return members[identity]
	}
	for _, identity := range p.members {
		member(identity)
	}
	for s, o := range p.owners {
		if o.member != "" {
			member(o.member).Shards++
		}
		if p.targets[s] != "" {
			member(p.targets[s]).Target++
		}
	}
	var all []MemberStatus
	for _, identity := range slices.Sorted(maps.Keys(members)) {
		all = append(all, *members[identity])
	}
	return all
}
