// SPDX-License-Identifier: Apache-2.0

package starts

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// If the context of a reflector ends when it gets a turn, it does not keep the turn.
func TestAwait_EndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l, ended := &Limiter{}, 0
	for range 1000 { // of the two channels that are ready, select takes any
		end, err := l.Await(ctx, nil)
		if err == nil {
			end()
			continue
		}
		require.ErrorIs(t, err, context.Canceled)
		ended++
	}
	assert.NotZero(t, ended)
	assert.Zero(t, l.held)
	assert.Empty(t, l.waiting)
}
