// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"errors"
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

// B2 to B4: what makes the waits start again, and what does not.
func TestBackoff_Laws(t *testing.T) {
	const first, second, third = time.Second, 2 * time.Second, 4 * time.Second
	type steps = []func(b *backoff)
	var (
		wait    = func(b *backoff) { b.next() }
		changes = func(b *backoff) { b.watchEnded(0, true) }
		failed  = func(b *backoff) { b.note(errors.New("failed")) }
		nothing = func(b *backoff) { b.note(errNothingNew) }
		expired = func(b *backoff) {
			b.serverForgot()
			b.note(apiErrors["expired"])
		}
		lived = func(d time.Duration) func(*backoff) {
			return func(b *backoff) { b.watchEnded(d, false) }
		}
		healthy = lived(healthyWatch)
	)
	for name, test := range map[string]struct {
		between steps
		want    time.Duration // after waits of first and second
	}{
		"nothing":                         {steps{}, third},
		"a short watch":                   {steps{lived(healthyWatch - 1)}, third},
		"a watch that lived":              {steps{healthy}, first},
		"a failure and a watch":           {steps{failed, healthy}, first},
		"nothing new":                     {steps{nothing}, third},
		"nothing new, and changes":        {steps{nothing, changes}, first},
		"changes after a failure":         {steps{failed, changes}, third},
		"changes, a failure, changes":     {steps{changes, failed, wait, changes}, second},
		"a failure, a watch, and changes": {steps{failed, healthy, wait, changes}, first},
		"a 410":                           {steps{expired}, first},
		"a 410 after a 410":               {steps{expired, wait, expired}, second},
		"a 410 after a 410 and health":    {steps{expired, wait, healthy, expired}, first},
		"changes after a 410":             {steps{expired, wait, changes}, second},
		"a failure, a 410, and changes":   {steps{failed, expired, wait, changes}, second},
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
