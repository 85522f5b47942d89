// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/leaderelection"
	"example.com/informerstack/leaderelection/resourcelock"
)

// membership is the Lease of one term of this process, as its elector sees it.
//
//	M1  an identity has one term: it begins with the answer to the creation of its Lease, and a
//	    Lease that was deleted is not created again. So if a member is over, it stays over.
//	M2  each renewal says up to which version this process has seen the shards' Leases and obeyed
//	    them
//	M3  if an answer is older than what was known before the request, or if the informer goes back
//	    to an older version, or to one of a shard's Lease, the server was restored from a copy:
//	    the term is over at once, and the process joins again after a LeaseDuration. By then the
//	    terms of all members that knew what the copy does not know are over
//
// M1 is what allows other members to take the shards of one that is over: no shard's Lease can name
// an identity that will act again.
type membership struct {
	leases
	shards   *Shards
	identity string
	burn     context.CancelCauseFunc // ends the attempt to begin a term

	seen     string                // the newest version that was obeyed: M2. The elector's
	created  atomic.Bool           // a creation was sent
	begun    atomic.Bool           // the term has begun
	leaving  atomic.Bool           // it gives up its shards, as the next renewal says
	limit    atomic.Pointer[limit] // that the next renewal has; nil is unlimited
	restored atomic.Bool           // this process has noticed a restore of the server: M3
}

// elector returns the elector of a membership. It never waits for another candidate.
func (m *membership) elector() (*leaderelection.LeaderElector, error) {
	config := m.shards.config
	return leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{
				Name: m.memberName(m.identity), Namespace: m.namespace,
			},
			Client: m, Labels: m.labels(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: m.identity},
		},
		LeaseDuration: config.LeaseDuration, RenewDeadline: config.RenewDeadline,
		RetryPeriod:     config.RetryPeriod, // less a random part: members renew apart
		ReleaseOnCancel: true, Name: m.group,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() {},
		},
	})
}

// Get reads the member's Lease. Like Create and Update, it returns an ErrLost after a restore: M3.
func (m *membership) Get(
	ctx context.Context, name string, opts metav1.GetOptions,
) (*coordinationv1.Lease, error) {
	lease, err := m.Client.Get(ctx, name, opts)
	if err != nil {
		return lease, err
	}
	return lease, m.follow("", lease)
}

// follow keeps M3: it returns an ErrLost if lease, which was read or written just now, has an older
// version than this process knew before the request.
func (m *membership) follow(known string, lease *coordinationv1.Lease) error {
	s := m.shards
	s.mu.Lock()
	back := newer(s.written, lease.ResourceVersion) || newer(known, lease.ResourceVersion)
	s.written = lease.ResourceVersion
	s.mu.Unlock()
	if !back {
		return nil
	}
	m.restored.Store(true)
	err := fmt.Errorf("%w: the server was restored: Lease %s has version %s, older than before",
		leaderelection.ErrLost, lease.Name, lease.ResourceVersion)
	if !m.begun.Load() {
		m.burn(err)
	}
	return err
}

// Create creates the member's Lease, once: M1.
func (m *membership) Create(
	ctx context.Context, lease *coordinationv1.Lease, opts metav1.CreateOptions,
) (*coordinationv1.Lease, error) {
	if m.created.Swap(true) {
		return nil, fmt.Errorf("%w: Lease %s was deleted", leaderelection.ErrLost, lease.Name)
	}
	known, _ := m.shards.synced()
	created, err := m.Client.Create(ctx, m.annotated(lease), opts)
	if err != nil {
		m.burn(fmt.Errorf("create Lease %s: %w", lease.Name, err)) // perhaps it was created
		return nil, err
	}
	return created, m.follow(known, created)
}

// Update renews or releases the member's Lease. It begins no term: if the process was suspended
// while the Lease was created, the elector would renew it, but for others the member may be over.
func (m *membership) Update(
	ctx context.Context, lease *coordinationv1.Lease, opts metav1.UpdateOptions,
) (*coordinationv1.Lease, error) {
	if !m.begun.Load() && holderOf(lease) != "" {
		err := fmt.Errorf("create Lease %s: the answer came too late", lease.Name)
		m.burn(err)
		return nil, err
	}
	known, _ := m.shards.synced()
	updated, err := m.Client.Update(ctx, m.annotated(lease), opts)
	if err != nil {
		return updated, err
	}
	return updated, m.follow(known, updated)
}

// announced is the limit that the next renewal has.
func (m *membership) announced() limit {
	if l := m.limit.Load(); l != nil {
		return *l
	}
	return unlimited
}

// annotated returns the Lease with what other members must know: M2.
func (m *membership) annotated(lease *coordinationv1.Lease) *coordinationv1.Lease {
	annotations := maps.Clone(lease.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	if seen := m.shards.obeyed(m.identity); newer(seen, m.seen) {
		m.seen = seen
	}
	annotations[seenAnnotation] = m.seen // whatever the Lease says: a person may have edited it
	annotations[byAnnotation] = m.shards.caches.bys()
	delete(annotations, limitAnnotation)
	if l := m.announced(); l != unlimited {
		annotations[limitAnnotation] = l.String()
	}
	switch {
	case holderOf(lease) == "":
		annotations[leavingAnnotation] = hasLeft
	case m.leaving.Load():
		annotations[leavingAnnotation] = "true"
	}
	lease.Annotations = annotations
	return lease
}

// peer is what this process knows about another member, or about one that was.
//
//	P1  over is true only if the member's term has ended: it has released its Lease, or this
//	    process has seen it unchanged, or missing, for its duration, and a read has confirmed that
//	P2  over stays true
//
// If a Lease has not changed since its version was first seen, the member's term is over after the
// Lease's duration, because the member counts from an earlier moment, and less time.
//
// A person may edit the Lease while the member acts. An erased holder is no release without the
// member's mark. A lower duration does not count below this process's own LeaseDuration, so members
// with a longer one than others must not be edited. A higher one counts until the next renewal.
type peer struct {
	name     string // of the Lease
	identity string
	lease    *coordinationv1.Lease // as last seen; nil if it is missing
	listed   *coordinationv1.Lease // as the informer has shown it last
	since    time.Time             // when this version, or the absence, was first seen
	duration time.Duration         // of the Lease
	least    time.Duration         // of the durations that are believed
	renewed  bool                  // more than one version of its Lease was seen
	stale    bool                  // as first seen, its Lease was too old, by another's clock
	over     bool
	asking   bool      // a read of the Lease is under way
	askAgain time.Time // not before, after a failure
	stuck    stuckness
}

// list notes the Lease as the informer shows it. A version that the informer has shown before is no
// change, even if a read has found a newer one meanwhile.
func (p *peer) list(lease *coordinationv1.Lease, now time.Time) (changed bool) {
	if sameVersion(lease, p.listed) && (lease != nil || p.lease != nil) {
		return false
	}
	p.listed = lease
	return p.observe(lease, now)
}

// sameVersion reports whether both are the same version of a Lease, or both are missing.
func sameVersion(a, b *coordinationv1.Lease) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.UID == b.UID && a.ResourceVersion == b.ResourceVersion
}

// observe notes the Lease as it was seen just now, nil if it does not exist. Another version is
// something new, whatever their order: after a restore of the server, versions are lower than
// before. An older one that arrives late only makes this process wait longer.
func (p *peer) observe(lease *coordinationv1.Lease, now time.Time) (changed bool) {
	if lease == nil {
		if p.lease != nil || p.since.IsZero() {
			p.lease, p.since, changed = nil, now, true
		}
		return changed
	}
	if sameVersion(p.lease, lease) {
		return false
	}
	before := p.present()
	leaving, stale, limited := p.leaving(), p.stale, p.limit()
	p.stale = p.lease == nil && p.old(lease, now)
	p.renewed = p.renewed || p.lease != nil
	p.lease, p.since = lease, now
	if holder := holderOf(lease); holder != "" && p.identity == "" {
		p.identity = holder
	}
	if duration := leaseDuration(lease); duration > 0 && p.present() {
		p.duration = max(duration, p.least)
	}
	if holderOf(lease) == "" && lease.Annotations[leavingAnnotation] == hasLeft {
		p.over = true // its elector has released it: P1
	}
	return before != p.present() || leaving != p.leaving() || stale != p.stale ||
		limited != p.limit()
}

// old reports whether a Lease that is seen for the first time was renewed long ago. The clocks of
// the two processes may differ, so it says nothing about the right to act. But without it, a new
// member would leave shards to members that died before it came, for the duration of a Lease.
func (p *peer) old(lease *coordinationv1.Lease, now time.Time) bool {
	return lease.Spec.RenewTime != nil &&
		now.After(lease.Spec.RenewTime.Add(max(p.duration, leaseDuration(lease))))
}

func leaseDuration(lease *coordinationv1.Lease) time.Duration {
	if lease.Spec.LeaseDurationSeconds == nil {
		return 0
	}
	return time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second
}

// present reports whether the Lease exists and names the member.
func (p *peer) present() bool {
	return p.identity != "" && holderOf(p.lease) == p.identity
}

func (p *peer) leaving() bool {
	return p.lease != nil && p.lease.Annotations[leavingAnnotation] != ""
}

// expiry is when the member's term is over, if nothing new is seen until then.
func (p *peer) expiry() time.Time { return p.since.Add(p.duration) }

// alive reports whether the member seems to be alive. It may be over already, and it may not be
// over yet if it seems dead.
func (p *peer) alive(now time.Time) bool {
	return !p.over && !p.stale && p.present() && now.Before(p.expiry())
}

// limit is how many shards the member takes.
func (p *peer) limit() limit {
	if p.lease == nil {
		return unlimited
	}
	return parseLimit(p.lease.Annotations[limitAnnotation])
}

// diedYoung reports whether the member has lived for a short time, and has neither left nor shown
// that it lives.
func (p *peer) diedYoung(now time.Time, young time.Duration) bool {
	if holderOf(p.lease) == "" || p.renewed && p.alive(now) {
		return false
	}
	spec := p.lease.Spec
	return spec.AcquireTime == nil || spec.RenewTime == nil ||
		spec.RenewTime.Sub(spec.AcquireTime.Time) < young
}

// seen is the version up to which the member has obeyed the shards' Leases, or "" if its Lease does
// not have one that can be compared. A member that has seen a version newer than that of its Lease
// has seen it before the server was restored.
func (p *peer) seen() string {
	if p.lease == nil {
		return ""
	}
	seen := p.lease.Annotations[seenAnnotation]
	if _, ok := number(seen); !ok || newer(seen, p.lease.ResourceVersion) {
		return ""
	}
	return seen
}

// confirm acts on a consistent read of the Lease that was sent at asked: nil means that it does not
// exist.
func (p *peer) confirm(lease *coordinationv1.Lease, asked, now time.Time) {
	if sameVersion(lease, p.lease) && !asked.Before(p.expiry()) {
		p.over = true
		return
	}
	p.observe(lease, now)
}
