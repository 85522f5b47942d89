// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Without the jitter that tests switch off, waits are as long as client-go's or up to twice that.
func TestBackoff_Default(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackoff(defaultBackoff())
		shortest := 800 * time.Millisecond
		for range 20 {
			d := b.next(time.Now())
			require.GreaterOrEqual(t, d, shortest)
			require.LessOrEqual(t, d, 2*shortest)
			shortest = min(2*shortest, 30*time.Second)
			time.Sleep(d)
		}
		time.Sleep(healthyFor)
		require.GreaterOrEqual(t, b.next(time.Now()), 30*time.Second, "two minutes must be exceeded")
		time.Sleep(time.Minute + healthyFor + 1)
		require.LessOrEqual(t, b.next(time.Now()), 1600*time.Millisecond)
	})
}

func TestBackoff_Custom(t *testing.T) {
	b := newBackoff(wait.Backoff{Duration: time.Second})
	for range 3 {
		require.Equal(t, time.Second, b.next(time.Now()))
	}
}

// Internal errors form a series while less than a minute passes between two of them. Only a series has a limit.
func TestInternalErrors(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(int64(seconds), 0) }
	e := internalErrors{max: 90 * time.Second}
	boom := apiErrors["500"]
	require.True(t, e.retry(boom, at(0)))
	require.True(t, e.retry(boom, at(50)))
	require.False(t, e.retry(apiErrors["expired"], at(55)))
	require.False(t, e.retry(boom, at(100)), "100 s since the first")
	require.True(t, e.retry(boom, at(101)), "a new series")
	require.True(t, e.retry(boom, at(150)))
	require.True(t, e.retry(boom, at(210)), "a minute later: a new series")
	require.True(t, e.retry(boom, at(269)))
	require.False(t, (&internalErrors{}).retry(boom, at(0)))
}
