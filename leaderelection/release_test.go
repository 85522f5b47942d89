// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/leaderelection/resourcelock"
)

// lateLock is a lock on a server that answers the first write with an error, refuses the others,
// and does the first one much later.
type lateLock struct {
	resourcelock.Interface
	writes   int
	released bool
	late     atomic.Bool // the first write is done
}

func (l *lateLock) Identity() string { return "a" }
func (l *lateLock) Describe() string { return "lease" }

func (l *lateLock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if l.late.Load() {
		return &resourcelock.LeaderElectionRecord{HolderIdentity: "a"}, []byte("2"), nil
	}
	return &resourcelock.LeaderElectionRecord{}, []byte("1"), nil
}

func (l *lateLock) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	l.writes++
	switch {
	case record.HolderIdentity == "":
		l.released = true
		return nil
	case l.writes == 1:
		return apierrors.NewInternalError(errors.New("slow"))
	}
	return apierrors.NewForbidden(leases, "lease", errors.New("no"))
}

// The server may do a write as long as the record that it replaces has not changed, whatever it
// answers to reads and other writes meanwhile.
func TestRelease_AWriteThatIsDoneLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lock := &lateLock{}
		config := usual()
		config.Lock, config.ReleaseOnCancel = lock, true
		config.Callbacks.OnStartedLeading = func(context.Context) {}
		config.Callbacks.OnStoppedLeading = func() {}
		e, err := NewLeaderElector(config)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(quiet())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			e.Run(ctx)
		}()
		time.Sleep(10 * time.Second)
		lock.late.Store(true)
		cancel()
		<-ended
		assert.Greater(t, lock.writes, 3)
		assert.True(t, lock.released)
	})
}

func TestIsRefusal(t *testing.T) {
	for code, want := range map[int32]bool{
		0: false, 399: false, 400: true, 403: true, 409: false, 499: true, 500: false,
	} {
		err := &apierrors.StatusError{ErrStatus: metav1.Status{Code: code}}
		assert.Equal(t, want, isRefusal(err), code)
	}
	assert.False(t, isRefusal(context.DeadlineExceeded))
}

// A candidate that knows that it does not have the lease sends nothing when it is stopped: an API
// server that is down does not delay the end.
func TestRelease_OnlyInDoubt(t *testing.T) {
	for name, fail := range map[string]func(w *world, a *candidate){
		"refused": func(w *world, a *candidate) {
			a.lock.before = func(op string) {
				if op == "update" {
					w.shelf.set(nil)
				}
			}
			a.runs()
		},
		"another's since": func(w *world, a *candidate) {
			a.api("update:fails")
			a.runs()
			w.takes("b")
			w.after(2 * time.Second)
		},
		"of the last term": func(w *world, a *candidate) {
			a.runs()
			a.api("fails")
			w.after(13 * time.Second)
			w.takes("b")
			a.api("ok")
			w.after(2 * time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, func(w *world) {
				w.shelf.set(&resourcelock.LeaderElectionRecord{LeaseDurationSeconds: 1})
				a := w.candidate("a", releasing, rejoining)
				fail(w, a)
				assert.Error(t, a.Status().LastError)
				a.api("hangs")
				a.stop()
				assert.True(t, a.returned())
				w.take()
			})
		})
	}
}

// A lease that was deleted need not be released: that is no failure.
func TestRelease_ADeletedLease(t *testing.T) {
	for _, deleted := range []bool{true, false} {
		story(t, func(w *world) {
			a := w.candidate("a", releasing, func(c *LeaderElectionConfig) {
				c.Observe = func(t Transition) { assert.NoError(w.t, t.Err) }
			}).runs()
			if deleted {
				w.shelf.set(nil)
			}
			a.stop()
			w.saw("0s a started", "0s a stopped")
			assert.Equal(t, Idle, a.Status().Phase)
		})
	}
}

// A release that fails is not tried again, unless the lease was written meanwhile.
func TestRelease_FailsOnce(t *testing.T) {
	stories(t, func(w *world) {
		a := w.candidate("a", releasing).runs()
		a.api("update:fails")
		a.stop()
		assert.True(t, a.returned())
		w.holder("a")
		w.take()
	})
}
