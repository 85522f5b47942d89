// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"

	"example.com/informerstack/controller"
	"example.com/informerstack/leaderelection"
)

// A single replica owns all shards at once. When it stops, it leaves nothing but free Leases.
func TestStory_OneReplicaOwnsAll(t *testing.T) {
	story(t, 16, func(w *world) {
		a := w.process("a")
		w.loads(16)
		assert.True(t, a.Ready())
		a.stop()
		w.after(time.Second)
		assert.True(t, a.returned())
		assert.NoError(t, a.err)
		assert.False(t, a.Ready())
		assert.Equal(t, map[string]int{MoveAcquired: 16, MoveReleased: 16}, a.Status().Moves)
		leases, err := w.server.List("leases", "default")
		require.NoError(t, err)
		assert.Len(t, leases, 16, "the member's Lease is deleted")
		assert.Empty(t, holderOf(w.lease(3)))
		var states []State
		for _, m := range w.log {
			if m.shard != 3 {
				continue
			}
			states = append(states, m.to)
			owned := m.from.owned() || m.to.owned()
			assert.Equal(t, owned, m.token == tokenOf(w.lease(3)), m)
		}
		assert.Equal(t, []State{
			Acquiring, Syncing, Active, Draining, Releasing, Elsewhere,
		}, states)
	})
}

// Three replicas share the shards, and those of one that leaves.
func TestStory_ThreeReplicasConverge(t *testing.T) {
	story(t, 16, func(w *world) {
		a, _ := w.pair()
		w.process("c")
		w.after(time.Second)
		w.loads(6, 5, 5)
		a.stop()
		w.after(time.Second)
		w.loads(8, 8)
	})
}

// The shards of a dead replica are taken when its Lease has not changed for LeaseDuration.
func TestStory_ADeadReplicaIsReplaced(t *testing.T) {
	story(t, 16, func(w *world) {
		_, b := w.pair()
		b.crash()
		w.after(DefaultLeaseDuration - DefaultRetryPeriod)
		w.loads(8)
		w.after(2 * DefaultRetryPeriod)
		w.loads(16)
	})
}

// A replica that is cut off stops to work before another may take its shards, and joins again under
// another identity when it reaches the server.
func TestStory_AReplicaThatIsCutOffStops(t *testing.T) {
	story(t, 16, func(w *world) {
		_, b := w.pair()
		before := b.Status().Identity
		b.cutOff(true)
		w.after(DefaultRetryPeriod + DefaultRenewDeadline)
		w.loads(8, 0)
		w.after(2 * DefaultRetryPeriod)
		w.loads(16, 0)
		assert.Empty(t, b.caches.owned, "its informers hold nothing")
		b.cutOff(false)
		w.after(2 * DefaultRetryPeriod)
		w.loads(8, 8)
		assert.NotEqual(t, before, b.Status().Identity)
		assert.Equal(t, 2, b.Status().Terms)
	})
}

// The context of a reconcile lasts while its shard is drained, and the shard moves when the
// reconcile has returned. Meanwhile a new key of the shard is tried again soon. All other shards
// have moved before.
func TestStory_ARunningReconcileIsFinishedFirst(t *testing.T) {
	story(t, 2, func(w *world) {
		a := w.process("a")
		busy := w.busy(a, 0, 1)
		w.process("b")
		w.after(time.Second)
		w.loads(1, 0)
		given := slices.IndexFunc(a.Status().Shards, func(s ShardStatus) bool {
			return s.State == Draining
		})
		assert.NoError(t, busy[given].ctx.Err())
		result, err := a.reconcile(Shard(given), fails)
		assert.NoError(t, err)
		assert.Positive(t, result.RequeueAfter)

		busy[given].finish()
		w.after(time.Second)
		w.loads(1, 1)
		result, err = a.reconcile(Shard(given), fails)
		assert.NoError(t, err)
		assert.Zero(t, result, "the key is the other replica's")
	})
}

// A key without a value may belong to any shard, so its reconcile counts in all of them. They move
// when it has returned, and at the DrainTimeout its context is done.
func TestStory_AKeyWithoutValueKeepsAllShards(t *testing.T) {
	story(t, 4, func(w *world) {
		a := w.process("a")
		var ctx context.Context
		returns, finish := context.WithCancel(context.Background())
		w.finish = append(w.finish, finish)
		go func() {
			_, _ = Reconcile(a.Shards, unknown, func(
				c context.Context, _ string,
			) (controller.Result, error) {
				ctx = c
				<-returns.Done()
				return controller.Result{}, nil
			})(quiet(), "key")
		}()
		w.settle()
		require.NoError(t, ctx.Err())
		w.process("b")
		w.after(DefaultDrainTimeout - time.Second)
		w.loads(2, 0)
		assert.NoError(t, ctx.Err())
		w.after(2 * time.Second)
		w.loads(2, 0)
		assert.ErrorIs(t, context.Cause(ctx), ErrMoved)

		finish()
		w.after(time.Second)
		w.loads(2, 2)
	})
}

// At the DrainTimeout the context of a running reconcile is done. The shard still waits until the
// reconcile has returned, even if the process is to stop, and a health check says so.
func TestStory_AReconcileThatIgnoresItsContextKeepsItsShard(t *testing.T) {
	story(t, 1, func(w *world) {
		a := w.process("a")
		stubborn := w.busy(a, 0)[0]
		b := w.process("b")
		w.after(time.Second)
		assert.True(t, a.Ready())
		a.stop()
		w.after(DefaultDrainTimeout - 2*time.Second)
		status := a.Status()
		assert.False(t, status.Joined || status.Ready, "it leaves")
		assert.Equal(t, status.Identity, status.Shards[0].Owner)
		assert.Equal(t, b.Status().Identity, status.Shards[0].Target)
		assert.NoError(t, stubborn.ctx.Err())
		w.after(2 * time.Second)
		assert.ErrorIs(t, context.Cause(stubborn.ctx), ErrMoved)
		w.after(10 * time.Minute)
		w.loads(0, 0)
		assert.False(t, a.returned())
		assert.ErrorContains(t, a.Check(time.Minute), "block shards 0 of group group")
		assert.NoError(t, b.Check(time.Minute))

		stubborn.finish()
		w.after(time.Second)
		assert.True(t, a.returned())
		w.loads(1)
	})
}

// When the membership is lost, the contexts of the reconciles are done at once, and nothing is
// reconciled before the replica has joined again.
func TestStory_ALostMembershipEndsTheReconciles(t *testing.T) {
	story(t, 4, func(w *world) {
		a := w.process("a")
		busy := w.busy(a, 2)[0]
		token, ok := FencingTokenFromContext(busy.ctx)
		require.True(t, ok)
		w.deleteLease(a.leases.memberName(a.Status().Identity))
		w.after(DefaultRetryPeriod + 100*time.Millisecond)
		assert.ErrorIs(t, context.Cause(busy.ctx), leaderelection.ErrLost)
		_, ok = FencingTokenFromContext(busy.ctx)
		assert.False(t, ok)
		assert.False(t, a.Ready())
		assert.Equal(t, 1, a.Status().Terms, "the reconcile has not returned")
		assert.False(t, a.Status().Joined)

		busy.finish()
		w.after(time.Second)
		w.loads(4)
		again, ok := FencingTokenFromContext(w.busy(a, 2)[0].ctx)
		assert.True(t, ok)
		assert.True(t, token.Before(again))
	})
}

// A shard without Lease, because a person has deleted it, is taken when every member has said that
// it knows. Its owner stops at once, and the others are not disturbed.
func TestStory_ADeletedLeaseOfAShard(t *testing.T) {
	story(t, 4, func(w *world) {
		a, _ := w.pair()
		w.after(DefaultRetryPeriod)
		owned := a.owns()[0]
		busy := w.busy(a, owned)[0]
		w.deleteLease(a.leases.shardName(owned))
		w.settle()
		assert.ErrorIs(t, context.Cause(busy.ctx), ErrLost)
		w.loads(1, 2)
		w.after(time.Minute)
		w.loads(1, 2) // while the reconcile runs, a does not say that it knows
		busy.finish()
		w.after(2 * DefaultRetryPeriod)
		w.loads(2, 2)
	})
}

// A shard without a holder, erased by a person, is not free for a replica that does not know
// whether the owner knows.
func TestStory_AnErasedHolder(t *testing.T) {
	story(t, 2, func(w *world) {
		a := w.process("a")
		w.after(DefaultRetryPeriod)
		a.cutOff(true)
		w.process("b")
		w.editShard(1, setHolder(""))
		w.after(DefaultRetryPeriod + DefaultRenewDeadline - time.Second)
		w.loads(2, 0)
		w.after(DefaultLeaseDuration)
		w.loads(0, 2)
	})
}

// If a person writes another replica into the Lease of a shard, the shard is not free when that
// replica leaves: the owner may not know yet.
func TestStory_AHolderThatWasReplaced(t *testing.T) {
	story(t, 2, func(w *world) {
		a := w.process("a")
		b := w.process("b")
		w.after(DefaultRetryPeriod)
		owned := a.owns()[0]
		a.cutOff(true)
		b.cutOff(true)
		w.editShard(owned, setHolder(b.Status().Identity))
		c := w.process("c")
		b.cutOff(false)
		b.stop()
		w.after(DefaultRenewDeadline - time.Second)
		assert.Equal(t, []Shard{owned}, a.owns())
		w.after(DefaultLeaseDuration)
		assert.Empty(t, a.owns())
		assert.Len(t, c.owns(), 2)
	})
}

// If the answer to the acquisition of a shard is lost, the replica does not work for the shard
// before it has acquired it again.
func TestStory_AnAnswerIsLost(t *testing.T) {
	for _, code := range []int{500, 504, 409} {
		story(t, 1, func(w *world) {
			losing := true
			w.weather = func(r *http.Request) (fate weather) {
				if isShardUpdate(r) && losing {
					losing, fate.code = false, code
				}
				return fate
			}
			a := w.process("a")
			w.after(2 * DefaultRetryPeriod)
			w.loads(1)
			assert.Equal(t, 2, tokenOf(w.lease(0)).Transitions)
			if err := a.Status().LastError; code == 409 {
				assert.NoError(t, err, "conflicts are normal")
			} else {
				assert.ErrorContains(t, err, "take shard 0")
			}
			losing = true
			a.stop()
			w.after(2 * DefaultRetryPeriod)
			assert.True(t, a.returned())
			assert.False(t, isEdited(w.lease(0)))
		})
	}
}

// A replica that gets no answer to its list of the Leases asks again.
func TestStory_AListGetsNoAnswer(t *testing.T) {
	story(t, 2, func(w *world) {
		w.process("a")
		w.after(time.Second)
		lists := 0
		w.weather = func(r *http.Request) weather {
			query := r.URL.Query()
			switch {
			case query.Get("sendInitialEvents") != "":
				return weather{back: time.Hour}
			case query.Has("labelSelector") && !query.Has("watch"):
				lists++
				return weather{loses: lists == 1}
			}
			return weather{}
		}
		w.process("b")
		w.after(3 * time.Minute) // two streams and one list without answer
		assert.Equal(t, 2, lists)
		w.loads(1, 1)
	})
}

// A replica that renews its membership but cannot take shards does not keep them from being
// reconciled.
func TestStory_AStuckReplicaReceivesNothing(t *testing.T) {
	story(t, 8, func(w *world) {
		a, b := w.pair()
		w.weather = weather{fails: true}.of(isShardUpdate)
		c := w.process("c")
		w.after(time.Second)
		w.loads(3, 3, 0)
		assert.False(t, c.Ready())
		assert.ErrorContains(t, c.Status().LastError, "take shard")
		w.after(2*DefaultLeaseDuration + 2*DefaultRetryPeriod)
		w.loads(4, 4, 0)
		for _, p := range []*process{a, b} {
			i := slices.IndexFunc(p.Status().Members, func(m MemberStatus) bool { return m.Stuck })
			require.GreaterOrEqual(t, i, 0)
			assert.Contains(t, p.Status().Members[i].Identity, "c_")
		}
	})
}

// Leases of members that died long ago are deleted, by one of the others, and the members are
// forgotten.
func TestStory_OldLeasesAreDeleted(t *testing.T) {
	story(t, 2, func(w *world) {
		a := w.process("a")
		w.deleteLease(a.leases.memberName(a.Status().Identity))
		w.after(2 * DefaultRetryPeriod)
		w.process("b").crash()
		w.process("c")
		lock := leaseNamed("group-m-other")
		require.NoError(t, w.server.Create(lock))
		w.after(5 * time.Minute)
		assert.Len(t, w.members(), 4)
		assert.NoError(t, a.Status().LastError)
		deletes := 0
		a.link.setWeather(func(r *http.Request) (fate weather) {
			if r.Method == http.MethodDelete {
				deletes++
				fate.fails = deletes == 1
			}
			return fate
		})
		w.after(2 * time.Minute)
		assert.Len(t, w.members(), 3)
		assert.Equal(t, 2, deletes)
		assert.Error(t, a.Status().LastError)
		assert.Contains(t, w.members(), "group-m-other", "it does not belong to the group")
		a.Shards.mu.Lock()
		assert.Len(t, a.peers, 3, "the first identity of a is forgotten")
		a.Shards.mu.Unlock()
		w.after(8 * time.Minute)
		a.Shards.mu.Lock()
		defer a.Shards.mu.Unlock()
		assert.Len(t, a.peers, 2)
		assert.Empty(t, a.ended)
	})
}

// A replica with another number of shards does not join, and says why.
func TestStory_AnotherCountIsRefused(t *testing.T) {
	story(t, 8, func(w *world) {
		w.process("a")
		b := w.process("b", func(c *Config) { c.Count = 16 })
		assert.True(t, b.returned())
		assert.EqualError(t, b.err, `run shards "group": the group has 8 shards, as Lease `+
			"default/group-0 says, but Config.Count is 16: set Count to 8, or choose another Name "+
			"for the group")
		w.loads(8)
	})
}

// A member that finds out that the group has another number of shards gives its shards up, and says
// why.
func TestStory_AnotherCountAppears(t *testing.T) {
	story(t, 8, func(w *world) {
		a := w.process("a")
		w.editShard(3, func(l *coordinationv1.Lease) { l.Annotations[countAnnotation] = "16" })
		w.after(time.Second)
		assert.True(t, a.returned())
		assert.ErrorContains(t, a.err, "the group has 16 shards, as Lease default/group-3 says")
		for s := range Shard(8) {
			assert.Empty(t, holderOf(w.lease(s)))
		}
	})
}

// A Lease with the name of a shard's, but without the label of the group, is left alone.
func TestStory_AForeignLease(t *testing.T) {
	story(t, 4, func(w *world) {
		lease := leaseNamed("group-2")
		require.NoError(t, w.server.Create(lease))
		a := w.process("a")
		w.after(time.Minute)
		w.loads(3)
		assert.False(t, a.Ready())
		assert.ErrorContains(t, a.Status().LastError,
			"lease default/group-2 exists, and is not among the Leases")
		assert.Equal(t, Elsewhere, a.Status().Shards[2].State)
		require.NoError(t, w.server.Delete(lease))
		w.after(time.Minute)
		w.loads(4)
	})
}

// A renewal is not looked at: the manager works only when a shard or a member changes, and at most
// once in a LeaseDuration otherwise.
func TestStory_RenewalsCostNothing(t *testing.T) {
	story(t, 8, func(w *world) {
		a := w.process("a")
		w.process("b")
		w.process("c")
		w.after(time.Minute)
		plans, passes, requests := a.plans.Load(), a.passes.Load(), a.link.writes+a.link.reads
		w.after(10 * time.Minute)
		assert.Equal(t, plans, a.plans.Load())
		assert.LessOrEqual(t, a.passes.Load()-passes, uint64(45))
		writes := int(10*time.Minute/DefaultRetryPeriod)*10/9 + 2 // the reads are new watches
		assert.LessOrEqual(t, a.link.writes+a.link.reads-requests, writes)
	})
}

// While the server cannot be reached, Status says why.
func TestStory_NoServer(t *testing.T) {
	story(t, 4, func(w *world) {
		a := w.process("a", func(c *Config) {
			c.Client = restClient(t, newLink(http.NotFoundHandler()))
		})
		w.after(time.Second)
		assert.False(t, a.Status().Joined)
		assert.ErrorContains(t, a.Status().LastError, "the server could not find")
		a.stop()
		assert.True(t, a.returned())
		assert.NoError(t, a.err)
	})
}

// The answers come late and the watch lags: a replica that has taken a shard does not believe an
// older watch that says that it is free.
func TestStory_TheWatchLags(t *testing.T) {
	story(t, 8, func(w *world) {
		a, b := w.pair()
		a.link.setWeather(lateWatch(time.Second))
		a.endWatches()
		b.stop()
		w.after(10 * time.Second)
		w.loads(8)
		w.after(time.Minute)
		w.loads(8)
		assert.Zero(t, a.Status().Moves["lost"])
	})
}

// Run can be called again, but not while it runs.
func TestRun_Twice(t *testing.T) {
	story(t, 4, func(w *world) {
		a := w.process("a")
		assert.ErrorIs(t, a.Run(t.Context()), ErrRunning)
		a.stop()
		w.after(time.Second)
		ctx, cancel := context.WithTimeout(quiet(), time.Minute)
		defer cancel()
		go func() { _ = a.Run(ctx) }()
		w.after(time.Second)
		assert.Len(t, a.owns(), 4)
		w.after(2 * time.Minute)
		assert.Empty(t, a.owns())
	})
}

// fails is a reconcile that must not be called.
func fails(context.Context) error { return errors.New("reconcile was called") }

// running is a reconcile that runs until finish is called.
type running struct {
	ctx    context.Context
	finish context.CancelFunc
}

// busy starts a reconcile for each of the shards.
func (w *world) busy(p *process, shards ...Shard) (all []*running) {
	w.t.Helper()
	for _, s := range shards {
		released, release := context.WithCancel(context.Background())
		r := &running{finish: release}
		w.finish = append(w.finish, release)
		go func() {
			_, _ = p.reconcile(s, func(ctx context.Context) error {
				r.ctx = ctx
				<-released.Done()
				return nil
			})
		}()
		w.settle()
		require.NotNil(w.t, r.ctx, "%s does not reconcile keys of shard %d", p.name, s)
		all = append(all, r)
	}
	return all
}

// deleteLease is what a person does.
func (w *world) deleteLease(name string) {
	w.t.Helper()
	w.narrate.Event("server", "a person deletes the Lease %s", name)
	require.NoError(w.t, w.server.Delete(leaseNamed(name)))
}

// members returns the names of the members' Leases.
func (w *world) members() (names []string) {
	leases, err := w.server.List("leases", "default")
	require.NoError(w.t, err)
	for _, lease := range leases {
		if strings.HasPrefix(lease.GetName(), "group-m-") {
			names = append(names, lease.GetName())
		}
	}
	return names
}

// A new replica does not count on one that has died before it came and left its Lease.
func TestStory_ANewReplicaDoesNotWaitForADeadOne(t *testing.T) {
	story(t, 16, func(w *world) {
		_, b := w.pair()
		b.crash()
		w.after(2 * DefaultLeaseDuration)
		w.loads(16)
		w.process("c")
		w.after(time.Second)
		w.loads(8, 8)
	})
}
