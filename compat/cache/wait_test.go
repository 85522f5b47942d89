// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"example.com/informerstack/compat/cache"
)

// later is done after a delay.
type later struct {
	name string
	done chan struct{}
}

func after(name string, d time.Duration) later {
	l := later{name, make(chan struct{})}
	time.AfterFunc(d, func() { close(l.done) })
	return l
}

func (l later) Name() string          { return l.name }
func (l later) Done() <-chan struct{} { return l.done }

// Each checker is logged when it is done, with the caller's source position.
func TestWaitFor_LogsEachWhenItIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		ctx := klog.NewContext(t.Context(),
			textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&out))))
		ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("enough"))
		defer cancel()
		checkers := []cache.DoneChecker{after("slow", 2*time.Second), after("never", time.Hour),
			after("fast", time.Second)}
		require.False(t, cache.WaitFor(ctx, "caches", checkers...))
		var got []string
		for _, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
			when, _, _ := strings.Cut(strings.TrimPrefix(line, "I0101 "), " ")
			_, what, _ := strings.Cut(line, "wait_test.go:")
			_, what, _ = strings.Cut(what, "] ")
			got = append(got, when+" "+what)
		}
		require.Equal(t, []string{
			`00:00:00.000000 "Waiting" for="caches"`,
			`00:00:01.000000 "Done waiting" for="caches" instance="fast"`,
			`00:00:02.000000 "Done waiting" for="caches" instance="slow"`,
			`00:01:00.000000 "Timed out waiting" for="caches" cause="enough" instances=["never"]`,
		}, got)
		out.Reset()
		require.True(t, cache.WaitFor(ctx, "", checkers[0], checkers[2]))
		require.Empty(t, out.String())
		time.Sleep(time.Hour) // never's timer
	})
}

func TestWaitForCacheSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		synced := func() bool { return time.Since(began) >= time.Second }
		never := func() bool { return false }
		stopCh := make(chan struct{})
		require.True(t, cache.WaitForCacheSync(stopCh, synced, synced))
		require.Equal(t, time.Second, time.Since(began))
		require.True(t, cache.WaitForNamedCacheSync("mine", stopCh, synced))
		time.AfterFunc(time.Second, func() { close(stopCh) })
		require.False(t, cache.WaitForCacheSync(stopCh, synced, never))
		require.True(t, cache.WaitForCacheSync(stopCh, synced), "stopCh is closed")

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.True(t, cache.WaitForNamedCacheSyncWithContext(ctx, synced))
		require.False(t, cache.WaitForNamedCacheSyncWithContext(ctx, synced, never))
	})
}

func TestSyncResult_NamesWhatIsMissing(t *testing.T) {
	require.NoError(t, cache.SyncResult{}.AsError())
	cause := errors.New("enough")
	err := cache.SyncResult{Err: cause, Synced: map[reflect.Type]bool{
		reflect.TypeFor[int](): true, reflect.TypeFor[string](): false,
	}}.AsError()
	require.EqualError(t, err, "failed to sync all caches: string: enough")
	require.ErrorIs(t, err, cause)
}
