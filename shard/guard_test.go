// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/informerstack/controller"
	"example.com/informerstack/informer"
	"example.com/informerstack/leaderelection"
	"example.com/informerstack/reflector"
	"example.com/informerstack/store"
	"example.com/informerstack/store/compact"
)

// pausedTerm is the context of a term that is over by the clocks, though no timer has fired.
type pausedTerm struct {
	context.Context
	over bool
}

func (p *pausedTerm) Err() error {
	if p.over {
		return context.Canceled
	}
	return p.Context.Err()
}

// shards returns the part of a process with one shard, which is in that state.
func shards(t testing.TB, state State) (s *Shards, term *pausedTerm) {
	s = newShards(t, 1)
	term = &pausedTerm{Context: context.Background()}
	var r *right
	if state.owned() {
		r = newRight(term, leaderelection.FencingToken{UID: "u", Transitions: 3})
	}
	s.slots[0].set(state, r, nil)
	return s, term
}

func always(value string) func(string) (string, bool) {
	return func(string) (string, bool) { return value, true }
}

func unknown(string) (string, bool) { return "", false }

// guarded returns a reconcile of keys with a value, guarded by s.
func guarded(s *Shards, next func(ctx context.Context) error) controller.ReconcileFunc[string] {
	return Reconcile(s, always("v"), func(
		ctx context.Context, _ string,
	) (controller.Result, error) {
		return controller.Result{}, next(ctx)
	})
}

// The guard decides about a key by the state of its shard.
func TestReconcile(t *testing.T) {
	const called = time.Hour // the result of reconcile
	for _, test := range []struct {
		name  string
		state State
		all   bool
		value func(string) (string, bool)
		after time.Duration
	}{
		{"elsewhere", Elsewhere, false, always("v"), 0},
		{"acquiring", Acquiring, false, always("v"), leastPause},
		{"syncing", Syncing, false, always("v"), leastPause},
		{"active", Active, false, always("v"), called},
		{"draining", Draining, false, always("v"), leastPause},
		{"releasing", Releasing, false, always("v"), leastPause},
		{"unknown, owns some", Active, false, unknown, 0},
		{"unknown, owns all", Active, true, unknown, called},
		{"unknown, some sync", Syncing, true, unknown, leastPause},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, _ := shards(t, test.state)
			s.ownsAll.Store(test.all)
			next := func(context.Context, string) (controller.Result, error) {
				running := s.slots[0].look().running
				assert.Equal(t, 1, running)
				return controller.Result{RequeueAfter: called}, nil
			}
			result, err := Reconcile(s, test.value, next)(t.Context(), "key")
			assert.NoError(t, err)
			assert.Equal(t, test.after, result.RequeueAfter)
			running := s.slots[0].look().running
			assert.Zero(t, running)
			wantUnknown := uint64(0)
			if test.name == "unknown, owns some" {
				wantUnknown = 1
			}
			assert.Equal(t, wantUnknown, s.Status().Unknown)
		})
	}
}

// After a pause of the process, no reconcile begins, and one that runs learns that its right is
// over, before any timer has fired.
func TestReconcile_AfterAPause(t *testing.T) {
	s, term := shards(t, Active)
	reconcile := guarded(s, func(ctx context.Context) error {
		token, ok := FencingTokenFromContext(ctx)
		assert.True(t, ok)
		assert.Equal(t, "3.u", token.String())
		require.NoError(t, ctx.Err())
		term.over = true
		assert.Error(t, ctx.Err())
		_, ok = FencingTokenFromContext(ctx)
		assert.False(t, ok)
		return ctx.Err()
	})
	_, err := reconcile(t.Context(), "key")
	assert.Error(t, err)
	result, err := reconcile(t.Context(), "key")
	assert.NoError(t, err)
	assert.Positive(t, result.RequeueAfter, "it was not called")
	_, ok := FencingTokenFromContext(t.Context())
	assert.False(t, ok)
}

// The context ends with the controller's, keeps its values, and ends when the shard is lost.
func TestReconcile_Context(t *testing.T) {
	type name struct{}
	stopped, stop := context.WithCancelCause(context.WithValue(t.Context(), name{}, "value"))
	errStopped := errors.New("stopped")
	s, _ := shards(t, Active)
	_, err := guarded(s, func(ctx context.Context) error {
		assert.Equal(t, "value", ctx.Value(name{}))
		derived, cancel := context.WithCancel(ctx)
		defer cancel()
		stop(errStopped)
		<-derived.Done()
		assert.ErrorIs(t, context.Cause(derived), errStopped)
		return ctx.Err()
	})(stopped, "key")
	assert.ErrorIs(t, err, context.Canceled)

	_, err = guarded(s, func(ctx context.Context) error {
		s.slots[0].set(Elsewhere, nil, ErrLost)
		assert.Error(t, ctx.Err(), "at once")
		<-ctx.Done()
		assert.ErrorIs(t, context.Cause(ctx), ErrLost)
		return nil
	})(t.Context(), "key")
	assert.NoError(t, err)
}

// registered counts the functions that wait for the end of a context.
type registered struct {
	context.Context
	count *int
}

func (registered) Done() <-chan struct{} { return make(chan struct{}) }

func (r registered) AfterFunc(func()) (stop func() bool) {
	*r.count++
	return func() bool { *r.count--; return true }
}

// A call of reconcile leaves nothing behind in the contexts of the worker and of the right, which
// last for millions of calls; and its own context ends.
func TestReconcile_LeavesNothing(t *testing.T) {
	s, _ := shards(t, Active)
	count := 0
	counted := registered{t.Context(), &count}
	s.slots[0].right.ctx = counted
	var used context.Context
	_, err := guarded(s, func(ctx context.Context) error {
		used = ctx
		assert.Equal(t, 2, count)
		return ctx.Err()
	})(counted, "key")
	assert.NoError(t, err)
	assert.Zero(t, count)
	assert.ErrorIs(t, used.Err(), context.Canceled)
}

// A reconcile that panics does not count as running.
func TestReconcile_Panics(t *testing.T) {
	s, _ := shards(t, Active)
	reconcile := guarded(s, func(context.Context) error { panic("boom") })
	assert.Panics(t, func() { _, _ = reconcile(t.Context(), "key") })
	running := s.slots[0].look().running
	assert.Zero(t, running)
}

// A store of its own has the values of its objects.
func TestValueIn(t *testing.T) {
	objects := store.New(store.MetaNamespaceKeyFunc, store.Options{})
	require.NoError(t, objects.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "a", UID: "u",
	}}))
	value, ok := ValueIn(objects, ByUID)("ns/a")
	assert.Equal(t, "u", value)
	assert.True(t, ok)
	_, ok = ValueIn(objects, ByUID)("ns/gone")
	assert.False(t, ok)
	_, ok = ValueIn(unreadable{objects}, ByUID)("ns/a")
	assert.False(t, ok)
}

// unreadable is a store of another module that fails to read.
type unreadable struct{ store.Indexer }

func (u unreadable) GetByKey(key string) (item any, ok bool, err error) {
	item, ok, _ = u.Indexer.GetByKey(key)
	return item, ok, errors.New("unreadable")
}

// The value of a key is that of the object as it was received: a transform or a form may have
// removed what decides on it, and the object may have been deleted a moment ago.
func TestValueIn_TransformsAndForms(t *testing.T) {
	strip := func(obj any) (any, error) {
		m := obj.(*corev1.ConfigMap)
		m.UID, m.Labels, m.OwnerReferences = "", nil, nil
		return m, nil
	}
	for name, options := range map[string]informer.Options{
		"plain":      {},
		"transform":  {Reflector: reflector.Options{Transform: strip}},
		"compressed": {Form: compact.Compressed()},
		"both": {
			Form: compact.Compressed(), Reflector: reflector.Options{Transform: strip},
		},
	} {
		for of, by := range map[string]By{
			"uid": ByUID, "namespace": ByNamespace, "owner": ByOwner(), "label": byLabel,
		} {
			t.Run(name+"/"+of, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newCacheWorld(t, cacheOptions{by: by, options: options})
					defer w.close()
					w.start()
					w.own(0, 1, 2, 3)
					for _, key := range someKeys(20) {
						obj := configMap(key)
						obj.Labels = map[string]string{"part": obj.Name}
						obj.OwnerReferences = []metav1.OwnerReference{{
							APIVersion: "v1", Kind: "Secret", Name: "owner",
							UID: types.UID("owner of " + key), Controller: new(true),
						}}
						require.NoError(t, w.server.Create(obj))
						w.wrote(key, "create", obj)
					}
					w.after(time.Second)
					typed := store.NewTypedIndexer[*corev1.ConfigMap](w.informer.GetIndexer())
					ofTyped := ValueIn(typed, by)
					valueOf, wants := ValueIn(w.informer.GetIndexer(), by), map[string]string{}
					for _, key := range w.informer.GetStore().ListKeys() {
						want, ok := by.valueOf(w.history[key][0].object)
						require.True(t, ok)
						wants[key] = want
					}
					require.NotEmpty(t, wants)
					known := func(when string) {
						for key, want := range wants {
							value, ok := valueOf(key)
							assert.True(t, ok, "%s: %s", when, key)
							assert.Equal(t, want, value, "%s: %s", when, key)
							value, _ = ofTyped(key)
							assert.Equal(t, want, value, "typed, %s: %s", when, key)
						}
					}
					known("stored")
					w.delete(slices.Collect(maps.Keys(wants))...)
					w.after(time.Second)
					require.Empty(t, w.informer.GetStore().ListKeys())
					known("deleted")
				})
			})
		}
	}
}

// The cost of the guard for one reconcile.
func BenchmarkReconcile(b *testing.B) {
	s, _ := shards(b, Active)
	plain := func(ctx context.Context, _ string) (controller.Result, error) {
		return controller.Result{}, ctx.Err()
	}
	value := func(key string) (string, bool) { return key, true }
	for name, reconcile := range map[string]controller.ReconcileFunc[string]{
		"plain": plain, "guarded": Reconcile(s, value, plain),
	} {
		b.Run(name, func(b *testing.B) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			b.ReportAllocs()
			for b.Loop() {
				_, _ = reconcile(ctx, "namespace/name")
			}
		})
	}
}

// waiting is a key that was refused. It counts how often it was queued again.
type waiting struct{ queued *int }

func (w waiting) Requeue() { *w.queued++ }

// A key waits in each state but Elsewhere and Active: G4. If the right is over, it waits in an
// active shard, too. It is queued with the next change to Active or Elsewhere.
func TestSlot_Park(t *testing.T) {
	for _, over := range []bool{false, true} {
		for _, state := range []State{
			Elsewhere, Acquiring, Syncing, Active, Draining, Releasing,
		} {
			for _, next := range []State{Acquiring, Active, Elsewhere} {
				term := &pausedTerm{Context: context.Background()}
				r := newRight(term, leaderelection.FencingToken{})
				s := &slot{slotStatus: slotStatus{state: Elsewhere}}
				s.set(state, r, nil)
				term.over = over
				queued := 0
				s.park(waiting{&queued})
				s.park(waiting{&queued})
				waits := state != Elsewhere && (state != Active || over)
				if !waits {
					assert.Equal(t, 2, queued, "%s, over: %v", state, over)
					assert.Empty(t, s.parked)
					continue
				}
				assert.Zero(t, queued, "%s, over: %v", state, over)
				s.set(next, newRight(context.Background(), leaderelection.FencingToken{}), nil)
				want := 1
				if next == Acquiring {
					want = 0
				}
				assert.Equal(t, want, queued, "%s, over: %v, then %s", state, over, next)
				assert.Len(t, s.parked, 1-want)
			}
		}
	}
}

// The right of a shard ends with its ownership, for the reason of the change: G2.
func TestSlot_Right(t *testing.T) {
	s := &slot{slotStatus: slotStatus{state: Acquiring}}
	r := newRight(context.Background(), leaderelection.FencingToken{UID: "u", Transitions: 3})
	for _, state := range []State{Syncing, Active, Draining} {
		assert.Equal(t, r.token, s.set(state, r, nil).token)
		assert.True(t, r.valid())
	}
	m := s.set(Elsewhere, nil, ErrLost)
	assert.Equal(t, r.token, m.token)
	assert.Equal(t, ErrLost, m.err)
	assert.False(t, r.valid())
	assert.ErrorIs(t, context.Cause(r.ctx), ErrLost)
	right := s.look().right
	assert.Nil(t, right)
	assert.Zero(t, s.set(Acquiring, nil, nil).token)
}
