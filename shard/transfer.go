// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// request makes a request in a goroutine of its own, and calls then with the answer in the
// manager's. The request ends with the term at the latest.
func (t *tenure) request(
	do func(ctx context.Context) (*coordinationv1.Lease, error),
	then func(answer *coordinationv1.Lease, err error),
) {
	t.requests++
	go func() {
		ctx, cancel := context.WithTimeout(t.term, t.shards.config.RenewDeadline)
		defer cancel()
		answer, err := do(ctx)
		t.results <- func() { then(answer, err) }
	}()
}

// requestFor makes a request for a shard: then is not called if the member is over by then,
// because the shard is given up in any case.
func (t *tenure) requestFor(
	s Shard,
	do func(ctx context.Context) (*coordinationv1.Lease, error),
	then func(answer *coordinationv1.Lease, err error),
) {
	t.claims[s].busy = true
	t.request(do, func(answer *coordinationv1.Lease, err error) {
		if t.claims[s].busy = false; !t.over() {
			then(answer, err)
		}
	})
}

// acquire writes this member into the Lease of a shard, in the version that was judged to be free;
// nil means that there is no Lease. If an earlier write is in doubt, it reads the Lease instead.
func (t *tenure) acquire(s Shard, lease *coordinationv1.Lease) {
	c := &t.claims[s]
	if c.doubt {
		t.readBack(s, func(read *coordinationv1.Lease) {
			if c.doubt = false; t.took(read) {
				t.grant(s, read)
				return
			}
			t.move(s, Elsewhere, nil, nil)
		})
		return
	}
	old := lease
	if old == nil {
		old = t.shards.leases.free(s)
	}
	next := t.shards.leases.given(old, t.me)
	c.sent = next.Spec.AcquireTime.Time
	t.requestFor(s, func(ctx context.Context) (*coordinationv1.Lease, error) {
		if lease == nil {
			return t.shards.leases.Create(ctx, next, metav1.CreateOptions{})
		}
		return t.shards.leases.Update(ctx, next, metav1.UpdateOptions{})
	}, func(written *coordinationv1.Lease, err error) {
		if err != nil {
			t.failed(s, "take", err)
			return
		}
		t.grant(s, written)
	})
}

// grant begins the ownership of a shard: T1. If the term ends meanwhile, so does the right.
func (t *tenure) grant(s Shard, lease *coordinationv1.Lease) {
	t.answers[s], t.claims[s].reads = lease, 0
	t.move(s, Syncing, newRight(t.term, tokenOf(lease)), nil)
}

// release clears the Lease of a shard. The lease given is the newest that is known; if an earlier
// write is in doubt, it is read again.
func (t *tenure) release(s Shard, lease *coordinationv1.Lease) {
	c := &t.claims[s]
	if c.doubt || holderOf(lease) != t.me {
		t.readBack(s, func(read *coordinationv1.Lease) {
			if c.doubt = false; holderOf(read) != t.me {
				t.move(s, Elsewhere, nil, nil)
			}
		})
		return
	}
	t.requestFor(s, func(ctx context.Context) (*coordinationv1.Lease, error) {
		return t.shards.leases.Update(ctx, t.shards.leases.released(lease), metav1.UpdateOptions{})
	}, func(written *coordinationv1.Lease, err error) {
		if err != nil {
			t.failed(s, "release", err)
			return
		}
		t.answers[s] = written
		t.move(s, Elsewhere, nil, nil)
	})
}

// failed notes that a write of a shard's Lease has failed, or that its answer was lost: it is read
// before anything else is done. Conflicts are normal. They may be the answer to the repetition of a
// write that was done.
func (t *tenure) failed(s Shard, verb string, err error) {
	c := &t.claims[s]
	c.doubt = true
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return
	}
	c.retry = time.Now().Add(wait.Jitter(t.shards.config.RetryPeriod, 0.5))
	t.shards.noteError(t.led, fmt.Errorf("%s shard %d: %w", verb, s, err))
}

// readBack reads the Lease of a shard after a write that is in doubt, and calls then with it, or
// with nil if it does not exist.
func (t *tenure) readBack(s Shard, then func(read *coordinationv1.Lease)) {
	c := &t.claims[s]
	known := t.shards.stored(s)
	t.requestFor(s, t.reading(t.shards.leases.shardName(s)), func(
		read *coordinationv1.Lease, err error,
	) {
		switch {
		case err != nil:
			t.failed(s, "read", err)
			return
		case read != nil && known != nil && newer(known.ResourceVersion, read.ResourceVersion):
			t.member.goBack()
			return
		case read != nil && read.Labels[GroupLabel] != t.shards.config.Name:
			c.doubt, c.retry = false, time.Now().Add(t.shards.config.LeaseDuration)
			t.move(s, Elsewhere, nil, nil)
			t.shards.noteError(t.led, t.shards.leases.foreign(read))
			return
		}
		// After a restore of the server, the Leases of the informer stay old for a moment, and each
		// read would be followed by another one at once.
		if c.reads++; c.reads > 3 {
			c.retry = time.Now().Add(t.shards.config.RetryPeriod / 4)
		}
		if read != nil {
			t.answers[s] = read
		}
		then(read)
	})
}

// reading returns a request that reads a Lease. Its answer is nil if the Lease does not exist.
func (t *tenure) reading(name string) func(context.Context) (*coordinationv1.Lease, error) {
	return func(ctx context.Context) (*coordinationv1.Lease, error) {
		lease, err := t.shards.leases.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return lease, err
	}
}
