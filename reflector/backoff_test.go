// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
)

// With the jitter that tests switch off, waits are as long as client-go's or up to twice that. Like
// client-go's they start again two minutes after they last did.
func TestBackoff_Default(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackoff(defaultBackoff(), clock.RealClock{})
		began, shortest := time.Now(), 800*time.Millisecond
		for time.Since(began) <= backoffReset {
			d := b.next()
			require.GreaterOrEqual(t, d, shortest)
			require.LessOrEqual(t, d, 2*shortest)
			shortest = min(2*shortest, 30*time.Second)
			time.Sleep(d)
		}
		require.LessOrEqual(t, b.next(), 1600*time.Millisecond)
	})
}

func TestBackoff_Custom(t *testing.T) {
	b := newBackoff(wait.Backoff{Duration: time.Second}, clock.RealClock{})
	for range 3 {
		require.Equal(t, time.Second, b.next())
	}
}

// testWaits returns waits without jitter.
func testWaits(first time.Duration, factor float64) wait.Backoff {
	return wait.Backoff{Duration: first, Factor: factor, Steps: 10, Cap: time.Minute}
}

// B1 and B2: what makes the waits start again, and what does not.
func TestBackoff_Laws(t *testing.T) {
	const first, second, third = time.Second, 2 * time.Second, 4 * time.Second
	type steps = []func(b *backoff)
	var (
		wait    = func(b *backoff) { b.next() }
		healthy = func(b *backoff) { b.healthy() }
		expired = func(b *backoff) { b.restart() }
	)
	for name, test := range map[string]struct {
		between steps
		want    time.Duration // after waits of first and second
	}{
		"nothing":                      {steps{}, third},
		"a watch that lived":           {steps{healthy}, third},
		"a 410":                        {steps{expired}, first},
		"a 410 after a 410":            {steps{expired, wait, expired}, second},
		"a 410 after a 410 and health": {steps{expired, wait, healthy, expired}, first},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBackoff(testWaits(first, 2), clock.RealClock{})
			require.Equal(t, first, b.next())
			require.Equal(t, second, b.next())
			for _, step := range test.between {
				step(b)
			}
			require.Equal(t, test.want, b.next())
		})
	}
}

// A restart does not move client-go's own, two minutes after the last one.
func TestBackoff_RestartMovesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackoff(testWaits(time.Second, 2), clock.RealClock{})
		time.Sleep(100 * time.Second)
		b.restart()
		for _, seconds := range []time.Duration{1, 2, 4, 8} {
			require.Equal(t, seconds*time.Second, b.next())
		}
		time.Sleep(20 * time.Second)
		require.Equal(t, 16*time.Second, b.next())
		time.Sleep(time.Nanosecond)
		require.Equal(t, time.Second, b.next())
	})
}

// Internal errors form a series while less than a minute passes between two of them. Only a series
// has a limit.
func TestInternalErrors(t *testing.T) {
	const limit = 90 * time.Second
	at := func(seconds int) time.Time { return time.Unix(int64(seconds), 0) }
	var e internalErrors
	boom := apiErrors["500"]
	require.True(t, e.retry(boom, at(0), limit))
	require.True(t, e.retry(boom, at(50), limit))
	require.False(t, e.retry(apiErrors["expired"], at(55), limit))
	require.False(t, e.retry(boom, at(100), limit), "100 s since the first")
	require.True(t, e.retry(boom, at(101), limit), "a new series")
	require.True(t, e.retry(boom, at(150), limit))
	require.True(t, e.retry(boom, at(210), limit), "a minute later: a new series")
	require.True(t, e.retry(boom, at(269), limit))
	require.False(t, (&internalErrors{}).retry(boom, at(0), 0))
}
