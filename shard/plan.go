// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// plan is the assignment, with what it was computed from. It does not change any more.
type plan struct {
	members []string
	limits  map[string]limit // of the members that have one
	owners  []owner
	targets []string
}

// stuckness notices a member that renews its Lease, but takes no shard of those that it is to take.
type stuckness struct {
	shards int       // that it owned when it was last looked at
	since  time.Time // when it last took one, or had nothing to take
	until  time.Time // it is considered stuck until then
}

// The time after which a member is stuck if it takes no shard, and for which it is considered
// stuck, in LeaseDurations.
const (
	stuckAfter = 2
	stuckFor   = 10
	// forgetAfter is when the Lease of a member that is over is deleted. It is longer than a
	// kubelet waits before it starts a process again that has died, so that the next one knows.
	forgetAfter = 24
)

// meet notes the members that the view shows, and those that shards' Leases name.
func (t *tenure) meet(v view, now time.Time) {
	t.shards.mu.Lock()
	defer t.shards.mu.Unlock()
	for name, lease := range v.members {
		t.shards.peerLocked(name, "").list(lease, now)
	}
	holders := map[string]bool{"": true}
	for _, lease := range v.shards {
		if holder := holderOf(lease); !holders[holder] {
			holders[holder] = true
			t.shards.peerLocked(t.shards.leases.memberName(holder), holder)
		}
	}
	t.obeyedAll, t.alone = "", true
	own := t.shards.peerLocked(t.shards.leases.memberName(t.me), t.me).lease
	t.isKnown = own != nil && own.Annotations[limitAnnotation] == ""
	for name, p := range t.shards.peers {
		if v.members[name] == nil {
			p.list(nil, now)
		}
		if own != nil && precedes(p.lease, own) && t.failure == nil {
			t.failure = t.shards.checkBy(p, now)
		}
		if !t.mayAct(p) {
			continue
		}
		if seen := p.seen(); t.alone || newer(t.obeyedAll, seen) {
			t.obeyedAll = seen
		}
		t.alone = false
	}
}

// precedes reports whether a Lease was created before another one. If both seem to be created at
// the same time, the names decide.
func precedes(lease, other *coordinationv1.Lease) bool {
	return lease != nil && cmp.Or(
		lease.CreationTimestamp.Compare(other.CreationTimestamp.Time),
		cmp.Compare(lease.Name, other.Name)) < 0
}

// obeyedByAll reports whether no other member can act for a shard if its Lease did not exist, or
// had another holder, at that version, although no owner has released it. It becomes true with the
// next renewals of the others.
func (t *tenure) obeyedByAll(version string) bool {
	if t.alone || t.obeyedAll != "" && !newer(version, t.obeyedAll) {
		return true
	}
	t.at(time.Now().Add(t.shards.config.RetryPeriod / 4))
	t.shards.mu.Lock()
	defer t.shards.mu.Unlock()
	for _, p := range t.shards.peers {
		if t.mayAct(p) {
			t.askLocked(p, time.Now())
		}
	}
	return false
}

// mayAct reports whether a member may still act, or a process that was one.
func (t *tenure) mayAct(p *peer) bool {
	return !p.over && p.identity != t.me && !t.shards.ended[p.identity]
}

// free reports whether this member may take the shard with that Lease.
func (t *tenure) free(s Shard, lease *coordinationv1.Lease, now time.Time) bool {
	holder := holderOf(lease)
	switch {
	case lease == nil:
		return t.obeyedByAll(t.claims[s].missing)
	case isEdited(lease) && !t.obeyedByAll(lease.ResourceVersion):
		return false
	case holder == "", holder == t.me, t.shards.ended[holder]:
		return true
	}
	t.shards.mu.Lock()
	defer t.shards.mu.Unlock()
	p := t.shards.peerLocked(t.shards.leases.memberName(holder), holder)
	if !p.over {
		t.askLocked(p, now)
	}
	return p.over
}

// askLocked reads the Lease of a member, when it seems to be over, to know that it is.
func (t *tenure) askLocked(p *peer, now time.Time) {
	switch {
	case now.Before(p.expiry()):
		t.at(p.expiry())
		return
	case now.Before(p.askAgain):
		t.at(p.askAgain)
		return
	case p.asking || t.requests >= maxRequests:
		return
	}
	p.asking = true
	name, asked := p.name, now
	t.request(func(ctx context.Context) (*coordinationv1.Lease, error) {
		lease, err := t.shards.leases.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return lease, err
	}, func(lease *coordinationv1.Lease, err error) {
		if err != nil {
			t.shards.noteError(t.led, err)
		}
		t.shards.mu.Lock()
		defer t.shards.mu.Unlock()
		p := t.shards.peerLocked(name, "")
		p.asking = false
		if p.askAgain = time.Now().Add(t.shards.config.RetryPeriod); err == nil {
			p.confirm(lease, asked, time.Now())
		}
	})
}

// arrange computes the assignment anew, if something has changed.
func (t *tenure) arrange(v view, now time.Time) {
	next := plan{limits: map[string]limit{}, owners: make([]owner, len(v.shards))}
	for s, lease := range v.shards {
		next.owners[s] = ownerOf(lease)
	}
	if !t.leaving {
		next.members = append(next.members, t.me)
		if l := t.member.announced(); l != unlimited {
			next.limits[t.me] = l
		}
	}
	t.shards.mu.Lock()
	defer t.shards.mu.Unlock()
	for _, p := range t.shards.peers {
		if p.identity == t.me || !p.alive(now) {
			continue
		}
		t.at(p.expiry())
		if !p.leaving() {
			next.members = append(next.members, p.identity)
		}
		l := p.limit()
		if now.Before(p.stuck.until) {
			l = limit{min(l.most, p.stuck.shards), true}
		}
		if l != unlimited {
			next.limits[p.identity] = l
		}
	}
	slices.Sort(next.members)
	for s, o := range next.owners {
		if t.shards.slots[s].look().state != Acquiring {
			continue
		}
		// A shard that this member is taking counts already: otherwise it would take one too many
		// while the answer is on its way, and give it back.
		if _, owned := slices.BinarySearch(next.members, o.member); !owned {
			next.owners[s] = owner{t.me, t.claims[s].sent}
		}
	}
	if !slices.Equal(next.members, t.plan.members) ||
		!slices.Equal(next.owners, t.plan.owners) || !maps.Equal(next.limits, t.plan.limits) {
		next.targets = assignment(next.members, next.limits, next.owners)
		t.shards.plans.Add(1)
		t.plan = next
	}
	t.findStuckLocked(now)
}

// findStuckLocked looks for members that take no shard: the others take their shares.
func (t *tenure) findStuckLocked(now time.Time) {
	owned, waiting := map[string]int{}, map[string]bool{}
	for s, target := range t.plan.targets {
		holder := t.plan.owners[s].member
		owned[holder]++
		if _, alive := slices.BinarySearch(t.plan.members, holder); !alive && target != "" {
			waiting[target] = true
		}
	}
	for _, p := range t.shards.peers {
		st := &p.stuck
		if !waiting[p.identity] || owned[p.identity] > st.shards || st.since.IsZero() {
			st.since = now
		}
		if owned[p.identity] > st.shards && now.Before(st.until) {
			st.until = time.Time{}
			t.shards.wakeUp() // the plan counts it as stuck
		}
		st.shards = owned[p.identity]
		due := st.since.Add(stuckAfter * t.shards.config.LeaseDuration)
		switch {
		case now.Before(due):
			t.at(due)
		case !now.Before(st.until):
			st.until, st.since = now.Add(stuckFor*t.shards.config.LeaseDuration), now
			t.shards.wakeUp()
		}
	}
}

// sweep deletes the Leases of members that are over for long, if this is the first of the members,
// and forgets those without a Lease.
func (t *tenure) sweep(now time.Time) {
	first := len(t.plan.members) > 0 && t.plan.members[0] == t.me
	t.shards.mu.Lock()
	defer t.shards.mu.Unlock()
	for name, p := range t.shards.peers {
		old := p.since.Add(forgetAfter * p.duration)
		switch {
		case p.identity == t.me || p.asking || now.Before(old):
		case p.lease == nil:
			delete(t.shards.peers, name) // a shard's Lease that names it makes it known again
			delete(t.shards.ended, p.identity)
		case first && !now.Before(p.askAgain) && t.requests < maxRequests:
			p.asking, p.askAgain = true, now.Add(t.shards.config.LeaseDuration)
			t.discard(name, p.lease)
		}
	}
}

// discard deletes the Lease of a member that is over.
func (t *tenure) discard(name string, lease *coordinationv1.Lease) {
	t.request(func(ctx context.Context) (*coordinationv1.Lease, error) {
		return nil, t.shards.leases.delete(ctx, lease)
	}, func(_ *coordinationv1.Lease, err error) {
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			t.shards.noteError(t.led, err)
		}
		t.shards.mu.Lock()
		defer t.shards.mu.Unlock()
		t.shards.peerLocked(name, "").asking = false
	})
}
