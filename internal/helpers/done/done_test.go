// SPDX-License-Identifier: Apache-2.0

package done

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

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

func TestSleep(t *testing.T) {
	for name, row := range map[string]struct {
		d, end time.Duration // of the sleep, and when ctx is done
		slept  time.Duration
		want   bool
	}{
		"the time passes":     {d: time.Second, end: time.Hour, slept: time.Second, want: true},
		"the context is done": {d: time.Hour, end: time.Second, slept: time.Second},
		"no time":             {d: 0, end: time.Second, want: true},
		"less than no time":   {d: -time.Second, end: time.Second, want: true},
		"done before":         {d: time.Second, end: 0},
		"no time, and done":   {d: 0, end: 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), row.end)
			defer cancel()
			begun := time.Now()
			assert.Equal(t, row.want, Sleep(ctx, row.d), name)
			assert.Equal(t, row.slept, time.Since(begun), name)
		})
	}
}
