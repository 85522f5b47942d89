// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"example.com/informerstack/leaderelection/resourcelock"
)

// leaseAt is a version of the Lease of the first shard.
func leaseAt(version string) *coordinationv1.Lease {
	lease := leaseNamed("g-0")
	lease.ResourceVersion = version
	return lease
}

// A member knows an answer before its informer does, until the informer has reached its version.
// It remembers since when a shard has had no Lease.
func TestTenure_Look(t *testing.T) {
	s := newShards(t, 1)
	tn := newTenure(s, &membership{shards: s, identity: "a"}, context.Background())
	for _, step := range []struct {
		informer, answer, version string // of the Lease, or ""; and of the list
		want, missing             string
	}{
		{"", "", "10", "", "10"},
		{"", "", "11", "", "10"},
		{"", "12", "11", "12", ""},
		{"12", "", "12", "12", ""},
		{"12", "15", "14", "15", ""},
		{"15", "", "16", "15", ""},
		{"15", "18", "17", "18", ""},
		{"", "", "19", "", "19"}, // it was deleted at 19
		{"20", "", "20", "20", ""},
		{"", "", "21", "", "21"},
	} {
		var list []any
		if step.informer != "" {
			list = append(list, leaseAt(step.informer))
		}
		require.NoError(t, s.lister.GetStore().Replace(list, step.version))
		if step.answer != "" {
			tn.claims[0].answer = leaseAt(step.answer)
		}
		got := ""
		if shown := tn.look().shards[0]; shown != nil {
			got = shown.ResourceVersion
		}
		assert.Equal(t, step.want, got, "%+v", step)
		assert.Equal(t, step.missing, tn.claims[0].missing, "%+v", step)
	}
	assert.Nil(t, tn.claims[0].answer)
}

// If the informer shows something older than before, or older than an answer that it should have
// brought, the server was restored, and the member gives up everything at once.
func TestTenure_ARestoreEndsIt(t *testing.T) {
	for _, test := range []struct {
		name, answer, held, list string
		back                     bool
	}{
		{"a newer list", "", "12", "21", false},
		{"the same list", "", "12", "20", false},
		{"an older list", "", "12", "19", true},
		{"an answer that is not there yet", "22", "12", "21", false},
		{"an answer that was missed", "18", "12", "21", true},
		{"an answer that was followed by another one", "18", "19", "21", false},
		{"a Lease that is older than before", "", "9", "21", true},
		{"the same, after an answer that is older still", "8", "9", "21", true},
		{"an answer that was followed by the end of the Lease", "18", "", "21", false},
	} {
		s := newShards(t, 2)
		member := &membership{shards: s, identity: "a"}
		tn := newTenure(s, member, t.Context())
		require.NoError(t, s.lister.GetStore().Replace([]any{leaseAt("10")}, "20"))
		tn.look()
		s.slots[1].set(Acquiring, nil, nil)
		s.slots[1].set(Syncing, newRight(tn.term, tokenOf(leaseAt("1"))), nil)
		if test.answer != "" {
			tn.claims[0].answer = leaseAt(test.answer)
		}
		var list []any
		if test.held != "" {
			list = append(list, leaseAt(test.held))
		}
		require.NoError(t, s.lister.GetStore().Replace(list, test.list))
		tn.look()
		require.Equal(t, test.back, member.restored.Load(), test.name)
		if test.back {
			s.ready.Store(&tn.term)
			assert.False(t, tn.pass(time.Now()), test.name)
			assert.False(t, s.Ready() || s.Status().Joined, test.name)
			assert.ErrorIs(t, tn.failure, errRestored, test.name)
			state := s.slots[1].look().state
			assert.Equal(t, Elsewhere, state, test.name)
		}
		if test.list == "19" {
			assert.Empty(t, s.obeyed("a"))
			known, _ := s.synced()
			assert.Equal(t, "20", known, "an answer must not be older")
		}
	}
}

// A person writes a member into the Leases of shards that it is not to own. It gives them back.
func TestStory_AHolderThatIsNotToOwn(t *testing.T) {
	story(t, 4, func(w *world) {
		a, b := w.pair()
		for _, s := range b.owns() { // a has acquired its own ones earlier, and keeps them
			w.editShard(s, setHolder(a.Status().Identity))
		}
		w.after(DefaultLeaseDuration)
		w.loads(2, 2)
	})
}

// A member takes a shard that it has lost again at once, if the shard is free.
func TestStory_ALostShardIsTakenAtOnce(t *testing.T) {
	story(t, 2, func(w *world) {
		a := w.process("a")
		w.after(DefaultLeaseDuration + DefaultRetryPeriod)
		w.editShard(1, addTransitions(1))
		w.settle()
		assert.Equal(t, 1, a.Status().Moves[MoveLost])
		w.loads(2)
		assert.Equal(t, 3, tokenOf(w.lease(1)).Transitions)
	})
}

// A shard that is drained is not released if its owner is to keep it after all. But if the context
// of its reconcile is done by then, the shard is released first.
func TestStory_ADrainedShardIsWantedAgain(t *testing.T) {
	for _, test := range []struct {
		after        time.Duration
		owns, grants int
	}{{time.Second, 2, 1 + 1}, {DefaultDrainTimeout + time.Second, 1, 1 + 2}} {
		t.Run(test.after.String(), func(t *testing.T) {
			story(t, 2, func(w *world) {
				a := w.process("a")
				busy := w.busy(a, 0, 1)
				b := w.process("b")
				w.after(test.after)
				w.loads(1, 0)
				b.stop()
				w.after(time.Second)
				assert.Len(t, a.owns(), test.owns)
				w.after(DefaultDrainTimeout)
				assert.Len(t, a.owns(), test.owns)
				for _, r := range busy {
					r.finish()
				}
				w.after(time.Second)
				w.loads(2)
				assert.Equal(t, test.grants,
					tokenOf(w.lease(0)).Transitions+tokenOf(w.lease(1)).Transitions)
			})
		})
	}
}

// A watch of the Leases follows a list, or a streaming list that is the same watch.
func TestListFirst(t *testing.T) {
	list, question := metav1.ListOptions{}, metav1.ListOptions{Limit: 1}
	stream := metav1.ListOptions{SendInitialEvents: new(true)}
	for _, test := range []struct {
		before  []metav1.ListOptions // lists, unless they are streams
		watches bool
		refused bool
	}{
		{[]metav1.ListOptions{list}, false, false},
		{[]metav1.ListOptions{list}, true, true},
		{[]metav1.ListOptions{list, question}, true, true},
		{[]metav1.ListOptions{stream}, false, true},
		{[]metav1.ListOptions{stream, list}, false, false}, // the stream has failed
		{[]metav1.ListOptions{list, list}, true, true},
	} {
		server := &scripted{list: func(metav1.ListOptions) (runtime.Object, error) {
			return &coordinationv1.LeaseList{}, nil
		}}
		l := &listFirst{ListerWatcher: server}
		open := func(options metav1.ListOptions) error {
			_, err := l.WatchWithContext(t.Context(), options)
			return err
		}
		begin := func(options metav1.ListOptions) {
			if options.SendInitialEvents != nil {
				assert.NoError(t, open(options))
				return
			}
			_, err := l.ListStream(t.Context(), options, func(runtime.Object) error { return nil })
			assert.NoError(t, err)
		}
		for _, options := range test.before {
			begin(options)
		}
		if test.watches {
			assert.NoError(t, open(metav1.ListOptions{}))
			begin(question) // it is no list
		}
		before := len(server.watches)
		err := open(metav1.ListOptions{})
		assert.Equal(t, test.refused, apierrors.IsResourceExpired(err), "%+v", test)
		assert.Equal(t, !test.refused, len(server.watches) > before, "%+v", test)
	}
}

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
		b.slots[0].set(Acquiring, nil, nil)
		b.slots[0].set(Releasing, nil, nil)
		tn := newTenure(b.Shards, &membership{shards: b.Shards, identity: "b_1"}, quiet())
		tn.plan.targets = []string{owner}
		tn.step(0, w.lease(0), time.Now())
		assert.Zero(t, tn.requests)
		assert.Equal(t, owner, holderOf(w.lease(0)))
		state := b.slots[0].look().state
		assert.Equal(t, Elsewhere, state)
	})
}

// An answer that comes when the term is over, or after a restore of the server, changes nothing:
// the shard was given up.
func TestTenure_AnAnswerAfterTheEnd(t *testing.T) {
	for name, end := range map[string]func(*membership, context.CancelFunc){
		"the term is over": func(_ *membership, cancel context.CancelFunc) { cancel() },
		"the server was restored": func(m *membership, _ context.CancelFunc) {
			m.restored.Store(true)
		},
	} {
		s := newShards(t, 1)
		ctx, cancel := context.WithCancel(t.Context())
		member := &membership{shards: s, identity: "a"}
		tn := newTenure(s, member, ctx)
		s.leases.Client = endingClient{s.leases.Client, func() { end(member, cancel) }}
		tn.write(0, s.leases.free(0), func(*coordinationv1.Lease, error) {
			t.Errorf("%s, and the answer counts", name)
		})
		assert.True(t, tn.claims[0].busy)
		(<-tn.results)()
		assert.False(t, tn.claims[0].busy)
		cancel()
	}
}

// endingClient calls end while it creates a Lease.
type endingClient struct {
	resourcelock.Client[coordinationv1.Lease]
	end func()
}

func (c endingClient) Create(
	_ context.Context, lease *coordinationv1.Lease, _ metav1.CreateOptions,
) (*coordinationv1.Lease, error) {
	c.end()
	return lease, nil
}

// The creation of a shard's Lease does not arrive. The member creates it again.
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

// A release does not arrive, again and again. The member does not end before the shard is released.
func TestStory_AReleaseFails(t *testing.T) {
	story(t, 1, func(w *world) {
		a := w.process("a")
		w.after(time.Second)
		failures := 0
		a.link.setWeather(func(r *http.Request) weather {
			if failures < 3 && isShardUpdate(r) {
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
