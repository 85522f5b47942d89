// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The server may do a write as long as the record that it replaces has not changed, whatever it
// answers to reads and other writes meanwhile. Here it answers the first write with an error,
// refuses the others, and does the first one much later.
func TestRelease_AWriteThatIsDoneLate(t *testing.T) {
	story(t, func(w *world) {
		w.leaseOf("", 1)
		a := w.candidate("a", releasing)
		writes := 0
		a.lock.before = func(op string) {
			if op == "update" {
				writes++
			}
		}
		a.api("update:fails")
		a.runs()
		a.api("update:fails=403")
		w.after(10 * time.Second)
		assert.Greater(t, writes, 3)
		w.takes("a")
		a.api("ok")
		a.stop()
		w.holder("")
		w.saw()
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
				w.leaseOf("", 1)
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

// A lease that was deleted need not be released, which would create it anew: that is no failure.
func TestRelease_ADeletedLease(t *testing.T) {
	for _, deleted := range []bool{true, false} {
		story(t, func(w *world) {
			a := w.candidate("a", releasing, func(c *LeaderElectionConfig) {
				c.Observe = func(t Transition) { assert.NoError(w.t, t.Err) }
			}).runs()
			left := ""
			if deleted {
				w.shelf.set(nil)
				left = "(no lease)"
			}
			a.stop()
			w.holder(left)
			w.saw("0s a started", "0s a stopped")
			assert.Equal(t, Idle, a.Status().Phase)
			assert.Equal(t, 1, w.shelf.count("create"))
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
