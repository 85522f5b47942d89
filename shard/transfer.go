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

// acquire writes this member into the Lease of a shard, in the version that was judged to be free;
// nil means that there is no Lease. If the term ends meanwhile, so does the right.
func (t *tenure) acquire(s Shard, lease *coordinationv1.Lease) {
	old := lease
	if old == nil {
		old = t.shards.leases.free(s)
	}
	next := t.shards.leases.given(old, t.me)
	t.claims[s].sent = next.Spec.AcquireTime.Time
	t.write(s, next, func(written *coordinationv1.Lease, err error) {
		if err != nil {
			t.failed(s, "take", err)
			t.move(s, Elsewhere, nil, nil)
			return
		}
		t.claims[s].answer = written
		t.move(s, Syncing, newRight(t.term, tokenOf(written)), nil)
	})
}

// release clears the Lease of a shard.
func (t *tenure) release(s Shard, lease *coordinationv1.Lease) {
	t.write(s, t.shards.leases.released(lease), func(written *coordinationv1.Lease, err error) {
		if err != nil {
			t.failed(s, "release", err)
			return
		}
		t.claims[s].answer = written
		t.move(s, Elsewhere, nil, nil)
	})
}

// write writes the Lease of a shard; one without a version is created. It does not call then if the
// member is over by then, because the shard is given up in any case.
func (t *tenure) write(
	s Shard, next *coordinationv1.Lease, then func(written *coordinationv1.Lease, err error),
) {
	t.claims[s].busy, t.claims[s].base = true, next.ResourceVersion
	t.request(func(ctx context.Context) (*coordinationv1.Lease, error) {
		if next.ResourceVersion == "" {
			return t.shards.leases.Create(ctx, next, metav1.CreateOptions{})
		}
		return t.shards.leases.Update(ctx, next, metav1.UpdateOptions{})
	}, func(written *coordinationv1.Lease, err error) {
		if t.claims[s].busy = false; !t.over() {
			then(written, err)
		}
	})
}

// failed notes that a write of a shard's Lease has failed, or that its answer was lost: the next
// one waits. Conflicts are normal, and may be the answer to the repetition of a write that was
// done: then the next one waits until the informer shows the Lease as it is.
func (t *tenure) failed(s Shard, verb string, err error) {
	c := &t.claims[s]
	conflict, exists := apierrors.IsConflict(err), apierrors.IsAlreadyExists(err)
	if conflict || exists && !c.refused {
		c.refused, c.retry = true, time.Now().Add(t.shards.config.RetryPeriod/4)
		return
	}
	c.retry = time.Now().Add(wait.Jitter(t.shards.config.RetryPeriod, 0.5))
	if exists {
		c.retry = time.Now().Add(t.shards.config.LeaseDuration)
		err = t.shards.leases.unseen(t.shards.leases.shardName(s))
	}
	t.shards.noteError(t.led, fmt.Errorf("%s shard %d: %w", verb, s, err))
}
