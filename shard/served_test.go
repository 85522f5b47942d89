// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/informerstack/controller"
	"example.com/informerstack/informer"
)

// gradualStory is a story in which new members take their shares in steps, as in every program.
func gradualStory(t *testing.T, count int, play func(w *world)) {
	story(t, count, func(w *world) {
		w.gradual = true
		play(w)
	})
}

// brokenCache is a cache that holds nothing.
type brokenCache struct {
	answers bool
	holds   shardSet
	last    time.Time
}

func (c *brokenCache) assign(owned shardSet) {}
func (c *brokenCache) status() cacheStatus {
	return cacheStatus{stored: c.holds, answered: c.answers, listed: c.last}
}

// processWith starts a replica with a cache, which has an answer and may hold nothing.
func (w *world) processWith(name string, c *brokenCache) *process {
	w.t.Helper()
	p := w.newProcess(name)
	p.register(c)
	p.start()
	return p
}

// unserved returns for how long each shard has had no process that works for it, while time passes
// in which play does something.
func (w *world) unserved(d time.Duration, play func(at time.Duration)) []time.Duration {
	const step = 100 * time.Millisecond
	sum := make([]time.Duration, w.count)
	for at := time.Duration(0); at < d; at += step {
		play(at)
		w.after(step)
		for s := range sum {
			if !slices.ContainsFunc(w.processes, func(p *process) bool {
				now := p.slots[s].look()
				return !p.dead && now.state == Active && now.right.valid()
			}) {
				sum[s] += step
			}
		}
	}
	return sum
}

func sum[T cmp.Ordered](all []T) (sum T) {
	for _, n := range all {
		sum += n
	}
	return sum
}

// A member gives new shards back if its informers cannot list them. It counts as stuck, and fails
// its health check. It tries again later, with few shards.
func TestStory_AMemberThatCannotFillItsCachesGivesItsShardsBack(t *testing.T) {
	gradualStory(t, 16, func(w *world) {
		a := w.process("a")
		w.after(time.Second)
		broken := &brokenCache{answers: true, holds: sets.New[Shard]()}
		b := w.processWith("b", broken)
		bound := syncWithin * DefaultLeaseDuration
		w.after(bound - time.Second)
		assert.False(t, b.Ready())
		require.NoError(t, b.Check(0))
		w.loads(15, 0)
		w.after(3 * DefaultRetryPeriod)
		w.loads(16, 0)
		assert.Empty(t, b.owns())
		assert.ErrorContains(t, b.Check(0), "have not filled their caches for group group")
		assert.NoError(t, b.Check(time.Hour))
		assert.NoError(t, a.Check(0))
		assert.ErrorContains(t, b.Status().LastError, "fill the caches of new shards")
		members := a.Status().Members
		require.Len(t, members, 2)
		assert.False(t, members[0].Stuck || members[0].Limited)
		assert.True(t, members[1].Stuck && members[1].Limited)

		lost := w.unserved(30*time.Minute, func(time.Duration) {})
		assert.Less(t, sum(lost), 5*time.Minute, "one shard at a time: %v", lost)

		broken.holds = allShards(16)
		b.wakeUp()
		w.after((stuckFor<<mostTries)*DefaultLeaseDuration + 10*DefaultRetryPeriod)
		w.loads(8, 8)
		assert.True(t, b.Ready())
		assert.NoError(t, b.Check(0))
	})
}

// A member with a slow list keeps its shards while the list brings objects, but not for ever.
func TestStory_ASlowListIsNoFailure(t *testing.T) {
	gradualStory(t, 16, func(w *world) {
		w.process("a")
		w.after(time.Second)
		slow := &brokenCache{answers: true, holds: sets.New[Shard]()}
		b := w.processWith("b", slow)
		w.after(5 * time.Second)
		for range syncAtMost - 2 {
			slow.last = time.Now()
			w.after(DefaultLeaseDuration)
			require.NoError(t, b.Check(0))
			w.loads(15, 0)
		}
		for range 3 {
			slow.last = time.Now()
			w.after(DefaultLeaseDuration)
		}
		w.loads(16, 0)
	})
}

// If no other member can do better, one that is slow keeps its shards: it may still succeed.
func TestStory_AMemberThatIsAloneKeepsItsShards(t *testing.T) {
	gradualStory(t, 16, func(w *world) {
		broken := &brokenCache{answers: true, holds: sets.New[Shard]()}
		a := w.processWith("a", broken)
		w.after(2 * syncWithin * DefaultLeaseDuration)
		assert.Len(t, a.owns(), 16)
		assert.Error(t, a.Check(0))
		assert.False(t, a.Ready())
		broken.holds = allShards(16)
		a.wakeUp()
		w.after(2 * DefaultRetryPeriod)
		w.loads(16)
		assert.NoError(t, a.Check(0))
		assert.True(t, a.Ready())
	})
}

// If the caches of a member begin to fail, it is not ready any more, and what is active stays.
func TestStory_InformersThatStartAfterTheShards(t *testing.T) {
	gradualStory(t, 16, func(w *world) {
		w.process("a")
		b := w.process("b")
		w.after(20 * time.Second)
		w.loads(8, 8)
		assert.True(t, b.Ready())
		b.register(&brokenCache{holds: sets.New[Shard]()})
		w.after(syncWithin*DefaultLeaseDuration + 3*DefaultRetryPeriod)
		w.loads(16, 0)
		assert.False(t, b.Ready())
	})
}

// A replica of a new version has no permission to list what its informer lists. It does not join,
// and takes no shard.
func TestStory_AReplicaWithoutPermissionDoesNotJoin(t *testing.T) {
	replicaStory(t, ByUID, func(r *replicas) {
		r.gradual = true
		r.replica("a")
		r.after(time.Second)
		r.weather = weather{code: http.StatusForbidden}.of(func(r *http.Request) bool {
			return strings.Contains(r.URL.Path, "configmaps")
		})
		b := r.replica("b")
		r.after(30 * time.Second)
		r.loads(16, 0)
		assert.False(r.t, b.Status().Joined)
		assert.False(r.t, b.Ready())
		assert.ErrorContains(r.t, b.Status().LastError, "no answer yet to a list of 1 informers")
		assert.WithinDuration(r.t, time.Now(), b.Status().LastErrorTime, DefaultRetryPeriod)
		assert.NoError(r.t, b.Check(0))
		r.after(time.Minute)
		r.loads(16, 0)
		assert.Error(r.t, b.Check(0))

		b.link.setWeather(nil)
		r.after(2 * time.Minute)
		r.loads(8, 8)
		assert.True(r.t, b.Ready())
		assert.NoError(r.t, b.Check(0))
	})
}

// An informer that was made and does not run is waited for, but not for ever, and only once.
func TestStory_AnInformerThatDoesNotRun(t *testing.T) {
	gradualStory(t, 4, func(w *world) {
		a := w.newProcess("a")
		client := kubernetes.NewForConfigOrDie(&rest.Config{
			Host: "http://server", QPS: -1, Transport: a.link,
		}).CoreV1().RESTClient()
		informer.New[*corev1.ConfigMap](client, "configmaps", a.Options(ByUID, informer.Options{}))
		a.start()
		w.after(syncWithin*DefaultLeaseDuration - time.Second)
		assert.False(t, a.Status().Joined)
		w.after(2 * DefaultRetryPeriod)
		w.loads(4)

		w.deleteLease(a.leases.memberName(a.Status().Identity)) // a membership that is lost
		w.after(10 * DefaultRetryPeriod)
		assert.Equal(t, 2, a.Status().Terms)
		w.loads(4)
	})
}

// A new member takes its share in steps, and is ready when it has it.
func TestStory_ANewMemberTakesItsShareInSteps(t *testing.T) {
	gradualStory(t, 32, func(w *world) {
		a := w.process("a")
		w.after(time.Second)
		w.loads(32)
		w.after(DefaultRetryPeriod)
		assert.True(t, a.Ready(), "it is alone")
		b := w.process("b")
		var steps []int
		for range 20 {
			w.after(time.Second)
			if n := len(b.owns()); len(steps) == 0 || n != steps[len(steps)-1] {
				steps = append(steps, n)
				assert.False(t, b.Ready(), "the others do not know yet that it has no limit")
			}
		}
		assert.Equal(t, []int{0, 2, 4, 8, 16}, steps)
		assert.True(t, b.Ready())
		assert.Empty(t, w.memberLease(b).Annotations[limitAnnotation])
	})
}

// A replica dies ten seconds after each of its starts. It takes a few shards the first time, and
// no more afterwards.
func TestStory_ACrashLoopStarvesLittle(t *testing.T) {
	gradualStory(t, 16, func(w *world) {
		w.process("a")
		w.after(20 * time.Second)
		var b *process
		lost := w.unserved(1000*time.Second, func(at time.Duration) {
			switch at % (20 * time.Second) {
			case 0:
				b = w.process("b")
			case 10 * time.Second:
				assert.False(t, b.Ready())
				b.crash()
			}
		})
		assert.LessOrEqual(t, slices.Max(lost), 25*time.Second, "%v", lost)
		assert.Less(t, sum(lost), 100*time.Second, "%v", lost)

		b = w.process("b")
		w.after(5 * time.Minute)
		w.loads(8, 8)
		assert.True(t, b.Ready())
	})
}

// If all members die young, those that live do the work.
func TestStory_AllMembersDieYoung(t *testing.T) {
	gradualStory(t, 16, func(w *world) {
		for range 3 {
			a, b := w.process("a"), w.process("b")
			w.after(10 * time.Second)
			a.crash()
			b.crash()
		}
		w.process("a")
		w.process("b")
		w.after(DefaultLeaseDuration + 3*DefaultRetryPeriod)
		assert.Equal(t, 16, len(w.processes[6].owns())+len(w.processes[7].owns()))
		w.after(10 * time.Minute)
		w.loads(8, 8)
	})
}

// A replica with another By for the same kind of objects does not join, and says why.
func TestStory_AnotherByIsRefused(t *testing.T) {
	replicaStory(t, ByUID, func(r *replicas) {
		r.gradual = true
		a := r.replica("a")
		r.after(time.Second)
		b := r.newProcess("b")
		b.caches.uses("k8s.io/api/core/v1.ConfigMap", ByNamespace)
		var created atomic.Int64
		b.link.setWeather(func(r *http.Request) weather {
			if r.Method == http.MethodPost {
				created.Add(1)
			}
			return weather{}
		})
		b.start()
		require.True(r.t, b.returned())
		assert.Zero(r.t, created.Load(), "it was no member for a moment")
		assert.EqualError(r.t, b.err, `run shards "group": this process shares objects of `+
			"k8s.io/api/core/v1.ConfigMap by namespace, but member "+a.Status().Identity+" of the "+
			"group does so by uid: use the same shard.By, or another Name for the group, and end "+
			"the old replicas before the new ones begin")
		r.loads(16)
		c := r.newProcess("c") // with more kinds, and more values
		c.caches.uses("k8s.io/api/core/v1.ConfigMap", ByNamespace)
		c.caches.uses("k8s.io/api/core/v1.ConfigMap", ByUID)
		c.caches.uses("k8s.io/api/core/v1.Secret", ByOwner())
		c.start()
		r.after(20 * time.Second)
		r.loads(8, 8)
		c.stop()
		a.stop()
		r.after(time.Second)
		d := r.newProcess("d")
		d.caches.uses("k8s.io/api/core/v1.ConfigMap", ByNamespace)
		d.start()
		r.after(time.Second)
		r.loads(16)
	})
}

// Two replicas start together with different values: one leaves.
func TestStory_TwoBysAtOnce(t *testing.T) {
	gradualStory(t, 16, func(w *world) {
		all := []*process{w.newProcess("a"), w.newProcess("b")}
		for i, by := range []By{ByUID, ByNamespace} {
			all[i].caches.uses("v1.Pod", by)
			// Both look before one has joined.
			all[i].link.setWeather(weather{there: time.Second}.of(isCreation))
			all[i].start()
		}
		w.after(10 * time.Second)
		assert.NotEqual(t, all[0].returned(), all[1].returned())
		w.loads(16)
	})
}

// A key that fails is tried again later and later. That its shard is drained and comes back in
// between is no success and no failure, and while it is not active the key is not tried at all.
func TestStory_AMoveDoesNotChangeTheBackoff(t *testing.T) {
	story(t, 1, func(w *world) {
		a := w.process("a")
		cache := &brokenCache{answers: true, holds: allShards(1)}
		a.register(cache)
		calls, refused := 0, 0
		reconcile := guarded(a.Shards, func(context.Context) error {
			calls++
			return fmt.Errorf("failure %d", calls)
		})
		c := controller.New("c", func(ctx context.Context, key string) (controller.Result, error) {
			before := calls
			result, err := reconcile(ctx, key)
			if calls == before {
				refused++
			}
			return result, err
		}, controller.Options[string]{MaxAttempts: 12})
		ctx, cancel := context.WithCancel(quiet())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			assert.NoError(t, c.Run(ctx))
		}()
		defer func() { cancel(); <-ended }()
		c.Enqueue("key")
		w.after(2 * time.Second)
		require.Greater(t, calls, 6)
		failures, attempts := c.Queue().NumRequeues("key"), calls

		cache.holds = sets.New[Shard]()
		a.wakeUp()
		w.after(10 * time.Minute)
		assert.Equal(t, attempts, calls)
		assert.Equal(t, 1, refused, "it waits")
		assert.Equal(t, failures, c.Queue().NumRequeues("key"))

		cache.holds = allShards(1)
		a.wakeUp()
		w.after(time.Second)
		assert.Equal(t, attempts+1, calls, "it is tried at once")
		assert.Equal(t, failures+1, c.Queue().NumRequeues("key"))
		w.after(time.Minute)
		assert.Equal(t, 12, calls, "MaxAttempts counts all of them")
		assert.Equal(t, 1, c.DeadLetters().Len())
	})
}

// A Lease of a shard that still names its owner, but with another token or another UID, was taken
// or deleted in between: the right that the owner had is over at once.
func TestStory_AnotherTokenIsALoss(t *testing.T) {
	for name, change := range map[string]func(w *world){
		"taken":         func(w *world) { w.editShard(1, addTransitions(2)) },
		"created again": func(w *world) { w.recreate(w.lease(1)) },
	} {
		t.Run(name, func(t *testing.T) {
			story(t, 2, func(w *world) {
				a := w.process("a")
				w.after(time.Second)
				busy := w.busy(a, 1)[0]
				before, ok := FencingTokenFromContext(busy.ctx)
				require.True(t, ok)
				change(w)
				w.settle()
				assert.ErrorIs(t, context.Cause(busy.ctx), ErrLost)
				assert.Error(t, busy.ctx.Err())
				assert.Equal(t, []Shard{0}, a.owns())
				busy.finish()
				w.after(10 * DefaultRetryPeriod)
				w.loads(2)
				after, ok := FencingTokenFromContext(w.busy(a, 1)[0].ctx)
				require.True(t, ok)
				assert.NotEqual(t, before, after)
			})
		})
	}
}
