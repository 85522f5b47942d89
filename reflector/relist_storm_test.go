// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// A consumer that loses the same change of each list, some seconds after it arrived, does not make
// the reflector list every few seconds: a watch proves nothing about it.
func TestStorm_LostSomeSecondsAfterEachList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var r *Reflector
		s := &watchesThat{f: func(w *watch.RaceFreeFakeWatcher) {
			time.Sleep(3 * time.Second)
			r.Relist(errors.New("refused"))
		}}
		waits := defaultBackoff()
		waits.Jitter = 0
		r = New(s, &v1.Pod{}, &mapStore{}, Options{Backoff: &waits})
		r.Run(ctx)
		time.Sleep(time.Minute) // the last watch ends
		require.Less(t, s.lists, 250)
	})
}

// A store that is slow to take the backlog of a watch is no pause of the server.
func TestCurrentAsOf_SlowStoreIsNoPause(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		s.watching()
		current := s.ours.Status().CurrentAsOf
		s.after(time.Minute)
		close(s.open.events)
		s.answerWatch(nil)
		s.onCall = func() { time.Sleep(150 * time.Millisecond) }
		go func(events chan<- watch.Event) {
			for range 100 {
				events <- watch.Event{Type: watch.Modified, Object: pod("a@7")}
			}
		}(s.open.events)
		time.Sleep(15 * time.Second)
		require.Equal(t, current, s.ours.Status().CurrentAsOf)
		opened := time.Now().Add(-15 * time.Second)
		time.Sleep(2 * time.Second)
		require.WithinDuration(t, opened, s.ours.Status().CurrentAsOf, time.Second)
	})
}
