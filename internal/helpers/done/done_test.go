// SPDX-License-Identifier: Apache-2.0

package done

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
)

type event chan struct{}

func (e event) Done() <-chan struct{} { return e }

func TestWait_TheEventCountsMoreThanTheContext(t *testing.T) {
	pending, happened := make(event), make(event)
	close(happened)
	assert.False(t, Is(pending))
	assert.True(t, Is(happened))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.False(t, Wait(ctx, pending))
	for range 100 { // a select of two ready channels takes any
		assert.True(t, Wait(ctx, happened))
	}
}
