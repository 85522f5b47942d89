// SPDX-License-Identifier: Apache-2.0

package termcontext

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
)

type name struct{}

var errOver = errors.New("the term is over")

func TestLasting(t *testing.T) {
	term, end := context.WithCancelCause(t.Context())
	stopped, stop := context.WithCancel(context.WithValue(t.Context(), name{}, "outer"))
	led := context.WithValue(With(stopped, term), name{}, "inner")

	lasting := Lasting(led)
	again := Lasting(lasting)
	derived, cancel := context.WithCancel(again)
	defer cancel()
	assert.Equal(t, "inner", derived.Value(name{}))
	assert.Equal(t, term, Of(derived))

	stop()
	for _, ctx := range []context.Context{lasting, again, derived} {
		assert.NoError(t, ctx.Err())
		assert.NoError(t, context.Cause(ctx))
	}
	end(errOver)
	for _, ctx := range []context.Context{lasting, again, derived} {
		assert.ErrorIs(t, ctx.Err(), context.Canceled, "at once, and not by another goroutine")
		assert.Equal(t, errOver, context.Cause(ctx))
	}
}

func TestLasting_WithoutATerm(t *testing.T) {
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), name{}, "value"))
	cancel()
	assert.Nil(t, Of(ctx))
	assert.Nil(t, Lasting(ctx).Done())
	assert.NoError(t, Lasting(ctx).Err())
	assert.Equal(t, "value", Lasting(ctx).Value(name{}))
}
