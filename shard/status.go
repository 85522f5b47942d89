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
	MoveLost     = "lost"     // its Lease was changed, or the membership is over
)

// Status returns a snapshot. It waits for nothing, but it copies the state of every shard.
func (s *Shards) Status() Status {
	s.mu.Lock()
	status, plan := s.status, s.plan
	status.Moves = maps.Clone(status.Moves)
	leaving := map[string]bool{}
	for _, p := range s.peers {
		leaving[p.identity] = p.leaving()
	}
	if s.lister != nil && !status.Joined {
		if err := s.lister.Err(); err != nil {
			status.LastError = err
		}
	}
	s.mu.Unlock()
	status.Group, status.Unknown = s.config.Name, s.unknown.Load()
	status.Ready, status.Filtering = s.Ready(), s.caches.status().filtering
	status.Members, status.Shards = plan.status(leaving), make([]ShardStatus, len(s.slots))
	for i, slot := range s.slots {
		now, shard := slot.look(), &status.Shards[i]
		shard.Shard, shard.State = Shard(i), now.state
		shard.Since, shard.Running = now.since, now.running
		if now.right != nil {
			shard.Token = now.right.token
		}
		if plan.owners != nil {
			shard.Owner, shard.Target = plan.owners[i].member, plan.targets[i]
		}
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
		now, limit := slot.look(), maxStuck
		if now.state == Draining {
			limit += s.config.DrainTimeout
		}
		waiting := now.state == Draining || !now.state.owned()
		if now.running > 0 && waiting && time.Since(now.since) > limit {
			stuck = append(stuck, fmt.Sprint(i))
		}
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
func (s *Shards) moved(m move) {
	kind := ""
	switch {
	case m.acquired():
		kind = MoveAcquired
	case m.released() && m.err != nil:
		kind = MoveLost
	case m.released():
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
	joined := !t.over() && !t.leaving
	complete := t.pace.phase == paceFull && t.isKnown // to the others, too
	for s, target := range t.plan.targets {
		complete = complete && (target != t.me || t.shards.slots[s].look().state == Active)
	}
	t.shards.ownsAll.Store(t.load().owned == len(t.shards.slots))
	switch {
	case !joined, t.pace.phase == paceStuck:
		t.shards.ready.Store(nil)
	case complete:
		t.shards.ready.Store(&t.term)
	}

	t.shards.mu.Lock()
	defer t.shards.mu.Unlock()
	t.shards.status.Identity, t.shards.status.Joined = t.me, joined
	t.shards.plan = t.plan
}

// status returns the members of a plan, by name.
func (p *plan) status(leaving map[string]bool) []MemberStatus {
	members := map[string]*MemberStatus{}
	member := func(identity string) *MemberStatus {
		if members[identity] == nil {
			l, limited := p.limits[identity]
			members[identity] = &MemberStatus{
				Identity: identity, Stuck: l.stuck, Limited: limited, Leaving: leaving[identity],
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
