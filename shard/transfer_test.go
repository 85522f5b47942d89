// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	coordinationv1 "k8s.io/api/coordination/v1"
)

// A member makes few requests for shards at a time, so that the renewals of its membership do not
// wait behind them.
func TestStory_FewRequestsAtATime(t *testing.T) {
	story(t, 32, func(w *world) {
		var mu sync.Mutex
		var sent []time.Time
		w.weather = func(r *http.Request) weather {
			if !isShardUpdate(r) {
				return weather{}
			}
			mu.Lock()
			defer mu.Unlock()
			sent = append(sent, time.Now())
			return weather{back: time.Second}
		}
		first := w.process("first")
		w.after(10 * time.Second)
		w.loads(32)
		first.stop()
		w.after(10 * time.Second)
		w.process("second")
		w.after(10 * time.Second)
		w.loads(32)
		mu.Lock()
		defer mu.Unlock()
		assert.Len(t, sent, 1+32+32, "the first member has created 31")
		for i := maxRequests; i < len(sent); i++ {
			assert.GreaterOrEqual(t, sent[i].Sub(sent[i-maxRequests]), time.Second)
		}
	})
}

// A member that does not know whether it has released a shard does not clear the Lease of another
// owner.
func TestStory_AnotherOwnersLeaseIsNotCleared(t *testing.T) {
	story(t, 1, func(w *world) {
		w.process("a")
		owner := holderOf(w.lease(0))
		b := w.newProcess("b")
		b.lister = b.newLister()
		b.slots[0].set(Acquiring, nil, nil)
		b.slots[0].set(Releasing, nil, nil)
		tn := newTenure(b.Shards, &membership{shards: b.Shards, identity: "b_1"}, quiet())
		tn.release(0, w.lease(0))
		(<-tn.results)()
		assert.Equal(t, owner, holderOf(w.lease(0)))
		state, _, _ := b.slots[0].look()
		assert.Equal(t, Elsewhere, state)
	})
}

// An answer that comes when the term is over, or after a restore of the server, changes nothing:
// the shard was given up.
func TestTenure_AnAnswerAfterTheEnd(t *testing.T) {
	for name, end := range map[string]func(*membership, context.CancelFunc){
		"the term is over":        func(_ *membership, cancel context.CancelFunc) { cancel() },
		"the server was restored": func(m *membership, _ context.CancelFunc) { m.goBack() },
	} {
		s := newShards(t, 1)
		ctx, cancel := context.WithCancel(t.Context())
		member := &membership{shards: s, identity: "a"}
		tn := newTenure(s, member, ctx)
		tn.requestFor(0, func(context.Context) (*coordinationv1.Lease, error) {
			end(member, cancel)
			return nil, nil
		}, func(*coordinationv1.Lease, error) { t.Errorf("%s, and the answer counts", name) })
		assert.True(t, tn.claims[0].busy)
		(<-tn.results)()
		assert.False(t, tn.claims[0].busy)
		cancel()
	}
}

// The creation of a shard's Lease does not arrive. The member reads that, and creates it again.
func TestStory_AShardsLeaseIsNotCreated(t *testing.T) {
	story(t, 2, func(w *world) {
		posts := 0
		w.weather = func(r *http.Request) weather {
			if !isCreation(r) {
				return weather{}
			}
			posts++ // the first settles the count, the second is the member's own Lease
			return weather{fails: posts == 3}
		}
		a := w.process("a")
		assert.ErrorContains(t, a.Status().LastError, "take shard")
		w.loads(1)
		w.after(2 * DefaultRetryPeriod)
		w.loads(2)
	})
}

// A release does not arrive, and the read after it fails. The member does not end before the shard
// is released.
func TestStory_AReleaseAndAReadFail(t *testing.T) {
	story(t, 1, func(w *world) {
		a := w.process("a")
		w.after(time.Second)
		failures := 0
		a.link.setWeather(func(r *http.Request) weather {
			if failures < 3 && (isShardUpdate(r) || isReadOf("group-0")(r)) {
				failures++
				return weather{fails: true}
			}
			return weather{}
		})
		a.stop()
		assert.False(t, a.returned())
		w.after(5 * DefaultRetryPeriod)
		assert.True(t, a.returned())
		assert.Equal(t, 3, failures)
		assert.Empty(t, holderOf(w.lease(0)))
	})
}
