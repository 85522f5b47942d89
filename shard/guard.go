// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"time"

	"k8s.io/klog/v2"

	"example.com/informerstack/controller"
	"example.com/informerstack/leaderelection"
	"example.com/informerstack/store"
)

// Reconcile returns a reconcile function that calls next only for keys of shards that this process
// owns, if the caches hold their objects:
//
//	active                              next is called
//	syncing, or about to move           the key waits until the shard is active, or has moved
//	owned by another replica, or free   the key is dropped: its owner reconciles it
//
// next is not called for a key that waits, and the key's failures are kept: see controller.Refuse.
// With a controller of another module, the key is tried again after a pause instead: a quarter of
// the time that the shard has been in its state, between 50 ms and 2 s.
//
// value returns the value by which the key's object is assigned to a shard, see ValueIn, or false
// if it is not known. A key without a value is reconciled only by a process that owns all shards,
// and no shard moves meanwhile. In any other process it is dropped, since its object may belong to
// another replica.
//
// A function that measures or traces reconcile belongs into next: outside of the guard, a key that
// waits or is dropped seems to be a success.
//
// The context of next ends when the right to act for the shard does: see ErrMoved and ErrLost, and
// FencingTokenFromContext.
func Reconcile[K comparable](
	s *Shards, value func(key K) (string, bool), next controller.ReconcileFunc[K],
) controller.ReconcileFunc[K] {
	return func(ctx context.Context, key K) (controller.Result, error) {
		slots := s.slotsOf(value(key))
		if slots == nil {
			return s.withoutValue(ctx, key)
		}
		return within(ctx, s, slots, key, next)
	}
}

// within calls next under the rights of all slots.
func within[K comparable](
	ctx context.Context, s *Shards, slots []*slot, key K, next controller.ReconcileFunc[K],
) (controller.Result, error) {
	if len(slots) == 0 {
		return next(ctx, key)
	}
	slot := slots[0]
	right, state := slot.enter()
	if right == nil {
		return s.refuse(ctx, key, slot, state)
	}
	defer func() {
		if slot.leave() {
			s.wakeUp()
		}
	}()
	ctx, cancel := right.context(ctx)
	defer cancel()
	return within(ctx, s, slots[1:], key, next)
}

// slotsOf returns the slots of the shards that a key with this value may belong to: one. A process
// that owns all shards takes keys without a value, too. They may belong to any.
func (s *Shards) slotsOf(value string, known bool) []*slot {
	shard := shardOf(value, s.config.Count)
	switch {
	case known:
		return s.slots[shard : shard+1]
	case s.ownsAll.Load():
		return s.slots
	}
	return nil
}

func (s *Shards) withoutValue(ctx context.Context, key any) (controller.Result, error) {
	s.unknown.Add(1)
	klog.FromContext(ctx).V(4).Info("Key not reconciled: the shard of its object is not known",
		"key", key, "group", s.config.Name)
	return controller.Result{}, nil
}

// The limits of the pause before a controller of another module tries a key again: many keys cost
// little, and no wait becomes much longer.
const (
	leastPause = 50 * time.Millisecond
	mostPause  = 2 * time.Second
)

func (s *Shards) refuse(
	ctx context.Context, key any, slot *slot, state State,
) (controller.Result, error) {
	if state == Elsewhere {
		klog.FromContext(ctx).V(5).Info("Key not reconciled: its shard belongs to another replica",
			"key", key, "group", s.config.Name)
		return controller.Result{}, nil
	}
	if refused := controller.Refuse(ctx); refused != nil {
		slot.park(refused)
		return controller.Result{}, nil
	}
	waited := time.Since(slot.look().since)
	return controller.Result{RequeueAfter: min(max(waited/4, leastPause), mostPause)}, nil
}

// context returns the context of one call of reconcile. It ends with ctx, and with the right.
func (r *right) context(ctx context.Context) (context.Context, context.CancelFunc) {
	merged, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(r.ctx, func() { cancel(context.Cause(r.ctx)) })
	return &rightContext{merged, r}, func() {
		stop()
		cancel(nil)
	}
}

// rightContext is the context of one call of reconcile. Its Err is right before any other goroutine
// has ended the context, and it reads the clocks.
type rightContext struct {
	context.Context
	right *right
}

// Err implements context.Context.
func (c *rightContext) Err() error {
	if err := c.right.term.Err(); err != nil {
		return err
	}
	if err := c.right.ctx.Err(); err != nil {
		return err
	}
	return c.Context.Err()
}

type rightKey struct{}

// Value implements context.Context.
func (c *rightContext) Value(key any) any {
	if key == (rightKey{}) {
		return c.right
	}
	return c.Context.Value(key)
}

// FencingTokenFromContext returns the fencing token of the shard that a reconcile works for. It
// returns false if the right to act for the shard has ended, which it finds out by the clocks, and
// if ctx is not the context of a reconcile of Reconcile.
//
// The tokens of one shard grow from owner to owner, see leaderelection.FencingToken: a receiver of
// writes can refuse those of an earlier owner. It must compare the tokens of one shard only. A key
// without a value has the token of the last shard.
func FencingTokenFromContext(ctx context.Context) (leaderelection.FencingToken, bool) {
	r, ok := ctx.Value(rightKey{}).(*right)
	if !ok || !r.valid() {
		return leaderelection.FencingToken{}, false
	}
	return r.token, true
}

// recaller is the indexer of an informer with Options: it knows the values of objects that it
// holds, and of those that it held until a moment ago.
type recaller interface {
	recall(key string) (value string, ok bool)
}

// ValueIn returns the value function of keys of the objects in an informer's store. If the informer
// was made with Shards.Options, the value is that of the object as it was received, whatever a
// transform or Options.Form has removed; and the value of an object that was deleted a moment ago
// is known, so that reconcile can clean up after it. In another store, an object has the value
// that its stored state has.
func ValueIn(indexer store.Indexer, by By) func(key string) (string, bool) {
	own := indexer
	if typed, ok := own.(interface{ Unwrap() store.Indexer }); ok {
		own = typed.Unwrap()
	}
	if packed, ok := own.(interface{ Packed() store.Indexer }); ok {
		own = packed.Packed()
	}
	if known, ok := own.(recaller); ok {
		return known.recall
	}
	return func(key string) (string, bool) {
		obj, ok, err := indexer.GetByKey(key)
		if err != nil || !ok {
			return "", false
		}
		return by.valueOf(obj)
	}
}
