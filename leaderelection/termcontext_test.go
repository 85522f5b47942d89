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

// After the stop, work may continue under the term's context. It has the work's values, and its own
// end when the lease is lost.
func TestTermContext_LastsUntilTheLeaseIsLost(t *testing.T) {
	story(t, func(w *world) {
		a := w.candidate("a").works(-1)
		a.logger = ktesting.NewLogger(ktesting.NopTL{}, ktesting.NewConfig())
		a.runs()
		w.after(5 * time.Second)
		a.stop()
		ctx := TermContext(context.WithValue(a.led(), valueKey{}, "value"))
		derived, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		a.api("fails")
		w.after(11*time.Second - 1)
		assert.NoError(t, ctx.Err())
		assert.Equal(t, "value", derived.Value(valueKey{}))
		assert.Equal(t, a.logger, klog.FromContext(derived))
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
		w.saw("0s a started", "16s a stopped")
	})
}

// reports is a candidate that says why its term's context is done when OnStoppedLeading is called,
// and when its lease is released.
func reports(w *world, options ...func(*LeaderElectionConfig)) *candidate {
	a := w.candidate("a", options...)
	cause := func() error { return context.Cause(TermContext(a.led())) }
	stopped := a.config.Callbacks.OnStoppedLeading
	a.config.Callbacks.OnStoppedLeading = func() {
		w.say("OnStoppedLeading: %v", cause())
		stopped()
	}
	a.lock.before = func(op string) {
		if op == "update" && a.config.ReleaseOnCancel {
			w.say("release: %v", cause())
		}
	}
	return a
}

// Everything under the term's context has ended before the lease is released, and before
// OnStoppedLeading is called.
func TestTermContext_EndsFirst(t *testing.T) {
	end := errEnded.Error()
	for name, options := range map[string][]func(*LeaderElectionConfig){
		"": nil, "release": {releasing}, "release and abandon": {releasing, abandoning},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, func(w *world) {
				a := reports(w, options...).runs()
				w.saw("0s a started")
				a.stop()
				want := []string{"0s OnStoppedLeading: " + end, "0s a stopped"}
				if len(options) > 0 {
					want = append([]string{"0s release: " + end}, want...)
				}
				w.saw(want...)
			})
		})
	}
}

// So it has when the work of a lost term is asked to end.
func TestTermContext_EndsBeforeAnythingIsTold(t *testing.T) {
	story(t, func(w *world) {
		a := reports(w, abandoning, func(c *LeaderElectionConfig) {
			c.Callbacks.OnStartedLeading = func(ctx context.Context) {
				<-ctx.Done()
				w.say("work: %v", context.Cause(TermContext(ctx)))
			}
		}).runs()
		a.api("fails")
		w.after(time.Minute)
		lost := "leader election lost: lease was not renewed for 12s"
		want := []string{"12s work: " + lost, "12s OnStoppedLeading: " + lost, "12s a stopped"}
		assert.ElementsMatch(t, want, w.take())
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
