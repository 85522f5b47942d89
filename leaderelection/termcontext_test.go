// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
)

type valueKey struct{}

// windsUp makes the work of a candidate use TermContext after its own context is done. The
// function it returns is the context, once there is one.
func windsUp(c *LeaderElectionConfig) func() context.Context {
	contexts := make(chan context.Context, 1)
	c.Callbacks.OnStartedLeading = func(ctx context.Context) {
		<-ctx.Done()
		ctx = TermContext(context.WithValue(ctx, valueKey{}, "value"))
		contexts <- ctx
		<-ctx.Done()
	}
	return func() context.Context { return <-contexts }
}

// After the stop, work may continue under the term's context. It has the work's values, and its own
// end when the lease is lost.
func TestTermContext_LastsUntilTheLeaseIsLost(t *testing.T) {
	story(t, func(w *world) {
		var term func() context.Context
		logger := ktesting.NewLogger(ktesting.NopTL{}, ktesting.NewConfig())
		a := w.candidate("a", func(c *LeaderElectionConfig) { term = windsUp(c) })
		a.logger = logger
		a.runs()
		w.after(5 * time.Second)
		a.stop()
		ctx := term()
		derived, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		a.api("fails")
		w.after(11*time.Second - 1)
		assert.NoError(t, ctx.Err())
		assert.Equal(t, "value", derived.Value(valueKey{}))
		assert.Equal(t, logger, klog.FromContext(derived))
		token, ok := FencingTokenFromContext(derived)
		assert.True(t, ok)
		assert.Equal(t, FencingToken{UID: "uid1"}, token)

		w.after(1)
		for _, ctx := range []context.Context{ctx, derived} {
			assert.ErrorIs(t, ctx.Err(), context.Canceled)
			assert.ErrorIs(t, context.Cause(ctx), ErrLost)
		}
		_, ok = FencingTokenFromContext(derived)
		assert.False(t, ok)
		w.saw("16s a stopped")
	})
}

// The term's context is done before the lease is released.
func TestTermContext_EndsBeforeTheRelease(t *testing.T) {
	for name, option := range map[string]func(*LeaderElectionConfig){
		"":        func(*LeaderElectionConfig) {},
		"abandon": abandoning,
	} {
		t.Run(name, func(t *testing.T) {
			story(t, func(w *world) {
				var term context.Context
				a := w.candidate("a", releasing, option, func(c *LeaderElectionConfig) {
					c.Callbacks.OnStartedLeading = func(ctx context.Context) {
						term = TermContext(ctx)
						<-ctx.Done()
					}
				})
				updates := 0
				a.lock.before = func(op string) {
					if op == "update" {
						updates++
						assert.Error(t, term.Err())
						assert.Equal(t, errEnded, context.Cause(term))
					}
				}
				a.runs()
				a.stop()
				w.holder("")
				assert.Equal(t, 1, updates)
				w.saw("0s a stopped")
			})
		})
	}
}

// Everything under the term's context has ended when OnStoppedLeading is called.
func TestTermContext_EndsBeforeAnythingIsTold(t *testing.T) {
	story(t, func(w *world) {
		var term context.Context
		a := w.candidate("a", abandoning, func(c *LeaderElectionConfig) {
			c.Callbacks.OnStartedLeading = func(ctx context.Context) {
				term = TermContext(ctx)
				<-ctx.Done()
				w.say("work: %v", context.Cause(term))
			}
			stopped := c.Callbacks.OnStoppedLeading
			c.Callbacks.OnStoppedLeading = func() {
				w.say("OnStoppedLeading: %v", context.Cause(term))
				stopped()
			}
		}).runs()
		a.api("fails")
		w.after(time.Minute)
		lost := "leader election lost: lease was not renewed for 12s"
		want := []string{"12s work: " + lost, "12s OnStoppedLeading: " + lost, "12s a stopped"}
		assert.ElementsMatch(t, want, w.take())
	})
}

func TestTermContext_EndsWithoutARelease(t *testing.T) {
	story(t, func(w *world) {
		var term context.Context
		a := w.candidate("a", func(c *LeaderElectionConfig) {
			c.Callbacks.OnStartedLeading = func(ctx context.Context) {
				term = TermContext(ctx)
				<-ctx.Done()
			}
			stopped := c.Callbacks.OnStoppedLeading
			c.Callbacks.OnStoppedLeading = func() {
				w.say("%v", context.Cause(term))
				stopped()
			}
		}).runs()
		a.stop()
		w.saw("0s "+errEnded.Error(), "0s a stopped")
	})
}

// A context that belongs to no term grants no time beyond its own end.
func TestTermContext_WithoutATerm(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.Equal(t, ctx, TermContext(ctx))
}

// A term within a term, for instance of a shard, ends with the one around it.
func TestTermContext_OfATermWithinATerm(t *testing.T) {
	story(t, func(w *world) {
		inner := newWorld(t, w.impl)
		defer inner.end()
		shard := inner.candidate("shard").works(time.Hour)
		a := w.candidate("a", func(c *LeaderElectionConfig) {
			c.Callbacks.OnStartedLeading = shard.run
		}).runs()
		w.after(time.Second)
		term := TermContext(shard.led())
		a.stop()
		w.after(time.Second)
		require.Error(t, shard.led().Err())
		require.NoError(t, term.Err())
		assert.True(t, shard.IsLeader())

		a.api("fails")
		w.after(time.Minute)
		assert.ErrorIs(t, context.Cause(term), ErrLost)
		assert.False(t, shard.IsLeader())
		inner.saw("0s shard started", "14s shard stopped")
		w.saw("14s a stopped")
		inner.after(time.Hour)
		inner.saw("1h0m1s shard finished its work")
	})
}
